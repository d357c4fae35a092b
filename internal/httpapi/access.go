package httpapi

import (
	"context"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// What belongs to a cluster has no namespace of its own: who may read or write
// it depends on the cluster, and its agent may do both.

func ofCluster(kind api.Kind) bool {
	info, _ := api.LookupKind(kind)
	return info.Scope == api.OfCluster
}

func clusterKey(name string) api.Key { return api.Key{Kind: api.KindCluster, Name: name} }

// cluster is a cluster as the fleet shows it, nil where there is none.
func (s *Server) cluster(name string) *api.Cluster {
	entry := s.fleet.Snapshot().Get(clusterKey(name))
	if entry == nil {
		return nil
	}
	cluster, _ := entry.Object.(*api.Cluster)
	return cluster
}

// mayReadOf is asked for what belongs to a cluster, nil where there is none.
func (i identity) mayReadOf(cluster *api.Cluster) error {
	switch {
	case i.role == RoleAgent && cluster != nil:
		return i.mayReport(cluster)
	case i.role == RoleAgent:
		return nil
	case cluster == nil:
		return i.mayReadNamespace("")
	}
	return i.mayReadOwned(owners(cluster))
}

// seesOf reports whether what belongs to a cluster may be shown.
func (i identity) seesOf(cluster *api.Cluster) bool {
	if cluster == nil {
		return !i.bound()
	}
	return i.mayReadOf(cluster) == nil
}

// mayReadKey is asked before it is known whether the object exists; without a
// name it is about the collection.
func (s *Server) mayReadKey(who identity, key api.Key) error {
	if ofCluster(key.Kind) {
		return who.mayReadOf(s.cluster(key.Namespace))
	}
	return who.mayReadNamespace(key.Namespace)
}

func (s *Server) mayRead(who identity, object api.Object) error {
	if ofCluster(object.ObjectKind()) {
		return who.mayReadOf(s.cluster(api.KeyOf(object).Namespace))
	}
	return who.mayRead(object)
}

// sees reports whether an object may be shown.
func (s *Server) sees(who identity, object api.Object) bool {
	if ofCluster(object.ObjectKind()) {
		return who.seesOf(s.cluster(api.KeyOf(object).Namespace))
	}
	return who.sees(owners(object)...)
}

// mayRemove is asked before the object is known.
func (s *Server) mayRemove(who identity, key api.Key) error {
	if !ofCluster(key.Kind) {
		return who.mayWriteKey(key)
	}
	if err := who.mayReportAtAll(); err != nil {
		return err
	}
	cluster := s.cluster(key.Namespace)
	if cluster == nil {
		return s.notFound(key)
	}
	return who.mayReport(cluster)
}

// mayWrite is asked once the object is known.
func (s *Server) mayWrite(who identity, object api.Object) error {
	if ofCluster(object.ObjectKind()) {
		return s.mayRemove(who, api.KeyOf(object))
	}
	return who.mayWrite(object)
}

// mayPut is asked before an object is written. Where it belongs to a cluster,
// the cluster has to be there still when it is written, and to be the one the
// permission is for: the returned write checks that. Afresh, the cluster is read
// from the store, because the fleet's copy proved to be outdated.
func (s *Server) mayPut(ctx context.Context, who identity, object api.Object, afresh bool) ([]store.Write, error) {
	if !ofCluster(object.ObjectKind()) {
		return nil, who.mayWrite(object)
	}
	if err := who.mayReportAtAll(); err != nil {
		return nil, err
	}
	key := clusterKey(api.KeyOf(object).Namespace)
	var cluster api.Object
	var revision int64
	if entry := s.fleet.Snapshot().Get(key); entry != nil && !afresh {
		cluster, revision = entry.Object, entry.SpecRevision
	} else {
		current, err := s.load(ctx, key)
		if err != nil {
			return nil, err
		}
		if current == nil {
			return nil, newProblem(api.ProblemNotFound, "%s does not exist: create it before its %s", key, collectionOf(object))
		}
		cluster, revision = current.object, current.specRevision
	}
	if err := who.mayReport(cluster); err != nil {
		return nil, err
	}
	return []store.Write{{Key: key, Part: store.Spec, Expect: revision, CheckOnly: true}}, nil
}

func collectionOf(object api.Object) string {
	info, _ := api.LookupKind(object.ObjectKind())
	return info.Collection
}
