package auth

import (
	"iter"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// A placement names metrics without their namespaces, as do the constraints that choose a cloud or
// a project. Which metric is meant depends on the cluster, and it may belong to a namespace that
// the writer may not read. Whoever may name it learns its value by asking often enough.

// seesMetric reports whether the value of a metric that an object lists may be shown.
func (who Identity) seesMetric(metric api.Key) bool {
	return metric.Namespace == "" || who.sees(api.KindMetric, OwnersIn(metric.Namespace)...)
}

// metricNames finds names of metrics that a writer may not read.
type metricNames struct {
	rights Rights
	who    Identity
	given  []api.Object // of a simulation; they come first, and may be nil
	found  map[metricName]api.Key
}

// metricName is a name as an object of a namespace uses it for what rates objects of a kind.
type metricName struct {
	ratedBy         api.Kind
	namespace, name string
}

func (r Rights) metricNames(who Identity, given []api.Object) *metricNames {
	return &metricNames{r, who, given, map[metricName]api.Key{}}
}

// unreadable returns the new names in an object that mean a metric that its writer may not read, as
// references.
func (m *metricNames) unreadable(object, before api.Object) []api.Reference {
	if m.who.SeesEvery(api.KindMetric) {
		return nil
	}
	known := map[string]bool{}
	if before != nil {
		for _, n := range api.NamedMetrics(before) {
			known[n.Use] = true
		}
	}
	var refused []api.Reference
	for _, n := range api.NamedMetrics(object) {
		if known[n.Use] {
			continue
		}
		if metric := m.hidden(metricName{ratedBy(object), namespaceOf(object), n.Name}); metric != (api.Key{}) {
			refused = append(refused, api.Reference{Field: n.Field, Key: metric})
		}
	}
	return refused
}

// hidden returns the first metric that a name means and that may not be read, or the zero Key.
func (m *metricNames) hidden(name metricName) api.Key {
	metric, known := m.found[name]
	if known {
		return metric
	}
	for listed := range m.rights.lists(m.who, name.ratedBy, name.namespace, m.given) {
		if means, hidden := m.who.meansHidden(name.namespace, name.name, listed); hidden {
			metric = means
			break
		}
	}
	m.found[name] = metric
	return metric
}

// meansHidden returns the metric that a name means, of those listed, if its value may not be shown.
// An empty name may mean each of them.
func (who Identity) meansHidden(namespace, name string, listed []api.MetricRef) (metric api.Key, hidden bool) {
	if name != "" {
		ref, ok := api.MetricNamed(namespace, name, listed)
		return ref.Key(), ok && !who.seesMetric(ref.Key())
	}
	for _, ref := range listed {
		if !who.seesMetric(ref.Key()) {
			return ref.Key(), true
		}
	}
	return api.Key{}, false
}

// namespaceOf returns the namespace in which names of metrics in an object are looked up.
func namespaceOf(object api.Object) string {
	if cluster, ok := object.(*api.Cluster); ok {
		return cluster.SoleOwner()
	}
	return object.Meta().Namespace
}

// ratedBy returns the kind of the objects whose metrics an object names.
func ratedBy(object api.Object) api.Kind {
	switch object.(type) {
	case *api.Cluster:
		return api.KindCloud
	case *api.MagnumCluster:
		return api.KindOpenStackProject
	}
	return api.KindCluster
}

// lists yields the metrics of each object of a kind that a reader may see, first of those given. Of
// projects, only those of the namespace count.
func (r Rights) lists(who Identity, kind api.Kind, namespace string, given []api.Object) iter.Seq[[]api.MetricRef] {
	if kind != api.KindOpenStackProject {
		namespace = ""
	}
	snapshot := r.fleet.Snapshot()
	return func(yield func([]api.MetricRef) bool) {
		for _, object := range given {
			if object != nil && object.ObjectKind() == kind && !yield(listedBy(snapshot, object)) {
				return
			}
		}
		for entry := range snapshot.All(kind, namespace) {
			if who.Reads(kind, Owners(entry.Object)...) && !yield(listedBy(snapshot, entry.Object)) {
				return
			}
		}
	}
}

// listedBy returns the metrics that rate an object. A cluster may inherit those of its cloud.
func listedBy(snapshot *fleet.Snapshot, object api.Object) []api.MetricRef {
	switch o := object.(type) {
	case *api.Cluster:
		listed := o.Spec.Metrics
		if o.Status.Cloud == "" {
			return listed
		}
		if entry := snapshot.Get(api.Key{Kind: api.KindCloud, Name: o.Status.Cloud}); entry != nil {
			listed = append(listed[:len(listed):len(listed)], listedBy(snapshot, entry.Object)...)
		}
		return listed
	case *api.Cloud:
		return o.Spec.Metrics
	case *api.OpenStackProject:
		return o.Spec.Metrics
	}
	return nil
}

// VisibleScores returns the decisions of a placement without the scores that contain the value of
// a metric that the reader may not see. It is a copy if something is left out.
func (r Rights) VisibleScores(who Identity, placement *api.Placement) []api.Decision {
	decisions := placement.Status.Decisions
	if who.SeesEvery(api.KindMetric) {
		return decisions
	}
	snapshot := r.fleet.Snapshot()
	shown := decisions
	for i := range decisions {
		entry := snapshot.Get(ClusterKey(decisions[i].Cluster))
		if entry == nil || !who.ratedByHidden(placement, listedBy(snapshot, entry.Object)) {
			continue
		}
		if &shown[0] == &decisions[0] {
			shown = slices.Clone(decisions)
		}
		shown[i].Score, shown[i].Withheld = 0, true
	}
	return shown
}

// visibleMargin returns the margin of a placement, or nil if the reader may not see one of its clusters or
// a metric that is part of their scores.
func (r Rights) visibleMargin(who Identity, placement *api.Placement) *api.DecisionMargin {
	margin := placement.Status.Margin
	if margin == nil || who.SeesEvery(api.KindMetric) && who.SeesEvery(api.KindCluster) {
		return margin
	}
	snapshot := r.fleet.Snapshot()
	for _, name := range [...]string{margin.From, margin.To} {
		entry := snapshot.Get(ClusterKey(name))
		if entry == nil || !r.Reads(who, entry.Object) || who.ratedByHidden(placement, listedBy(snapshot, entry.Object)) {
			return nil
		}
	}
	return margin
}

// ratedByHidden reports whether the score of a cluster contains the value of a metric that may not
// be shown.
func (who Identity) ratedByHidden(placement *api.Placement, listed []api.MetricRef) bool {
	if placement.Spec.Strategy == api.StrategyMetrics {
		_, hidden := who.meansHidden("", "", listed)
		return hidden
	}
	if placement.Spec.PrioritizerPolicy == nil {
		return false
	}
	for _, c := range placement.Spec.PrioritizerPolicy.Configurations {
		if c.Type != api.PrioritizerMetric {
			continue
		}
		if _, hidden := who.meansHidden(placement.Metadata.Namespace, c.Name, listed); hidden {
			return true
		}
	}
	return false
}
