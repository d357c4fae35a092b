package gitops

import (
	"iter"
	"slices"
	"strconv"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// maxAge is how long ago the store must have been heard of. A server that is cut off from it does
// not know what another one has decided since, and must not undo that.
const maxAge = 10 * time.Second

// objects is the part of *fleet.Snapshot that answers are made from.
type objects interface {
	Get(key api.Key) *fleet.Entry
	All(kind api.Kind, namespace string) iter.Seq[*fleet.Entry]
	Damaged(key api.Key) *fleet.Damage
	AllDamaged() []*fleet.Damage
}

// source is what an answer is made from.
type source struct {
	objects objects
	// age is how long ago the store was last known to have nothing newer.
	age time.Duration
	// mayRead returns an error if the controller must not read an object.
	mayRead func(api.Object) error
	// shown returns an object as the controller sees it.
	shown func(api.Object) api.Object
}

// undecided refuses because an answer would make the controller delete what it should keep.
func undecided(format string, args ...any) *problem.Problem {
	return problem.New(api.ProblemNoAnswer, format, args...).WithHeader("Retry-After", "5")
}

// answer returns the clusters of the decisions that a query names or selects, sorted by ID. The
// error is a *problem.Problem, or that of mayRead.
func (s *source) answer(q *query) ([]api.DecidedCluster, error) {
	if s.age > maxAge {
		return nil, undecided("this server has not heard of its store for %s, and does not know whether its decisions are still the newest", s.age.Round(time.Second))
	}
	decided, err := s.decided(q)
	if err != nil {
		return nil, err
	}
	answer := []api.DecidedCluster{}
	for _, object := range decided {
		rows, err := s.rows(q, object)
		if err != nil {
			return nil, err
		}
		answer = append(answer, rows...)
	}
	slices.SortFunc(answer, func(a, b api.DecidedCluster) int { return strings.Compare(a.ID, b.ID) })
	return answer, nil
}

// decided returns the placements or workloads whose decisions are asked for.
func (s *source) decided(q *query) ([]api.Object, error) {
	named, err := s.named(q)
	if err != nil || q.Kind != api.DecisionOfPolicy {
		return named, err
	}
	if err := s.noneLost(api.KindWorkload, q.namespace); err != nil {
		return nil, err
	}
	var decided []api.Object
	for _, object := range named {
		policy := api.KeyOf(object)
		followers, err := s.readable(api.KindWorkload, q.namespace, func(object api.Object) bool {
			workload, ok := object.(*api.Workload)
			return ok && api.PolicyKey(workload.Status.Policy) == policy
		})
		switch {
		case err != nil:
			return nil, err
		case len(followers) == 0 && !q.AllowEmpty:
			return nil, undecided("%s: no workload in namespace %q follows it", policy, q.namespace)
		}
		decided = append(decided, followers...)
	}
	return decided, nil
}

// named returns the objects that the query names or selects, at least one.
func (s *source) named(q *query) ([]api.Object, error) {
	if q.selector == nil {
		key := q.named()
		entry, damaged := s.objects.Get(key), s.objects.Damaged(key) != nil
		if entry == nil || damaged {
			return nil, problem.NotFound(key, damaged)
		}
		return []api.Object{entry.Object}, s.mayRead(entry.Object)
	}
	kind := q.objectKind()
	if err := s.noneLost(kind, q.namespace); err != nil {
		return nil, err
	}
	selected, err := s.readable(kind, q.namespace, func(object api.Object) bool {
		return q.selector.Matches(labels.Set(object.Meta().Labels))
	})
	if err == nil && len(selected) == 0 {
		err = problem.New(api.ProblemNotFound, "there are none of %s", q)
	}
	return selected, err
}

// readable returns the objects of a namespace that are wanted. It fails if one of them must not be
// read: an answer without it would look as if it were gone.
func (s *source) readable(kind api.Kind, namespace string, wanted func(api.Object) bool) ([]api.Object, error) {
	var found []api.Object
	for entry := range s.objects.All(kind, namespace) {
		if !wanted(entry.Object) {
			continue
		}
		if err := s.mayRead(entry.Object); err != nil {
			return nil, err
		}
		found = append(found, entry.Object)
	}
	return found, nil
}

// noneLost refuses if an object is damaged, so that nobody knows whether it would be selected.
func (s *source) noneLost(kind api.Kind, namespace string) error {
	for _, d := range s.objects.AllDamaged() {
		if d.Key.Kind == kind && d.Key.Namespace == namespace {
			return problem.Damaged(d.Key)
		}
	}
	return nil
}

// rows returns the clusters of one decision.
func (s *source) rows(q *query, stored api.Object) ([]api.DecidedCluster, error) {
	if err := s.current(stored); err != nil {
		return nil, err
	}
	object := s.shown(stored)
	all := clustersOf(object)
	rows, err := q.asked(object, all)
	if err != nil {
		return nil, err
	}
	if len(rows) == 0 {
		return nil, q.mayBeEmpty(object, len(all))
	}
	for i := range rows {
		if err := s.describe(q, object, &rows[i]); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// current refuses if a decision does not answer what users have written last.
func (s *source) current(object api.Object) error {
	var observed int64
	switch o := object.(type) {
	case *api.Placement:
		observed = o.Status.ObservedGeneration
	case *api.Workload:
		observed = o.Status.ObservedGeneration
		if err := s.answersPolicy(o); err != nil {
			return err
		}
	}
	if written := object.Meta().Generation; observed != written {
		return undecided("%s has not been decided yet since it was written: its generation is %d, that of its decision %d", api.KeyOf(object), written, observed)
	}
	return nil
}

// answersPolicy refuses if the policy that a workload follows has changed since.
func (s *source) answersPolicy(w *api.Workload) error {
	if w.Status.Policy == "" {
		return nil
	}
	key := api.PolicyKey(w.Status.Policy)
	if s.objects.Damaged(key) != nil {
		return problem.Damaged(key)
	}
	entry := s.objects.Get(key)
	if entry == nil || entry.Object.Meta().UID != w.Status.PolicyUID || entry.Object.Meta().Generation != w.Status.PolicyGeneration {
		return undecided("%s has not been decided yet since %s, which it follows, was written or deleted", api.KeyOf(w), key)
	}
	return nil
}

// asked returns those clusters of a decision that the query asks for.
func (q *query) asked(object api.Object, all []api.DecidedCluster) ([]api.DecidedCluster, error) {
	if p, ok := object.(*api.Placement); ok && q.DecisionGroup != "" && !hasGroup(p, q.DecisionGroup) {
		return nil, problem.New(api.ProblemNotFound, "%s has no decision group %q", api.KeyOf(p), q.DecisionGroup)
	}
	var asked []api.DecidedCluster
	for _, one := range all {
		if (one.State == api.ClusterServing || *q.IncludeEvicting) && (q.DecisionGroup == "" || one.DecisionGroup == q.DecisionGroup) {
			asked = append(asked, one)
		}
	}
	return asked, nil
}

func hasGroup(p *api.Placement, name string) bool {
	return p.Spec.DecisionStrategy != nil &&
		slices.ContainsFunc(p.Spec.DecisionStrategy.DecisionGroups, func(g api.DecisionGroup) bool { return g.Name == name })
}

// unsettled are the conditions under which a decision says where the object was, not where it should
// be.
var unsettled = []string{
	api.ConditionFaulted, api.ConditionMoveHeld, api.ConditionMisconfigured, api.ConditionMetricsUnread, api.ConditionExpressionsPending,
}

// mayBeEmpty refuses if the answer about a decision must not be that it has no clusters. has is how
// many it has that the query does not ask for.
func (q *query) mayBeEmpty(object api.Object, has int) error {
	key := api.KeyOf(object)
	conditions := *api.ConditionsOf(object)
	for _, kind := range unsettled {
		if c := api.FindCondition(conditions, kind); c != nil && c.Status == api.ConditionTrue {
			return undecided("%s: its decision is not updated for now: %s", key, c.Message)
		}
	}
	if q.AllowEmpty || wantsNone(object) {
		return nil
	}
	const allow = "; allow_empty permits an answer without clusters, which deletes everything"
	switch scheduled := api.FindCondition(conditions, api.ConditionScheduled); {
	case has > 0 && q.DecisionGroup != "":
		return undecided("%s: none of its %d clusters is in decision group %q"+allow, key, has, q.DecisionGroup)
	case has > 0:
		return undecided("%s is leaving its clusters, and include_evicting is false"+allow, key)
	case scheduled == nil:
		return undecided("%s has no clusters: it has not been decided yet"+allow, key)
	default:
		return undecided("%s has no clusters: %s"+allow, key, scheduled.Message)
	}
}

// wantsNone reports whether the spec itself says that there are to be no clusters.
func wantsNone(object api.Object) bool {
	var wanted *int64
	switch o := object.(type) {
	case *api.Placement:
		wanted = o.Spec.NumberOfClusters
	case *api.Workload:
		wanted = o.Spec.Replicas
	}
	return wanted != nil && *wanted == 0
}

// clustersOf returns the clusters of a decision without what they are: those of a placement best
// first, those of a workload by name, and last those that it is leaving.
func clustersOf(object api.Object) []api.DecidedCluster {
	var all []api.DecidedCluster
	var revision int64
	switch o := object.(type) {
	case *api.Placement:
		all, revision = placementClusters(o), o.Status.DecisionRevision
	case *api.Workload:
		all, revision = workloadClusters(o), o.Status.DecisionRevision
	}
	meta := object.Meta()
	for i := range all {
		one := &all[i]
		one.ID = meta.Name + "." + one.Cluster
		one.DecisionNamespace, one.DecisionName, one.DecisionIndex, one.Revision = meta.Namespace, meta.Name, int64(i), strconv.FormatInt(revision, 10)
	}
	return all
}

func placementClusters(p *api.Placement) []api.DecidedCluster {
	details := make(map[string]*api.Decision, len(p.Status.Decisions))
	for i := range p.Status.Decisions {
		details[p.Status.Decisions[i].Cluster] = &p.Status.Decisions[i]
	}
	all := make([]api.DecidedCluster, 0, len(p.Status.Clusters))
	for _, name := range p.Status.Clusters {
		one := api.DecidedCluster{Cluster: name, State: api.ClusterServing}
		if d := details[name]; d != nil {
			one.Rank, one.DecisionGroup, one.GroupIndex = &d.Rank, d.Group, d.GroupIndex
			if !d.Withheld {
				one.Score = &d.Score
			}
		}
		all = append(all, one)
	}
	return all
}

func workloadClusters(w *api.Workload) []api.DecidedCluster {
	replicas := func(n int64) *int64 {
		if !w.Spec.Replicated() {
			return nil
		}
		return &n
	}
	all := make([]api.DecidedCluster, 0, len(w.Status.Clusters)+len(w.Status.Evictions))
	for _, c := range w.Status.Clusters {
		all = append(all, api.DecidedCluster{Cluster: c.Name, State: api.ClusterServing, Replicas: replicas(c.Replicas), OnDemand: c.OnDemand, Spot: c.Spot})
	}
	serving := w.Status.ReplicasByCluster()
	for _, e := range w.Status.Evictions {
		if _, serves := serving[e.Cluster]; !serves && e.PurgeMode != api.PurgeDirectly {
			all = append(all, api.DecidedCluster{Cluster: e.Cluster, State: api.ClusterEvicting, Replicas: replicas(e.Replicas)})
		}
	}
	return all
}

// describe adds to a row what the cluster is.
func (s *source) describe(q *query, object api.Object, row *api.DecidedCluster) error {
	key := api.Key{Kind: api.KindCluster, Name: row.Cluster}
	entry := s.objects.Get(key)
	if entry == nil {
		if s.objects.Damaged(key) != nil {
			return problem.Damaged(key)
		}
		return undecided("%s is on %s, which does not exist any more: it is decided again", api.KeyOf(object), key)
	}
	if err := s.mayRead(entry.Object); err != nil {
		return err
	}
	cluster, ok := s.shown(entry.Object).(*api.Cluster)
	if !ok {
		return problem.Damaged(key)
	}
	spec, status := &cluster.Spec, &cluster.Status
	row.Region, row.Zones = cluster.Region(), cluster.Zones()
	row.Provider, row.CloudProvider = spec.CloudProvider, spec.CloudProvider
	row.Labels, row.Claims = cluster.Metadata.Labels, spec.Claims
	if len(status.Labels) > 0 {
		row.Labels = status.Labels
	}
	// Templates read their entries: they are written as [] and {}, not as null.
	if row.Zones == nil {
		row.Zones = []string{}
	}
	for _, m := range []*map[string]string{&row.Labels, &row.Claims} {
		if *m == nil {
			*m = map[string]string{}
		}
	}
	for _, from := range []struct {
		name, fact string
		to         *string
	}{{"server_from", q.ServerFrom, &row.Server}, {"argocd_name_from", q.ArgoCDNameFrom, &row.ArgoCDName}} {
		of, name, given := strings.Cut(from.fact, ".")
		if !given {
			continue
		}
		facts := row.Labels
		if of == "claims" {
			facts = row.Claims
		}
		if *from.to = facts[name]; *from.to == "" {
			return undecided("%s: %s has no %s, which %s names: set it on the cluster", api.KeyOf(object), key, from.fact, from.name)
		}
	}
	return nil
}
