package auth

import (
	"errors"
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// Rights checks access that depends on other objects. Objects that belong to a cluster have no
// namespace of their own: access depends on the cluster, and its agent may read and write them.
type Rights struct {
	fleet *fleet.Fleet
}

// NewRights returns the Rights for the objects of a fleet.
func NewRights(objects *fleet.Fleet) Rights { return Rights{objects} }

// ErrNoCluster says that the cluster that an object belongs to does not exist.
var ErrNoCluster = errors.New("the cluster does not exist")

// OfCluster reports whether objects of a kind belong to clusters.
func OfCluster(kind api.Kind) bool {
	info, _ := api.LookupKind(kind)
	return info.Scope == api.OfCluster
}

// ClusterKey returns the key of a cluster.
func ClusterKey(name string) api.Key { return api.Key{Kind: api.KindCluster, Name: name} }

// cluster returns a cluster of the fleet, or nil.
func (r Rights) cluster(name string) *api.Cluster {
	entry := r.fleet.Snapshot().Get(ClusterKey(name))
	if entry == nil {
		return nil
	}
	cluster, _ := entry.Object.(*api.Cluster)
	return cluster
}

// mayReadOf checks whether objects that belong to a cluster may be read. The cluster may be nil.
func (who Identity) mayReadOf(cluster *api.Cluster) error {
	switch {
	case who.Role == RoleAgent && cluster != nil:
		return who.MayReport(cluster)
	case who.Role == RoleAgent:
		return nil
	case cluster == nil:
		return who.MayReadNamespace("")
	}
	return who.mayReadOwned(Owners(cluster))
}

// SeesOf reports whether objects that belong to a cluster may be shown.
func (who Identity) SeesOf(cluster *api.Cluster) bool {
	if cluster == nil {
		return !who.Bound()
	}
	return who.mayReadOf(cluster) == nil
}

// MayReadKey is checked before the object is looked up. Without a name, it checks access to the
// collection.
func (r Rights) MayReadKey(who Identity, key api.Key) error {
	if OfCluster(key.Kind) {
		return who.mayReadOf(r.cluster(key.Namespace))
	}
	return who.MayReadNamespace(key.Namespace)
}

// MayRead checks whether an object may be read.
func (r Rights) MayRead(who Identity, object api.Object) error {
	if OfCluster(object.ObjectKind()) {
		return who.mayReadOf(r.cluster(api.KeyOf(object).Namespace))
	}
	return who.MayRead(object)
}

// Sees reports whether an object may be shown.
func (r Rights) Sees(who Identity, object api.Object) bool {
	if OfCluster(object.ObjectKind()) {
		return who.SeesOf(r.cluster(api.KeyOf(object).Namespace))
	}
	return who.Sees(Owners(object)...)
}

// seesNew reports whether an object with this key would be visible if it existed. That depends on
// its namespace or owners or, for objects of a cluster, on the cluster. object is nil if only the
// key is known.
func (r Rights) seesNew(who Identity, key api.Key, object api.Object) bool {
	if OfCluster(key.Kind) {
		cluster := r.cluster(key.Namespace)
		return cluster == nil || who.SeesOf(cluster)
	}
	return who.Sees(OwnersIn(key.Namespace)...) && (object == nil || who.Sees(Owners(object)...))
}

// MayRemove is checked before the object is looked up.
func (r Rights) MayRemove(who Identity, key api.Key) error {
	if !OfCluster(key.Kind) {
		return who.MayWriteKey(key)
	}
	if err := who.MayReportAtAll(); err != nil {
		return err
	}
	cluster := r.cluster(key.Namespace)
	if cluster == nil {
		return ErrNoCluster
	}
	return who.MayReport(cluster)
}

// MayWrite is checked once the object is known.
func (r Rights) MayWrite(who Identity, object api.Object) error {
	if OfCluster(object.ObjectKind()) {
		return r.MayRemove(who, api.KeyOf(object))
	}
	return who.MayWrite(object)
}

// MayReportFrom checks reports about a cluster. To an agent restricted to some namespaces, a
// missing cluster looks like one of another namespace.
func (r Rights) MayReportFrom(who Identity, name string) error {
	if who.Role != RoleAgent {
		return nil
	}
	cluster := r.cluster(name)
	if cluster == nil && who.Bound() {
		return who.Forbidden("report for " + ClusterKey(name).String())
	}
	if cluster == nil {
		return nil // nothing runs there, which is reported later
	}
	return who.MayReport(cluster)
}

// MayRepair is checked before a damaged object is replaced or deleted. If its owners are part of
// the object, they are unknown.
func (who Identity) MayRepair(key api.Key) error {
	info, _ := api.LookupKind(key.Kind)
	if _, own := info.New().(owned); own && who.Bound() {
		return who.Forbidden("write " + key.String() + ", which is damaged, so that nobody knows whom it belongs to")
	}
	return nil
}

// MaySimulate is checked before a simulation: it must not contain objects that are not visible,
// whether they exist or not, nor references to them.
func (r Rights) MaySimulate(who Identity, request api.Simulation) error {
	if !who.Bound() {
		return nil
	}
	snapshot := r.fleet.Snapshot()
	for _, key := range request.Delete {
		if entry := snapshot.Get(key); !r.seesNew(who, key, nil) || entry != nil && !r.Sees(who, entry.Object) {
			return who.Forbidden("simulate changes of " + key.String())
		}
	}
	for i, raw := range request.Objects {
		object, _ := api.Decode(raw)
		if object == nil {
			continue // reported later
		}
		key := api.KeyOf(object)
		var before api.Object
		switch entry := snapshot.Get(key); {
		case entry == nil && !r.seesNew(who, key, object), entry != nil && !r.Sees(who, entry.Object):
			return who.Forbidden("simulate changes of " + key.String())
		case entry != nil:
			before = entry.Object
		}
		if err := r.mayRefer(who, object, before, fmt.Sprintf("objects[%d].", i)); err != nil {
			return err
		}
	}
	return nil
}

// Visible returns an explanation without candidates that are not visible, which are not counted
// either, and without the values of metrics that are not visible.
func (r Rights) Visible(who Identity, explanation *api.Explanation) *api.Explanation {
	if !who.Bound() {
		return explanation
	}
	snapshot := r.fleet.Snapshot()
	shown := *explanation
	shown.Candidates = slices.Clone(explanation.Candidates)
	who.discloseValues(shown.Candidates)
	kind := candidateKind(explanation)
	if kind == api.KindOpenStackProject {
		return &shown // in the namespace that may be read
	}
	shown.Candidates = slices.DeleteFunc(shown.Candidates, func(c api.Candidate) bool {
		entry := snapshot.Get(api.Key{Kind: kind, Name: c.Cluster})
		return entry != nil && !who.Sees(Owners(entry.Object)...)
	})
	shown.Total -= len(explanation.Candidates) - len(shown.Candidates)
	shown.Rejections = slices.DeleteFunc(slices.Clone(explanation.Rejections), func(r api.Rejection) bool {
		return r.Filter == api.OwnershipFilter
	})
	return &shown
}

// candidateKind returns the kind of an explanation's candidates.
func candidateKind(x *api.Explanation) api.Kind {
	if x.Kind == api.KindCluster {
		return api.KindCloud
	}
	if x.Kind == api.KindMagnumCluster {
		return api.KindOpenStackProject
	}
	return api.KindCluster
}

// VisibleResult returns the result of a simulation without what could not be read directly.
func (r Rights) VisibleResult(who Identity, result *api.SimulationResult) *api.SimulationResult {
	// Text from other servers is only visible to those who may write the address that it came from,
	// which a simulated object may change.
	for i, object := range result.Objects {
		result.Objects[i] = api.WithoutDetails(object)
	}
	if !who.Bound() {
		return result
	}
	shown := &api.SimulationResult{Objects: []api.Object{}, Explanations: []api.Explanation{}}
	hidden := map[api.Key]bool{}
	for _, object := range result.Objects {
		if !r.Sees(who, object) {
			hidden[api.KeyOf(object)] = true
			continue
		}
		if policy, ok := object.(*api.PropagationPolicy); ok {
			object = who.VisibleBindings(policy)
		}
		shown.Objects = append(shown.Objects, who.Disclosed(object))
	}
	// A cluster's key has no namespace that shows its owners.
	sees := func(key api.Key) bool { return who.seesKey(key) && !hidden[key] }
	for i := range result.Explanations {
		x := &result.Explanations[i]
		if sees(api.Key{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}) {
			shown.Explanations = append(shown.Explanations, *r.Visible(who, x))
		}
	}
	shown.Changes = slices.DeleteFunc(slices.Clone(result.Changes), func(c api.Change) bool { return !sees(c.Key) })
	return shown
}

// WithDetails returns an object without text from other servers, unless the identity may see it.
// Such text is the response of whatever server is at the configured address, so it is shown only to
// those who may write that address. A metric is in the same namespace as its provider, so whoever
// may write one may write the other.
func (r Rights) WithDetails(who Identity, object api.Object) api.Object {
	if !api.HasDetails(object) || r.MayWrite(who, object) == nil {
		return object
	}
	return api.WithoutDetails(object)
}
