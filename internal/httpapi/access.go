package httpapi

import (
	"context"
	"errors"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// cluster is a cluster as the fleet shows it, nil where there is none.
func (s *Server) cluster(name string) *api.Cluster {
	entry := s.fleet.Snapshot().Get(auth.ClusterKey(name))
	if entry == nil {
		return nil
	}
	cluster, _ := entry.Object.(*api.Cluster)
	return cluster
}

// mayRemove is asked before the object is known.
func (s *Server) mayRemove(who auth.Identity, key api.Key) error {
	err := s.rights.MayRemove(who, key)
	if errors.Is(err, auth.ErrNoCluster) {
		return s.notFound(key)
	}
	return err
}

// mayWrite is asked once the object is known.
func (s *Server) mayWrite(who auth.Identity, object api.Object) error {
	err := s.rights.MayWrite(who, object)
	if errors.Is(err, auth.ErrNoCluster) {
		return s.notFound(api.KeyOf(object))
	}
	return err
}

// mayPut is asked before an object is written. Where it belongs to a cluster,
// the cluster has to be there still when it is written, and to be the one the
// permission is for: the returned write checks that. Afresh, the cluster is read
// from the store, because the fleet's copy proved to be outdated.
func (s *Server) mayPut(ctx context.Context, who auth.Identity, object api.Object, afresh bool) ([]store.Write, error) {
	if !auth.OfCluster(object.ObjectKind()) {
		return nil, who.MayWrite(object)
	}
	if err := who.MayReportAtAll(); err != nil {
		return nil, err
	}
	key := auth.ClusterKey(api.KeyOf(object).Namespace)
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
			return nil, problem.New(api.ProblemNotFound, "%s does not exist: create it before its %s", key, collectionOf(object))
		}
		cluster, revision = current.object, current.specRevision
	}
	if err := who.MayReport(cluster); err != nil {
		return nil, err
	}
	return []store.Write{{Key: key, Part: store.Spec, Expect: revision, CheckOnly: true}}, nil
}

func collectionOf(object api.Object) string {
	info, _ := api.LookupKind(object.ObjectKind())
	return info.Collection
}

// notFound is the answer about an object that cannot be shown: it does not exist,
// or it is damaged.
func (s *Server) notFound(key api.Key) *problem.Problem {
	if s.fleet.Snapshot().Damaged(key) != nil {
		return problem.Damaged(key)
	}
	return problem.New(api.ProblemNotFound, "%s does not exist", key)
}
