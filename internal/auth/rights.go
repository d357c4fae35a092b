package auth

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// Rights checks access that depends on other objects. Objects that belong to a cluster have no
// namespace of their own: access depends on the cluster, and its agent may read and write them.
type Rights struct {
	fleet interface{ Snapshot() *fleet.Snapshot }
}

// At returns the Rights for the objects as they were in a snapshot.
func (r Rights) At(past *fleet.Snapshot) Rights { return Rights{frozen{past}} }

// frozen is a fleet that does not change.
type frozen struct{ at *fleet.Snapshot }

// Snapshot returns it.
func (f frozen) Snapshot() *fleet.Snapshot { return f.at }

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

// mayReadOf checks whether objects of a kind that belong to a cluster may be read. Whoever may
// report them may read them, too. The cluster may be nil.
func (who Identity) mayReadOf(kind api.Kind, cluster *api.Cluster) error {
	var owners []string
	reports := who.covers(api.VerbReport, kind)
	if cluster != nil {
		owners = Owners(cluster)
		reports = who.allowsAll(api.VerbReport, kind, owners)
	}
	if reports {
		return nil
	}
	return who.mayReadOwned(kind, owners)
}

// SeesOf reports whether objects of a kind that belong to a cluster may be shown.
func (who Identity) SeesOf(kind api.Kind, cluster *api.Cluster) bool {
	if cluster == nil {
		return who.unlimited(api.VerbRead, kind) || who.unlimited(api.VerbReport, kind)
	}
	return who.mayReadOf(kind, cluster) == nil
}

// mayChangeSomeOf checks whether objects of a kind that belong to clusters may be written or deleted
// at all. Whoever may report them may do that, too.
func (who Identity) mayChangeSomeOf(verb api.Verb, kind api.Kind) error {
	if !who.covers(verb, kind) && !who.covers(api.VerbReport, kind) {
		return who.Forbidden(string(verb) + " objects of kind " + string(kind))
	}
	return nil
}

// mayChangeOf checks whether objects of a kind that belong to a cluster may be written or deleted.
func (who Identity) mayChangeOf(verb api.Verb, kind api.Kind, cluster api.Object) error {
	if err := who.mayChangeSomeOf(verb, kind); err != nil {
		return err
	}
	if owners := Owners(cluster); !who.allowsAll(verb, kind, owners) && !who.allowsAll(api.VerbReport, kind, owners) {
		return who.Forbidden("report for " + api.KeyOf(cluster).String())
	}
	return nil
}

// MayWriteSomeOf is checked before an object that belongs to a cluster is written, and before the
// cluster is looked up.
func (who Identity) MayWriteSomeOf(kind api.Kind) error {
	return who.mayChangeSomeOf(api.VerbWrite, kind)
}

// MayWriteOf checks whether objects of a kind that belong to a cluster may be written.
func (who Identity) MayWriteOf(kind api.Kind, cluster api.Object) error {
	return who.mayChangeOf(api.VerbWrite, kind, cluster)
}

// MayReadKey is checked before the object is looked up. Without a name, it checks access to the
// collection.
func (r Rights) MayReadKey(who Identity, key api.Key) error {
	if OfCluster(key.Kind) {
		return who.mayReadOf(key.Kind, r.cluster(key.Namespace))
	}
	return who.MayReadIn(key.Kind, key.Namespace)
}

// MayRead checks whether an object may be read.
func (r Rights) MayRead(who Identity, object api.Object) error {
	if kind := object.ObjectKind(); OfCluster(kind) {
		return who.mayReadOf(kind, r.cluster(api.KeyOf(object).Namespace))
	}
	return who.MayRead(object)
}

// Reads reports whether an object may be read.
func (r Rights) Reads(who Identity, object api.Object) bool {
	kind := object.ObjectKind()
	if OfCluster(kind) {
		return who.SeesOf(kind, r.cluster(api.KeyOf(object).Namespace))
	}
	return who.Reads(kind, Owners(object)...)
}

// readsNew reports whether an object with this key could be read if it existed. That depends on
// its namespace or owners or, for objects of a cluster, on the cluster. object is nil if only the
// key is known.
func (r Rights) readsNew(who Identity, key api.Key, object api.Object) bool {
	if OfCluster(key.Kind) {
		return who.mayReadOf(key.Kind, r.cluster(key.Namespace)) == nil
	}
	return who.Reads(key.Kind, OwnersIn(key.Namespace)...) && (object == nil || who.Reads(key.Kind, Owners(object)...))
}

// MayRemove is checked before the object is looked up.
func (r Rights) MayRemove(who Identity, key api.Key) error {
	if OfCluster(key.Kind) {
		return r.mayChange(who, api.VerbDelete, key)
	}
	return who.MayDeleteKey(key)
}

// MayWrite is checked once the object is known.
func (r Rights) MayWrite(who Identity, object api.Object) error {
	return r.may(who, api.VerbWrite, object)
}

// MayDelete is checked once the object is known.
func (r Rights) MayDelete(who Identity, object api.Object) error {
	return r.may(who, api.VerbDelete, object)
}

func (r Rights) may(who Identity, verb api.Verb, object api.Object) error {
	if key := api.KeyOf(object); OfCluster(key.Kind) {
		return r.mayChange(who, verb, key)
	}
	return who.may(verb, object)
}

// mayChange checks whether an object that belongs to a cluster may be written or deleted.
func (r Rights) mayChange(who Identity, verb api.Verb, key api.Key) error {
	if err := who.mayChangeSomeOf(verb, key.Kind); err != nil {
		return err
	}
	cluster := r.cluster(key.Namespace)
	if cluster == nil {
		return ErrNoCluster
	}
	return who.mayChangeOf(verb, key.Kind, cluster)
}

// MayReportFrom checks that a report about a workload comes from somebody who may report for the
// cluster, or who may write the workload. To an agent restricted to some namespaces, a missing
// cluster looks like one of another namespace.
func (r Rights) MayReportFrom(who Identity, workload api.Key, name string) error {
	if who.MayWriteKey(workload) == nil {
		return nil
	}
	cluster := r.cluster(name)
	if cluster == nil && !who.unlimited(api.VerbReport, api.KindCluster) {
		return who.Forbidden("report for " + ClusterKey(name).String())
	}
	if cluster == nil {
		return nil // nothing runs there, which is reported later
	}
	return who.MayReport(cluster)
}

// MayRepair is checked before a damaged object is replaced or deleted. If its owners are part of
// the object, they are unknown.
func (who Identity) MayRepair(verb api.Verb, key api.Key) error {
	info, _ := api.LookupKind(key.Kind)
	if _, own := info.New().(owned); own && !who.unlimited(verb, key.Kind) {
		return who.Forbidden(string(verb) + " " + key.String() + ", which is damaged, so that its owner is unknown")
	}
	return nil
}

// MaySimulate is checked before a simulation: it must not contain objects that are not visible,
// whether they exist or not, nor references to them.
func (r Rights) MaySimulate(ctx context.Context, who Identity, request api.Simulation) error {
	if who.ReadsAll() {
		return nil
	}
	snapshot := r.fleet.Snapshot()
	given := make([]api.Object, len(request.Objects))
	for _, key := range request.Delete {
		if entry := snapshot.Get(key); !r.readsNew(who, key, nil) || entry != nil && !r.Reads(who, entry.Object) {
			return who.Forbidden("simulate changes of " + key.String())
		}
	}
	for i, raw := range request.Objects {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("check the rights for a simulation: %w", err)
		}
		given[i], _ = api.Decode(raw)
	}
	names := r.metricNames(who, given)
	for i, object := range given {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("check the rights for a simulation: %w", err)
		}
		if object == nil {
			continue // reported later
		}
		key := api.KeyOf(object)
		var before api.Object
		switch entry := snapshot.Get(key); {
		case entry == nil && !r.readsNew(who, key, object), entry != nil && !r.Reads(who, entry.Object):
			return who.Forbidden("simulate changes of " + key.String())
		case entry != nil:
			before = entry.Object
		}
		if err := r.mayRefer(names, object, before, fmt.Sprintf("objects[%d].", i)); err != nil {
			return err
		}
	}
	return nil
}

// Visible returns an explanation without candidates that are not visible, which are not counted
// either, and without the values of metrics that are not visible.
func (r Rights) Visible(who Identity, explanation *api.Explanation) *api.Explanation {
	if who.ReadsAll() {
		return explanation
	}
	snapshot := r.fleet.Snapshot()
	shown := *explanation
	shown.Candidates = slices.Clone(explanation.Candidates)
	who.discloseValues(shown.Candidates)
	candidate := api.Key{Kind: candidateKind(explanation)}
	if candidate.Kind == api.KindOpenStackProject {
		candidate.Namespace = explanation.Namespace
	}
	hidden := func(name string) bool {
		candidate.Name = name
		if entry := snapshot.Get(candidate); entry != nil {
			return !who.Reads(candidate.Kind, Owners(entry.Object)...)
		}
		return !who.Reads(candidate.Kind)
	}
	shown.Candidates = slices.DeleteFunc(shown.Candidates, func(c api.Candidate) bool { return hidden(c.Cluster) })
	withheld := func(name string) bool {
		return hidden(name) || slices.ContainsFunc(shown.Candidates, func(c api.Candidate) bool { return c.Cluster == name && c.Score == nil })
	}
	if m := explanation.Margin; m != nil && (withheld(m.From) || withheld(m.To)) {
		shown.Margin = nil
	}
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
	if who.ReadsAll() {
		return result
	}
	shown := &api.SimulationResult{Objects: []api.Object{}, Explanations: []api.Explanation{}}
	hidden := map[api.Key]bool{}
	for _, object := range result.Objects {
		if !r.Reads(who, object) {
			hidden[api.KeyOf(object)] = true
			continue
		}
		if policy, ok := object.(*api.PropagationPolicy); ok {
			object = who.VisibleBindings(policy)
		}
		shown.Objects = append(shown.Objects, r.Disclosed(who, object))
	}
	// A cluster's key has no namespace that shows its owners.
	sees := func(key api.Key) bool { return who.Reads(key.Kind, OwnersIn(key.Namespace)...) && !hidden[key] }
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
