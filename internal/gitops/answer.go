package gitops

import (
	"iter"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// maxAge is how long ago the store must have been heard of. A server that is cut off from it does
// not know what another one has decided since, and must not undo that.
const maxAge = 10 * time.Second

// ProfileClaim is the claim of a cluster that names its ClusterProfile in the Kubernetes hub, as
// namespace/name.
const ProfileClaim = "multicluster.x-k8s.io/cluster-profile"

// PlacementLabel is the label of an object in the Kubernetes hub that names the placement, of the
// same namespace, whose decision it is or follows.
const PlacementLabel = "scheduler/placement"

// Objects is the part of *fleet.Snapshot that answers are made from.
type Objects interface {
	Get(key api.Key) *fleet.Entry
	All(kind api.Kind, namespace string) iter.Seq[*fleet.Entry]
	Damaged(key api.Key) *fleet.Damage
	AllDamaged() []*fleet.Damage
}

// Source is what an answer is made from.
type Source struct {
	Objects Objects
	// Age is how long ago the store was last known to have nothing newer.
	Age time.Duration
	// MayRead returns an error if the controller must not read an object.
	MayRead func(api.Object) error
}

// Answer returns the clusters of the decisions that a query names or selects, sorted by ID. The
// error is a *Refusal, or that of MayRead.
func (s *Source) Answer(q *Query) ([]api.DecidedCluster, error) {
	if s.Age > maxAge {
		return nil, undecided("this server has not heard of its store for %s, and does not know whether its decisions are still the newest", s.Age.Round(time.Second))
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

// rows returns the clusters of one decision.
func (s *Source) rows(q *Query, object api.Object) ([]api.DecidedCluster, error) {
	seats, err := s.seats(q, object)
	if err != nil {
		return nil, err
	}
	for i := range seats {
		if err := s.describe(q, object, &seats[i]); err != nil {
			return nil, err
		}
	}
	return seats, nil
}

// Decision returns the clusters of one placement or workload, best first, and not what they are. It
// refuses as Answer does.
func (s *Source) Decision(key api.Key) ([]api.DecidedCluster, error) {
	q := &Query{kind: api.DecisionOfPlacement, namespace: key.Namespace, name: key.Name, includeEvicting: true}
	if key.Kind == api.KindWorkload {
		q.kind = api.DecisionOfWorkload
	}
	named, err := s.named(q)
	if err != nil {
		return nil, err
	}
	return s.seats(q, named[0])
}

// seats returns the clusters of one decision, without what they are.
func (s *Source) seats(q *Query, object api.Object) ([]api.DecidedCluster, error) {
	if err := s.current(object); err != nil {
		return nil, err
	}
	seats, err := q.seats(object)
	if err == nil && len(seats) == 0 {
		err = q.maybeEmpty(object)
	}
	return seats, err
}

// decided returns the placements or workloads whose decisions are asked for.
func (s *Source) decided(q *Query) ([]api.Object, error) {
	named, err := s.named(q)
	if err != nil || q.kind != api.DecisionOfPolicy {
		return named, err
	}
	if err := s.anyLost(api.KindWorkload, q.namespace); err != nil {
		return nil, err
	}
	var decided []api.Object
	for _, object := range named {
		before := len(decided)
		for entry := range s.Objects.All(api.KindWorkload, q.namespace) {
			workload, ok := entry.Object.(*api.Workload)
			if !ok || api.PolicyKey(workload.Status.Policy) != api.KeyOf(object) {
				continue
			}
			if err := s.MayRead(workload); err != nil {
				return nil, err
			}
			decided = append(decided, workload)
		}
		if len(decided) == before && !q.allowEmpty {
			return nil, undecided("%s: no workload in namespace %q follows it", api.KeyOf(object), q.namespace)
		}
	}
	return decided, nil
}

// named returns the objects that the query names or selects, at least one.
func (s *Source) named(q *Query) ([]api.Object, error) {
	kind := q.objectKind()
	if q.selector == nil {
		key, _ := q.Named()
		entry := s.Objects.Get(key)
		switch {
		case s.Objects.Damaged(key) != nil:
			return nil, damaged(key)
		case entry == nil:
			return nil, refuse(api.ProblemNotFound, "%s does not exist", key)
		}
		return []api.Object{entry.Object}, s.MayRead(entry.Object)
	}
	if err := s.anyLost(kind, q.namespace); err != nil {
		return nil, err
	}
	var named []api.Object
	for entry := range s.Objects.All(kind, q.namespace) {
		if !q.selects(entry.Object.Meta()) {
			continue
		}
		if err := s.MayRead(entry.Object); err != nil {
			return nil, err
		}
		named = append(named, entry.Object)
	}
	if len(named) == 0 {
		return nil, refuse(api.ProblemNotFound, "there are none of %s", q)
	}
	return named, nil
}

// anyLost refuses if an object is damaged so that nobody knows whether it would be selected.
func (s *Source) anyLost(kind api.Kind, namespace string) error {
	for _, d := range s.Objects.AllDamaged() {
		if d.Key.Kind == kind && d.Key.Namespace == namespace {
			return damaged(d.Key)
		}
	}
	return nil
}

// current refuses if a decision does not answer what users have written last.
func (s *Source) current(object api.Object) error {
	key := api.KeyOf(object)
	if s.Objects.Damaged(key) != nil {
		return damaged(key)
	}
	if w, ok := object.(*api.Workload); ok {
		if err := s.answersPolicy(w); err != nil {
			return err
		}
	}
	if observed := observedGeneration(object); observed != object.Meta().Generation {
		return undecided("%s has not been decided yet since it was written: its generation is %d, that of its decision %d", key, object.Meta().Generation, observed)
	}
	return nil
}

// observedGeneration returns the generation of the spec that a decision answers.
func observedGeneration(object api.Object) int64 {
	switch o := object.(type) {
	case *api.Placement:
		return o.Status.ObservedGeneration
	case *api.Workload:
		return o.Status.ObservedGeneration
	}
	return 0
}

// answersPolicy refuses if the policy that a workload follows has changed since.
func (s *Source) answersPolicy(w *api.Workload) error {
	if w.Status.Policy == "" {
		return nil
	}
	key := api.PolicyKey(w.Status.Policy)
	entry := s.Objects.Get(key)
	if s.Objects.Damaged(key) != nil {
		return damaged(key)
	}
	if entry == nil || entry.Object.Meta().UID != w.Status.PolicyUID || entry.Object.Meta().Generation != w.Status.PolicyGeneration {
		return undecided("%s has not been decided yet since %s, which it follows, was written or deleted", api.KeyOf(w), key)
	}
	return nil
}

// maybeEmpty refuses if the answer about a decision must not be that it has no clusters.
func (q *Query) maybeEmpty(object api.Object) error {
	key := api.KeyOf(object)
	if c := held(object); c != nil {
		return undecided("%s: its decision is not updated for now: %s", key, c.Message)
	}
	if q.allowEmpty || wantsNone(object) {
		return nil
	}
	const ask = "; allow_empty permits an answer without clusters, which deletes everything"
	seats := seatsOf(object)
	if q.group != "" && len(seats) > 0 {
		return undecided("%s: none of its %d clusters is in decision group %q"+ask, key, len(seats), q.group)
	}
	why := "no cluster fits"
	switch c := scheduled(object); {
	case c == nil:
		why = "it has not been decided yet"
	case c.Status == api.ConditionTrue:
		why = "it moves to others in steps"
	case c.Message != "":
		why = c.Message
	}
	if len(seats) > 0 {
		why += "; it is leaving its clusters, and include_evicting is false"
	}
	return undecided("%s has no clusters: %s"+ask, key, why)
}

// held returns the condition that says why a decision is not updated for now, or nil.
func held(object api.Object) *api.Condition {
	for _, kind := range []string{api.ConditionFaulted, api.ConditionMoveHeld} {
		if c := api.FindCondition(*api.ConditionsOf(object), kind); c != nil && c.Status == api.ConditionTrue {
			return c
		}
	}
	return nil
}

// wantsNone reports whether the spec itself says that there are to be no clusters.
func wantsNone(object api.Object) bool {
	switch o := object.(type) {
	case *api.Placement:
		return o.Spec.NumberOfClusters != nil && *o.Spec.NumberOfClusters == 0
	case *api.Workload:
		return o.Spec.Replicas != nil && *o.Spec.Replicas == 0
	}
	return false
}

func scheduled(object api.Object) *api.Condition {
	return api.FindCondition(*api.ConditionsOf(object), api.ConditionScheduled)
}

// describe adds to a row what the cluster is, as decisions see it.
func (s *Source) describe(q *Query, object api.Object, row *api.DecidedCluster) error {
	key := api.Key{Kind: api.KindCluster, Name: row.Cluster}
	entry := s.Objects.Get(key)
	if entry == nil {
		if s.Objects.Damaged(key) != nil {
			return damaged(key)
		}
		return undecided("%s is on %s, which does not exist any more: it is decided again", api.KeyOf(object), key)
	}
	if err := s.MayRead(entry.Object); err != nil {
		return err
	}
	cluster, ok := entry.Object.(*api.Cluster)
	if !ok {
		return damaged(key)
	}
	cloud, err := s.cloudOf(cluster)
	if err != nil {
		return err
	}
	cluster = columns.Effective(cluster, cloud)
	row.ID = row.DecisionName + "." + row.Cluster
	row.Region, row.Zones = cluster.Spec.Region, append([]string{}, cluster.Spec.Zones...)
	row.Provider, row.CloudProvider = cluster.Spec.CloudProvider, cluster.Spec.CloudProvider
	row.Labels, row.Claims = orEmpty(cluster.Metadata.Labels), orEmpty(cluster.Spec.Claims)
	for _, from := range []struct {
		name, text string
		fact       api.ClusterFact
		to         *string
	}{{"server_from", q.serverFromText, q.serverFrom, &row.Server}, {"argocd_name_from", q.argoFromText, q.argocdFrom, &row.ArgoCDName}} {
		if from.text == "" {
			continue
		}
		if *from.to = from.fact.Of(cluster); *from.to == "" {
			return undecided("%s: %s has no %s, which %s names: set it on the cluster", api.KeyOf(object), key, from.text, from.name)
		}
	}
	return nil
}

// cloudOf returns the cloud that a cluster has labels and zones from, or nil.
func (s *Source) cloudOf(cluster *api.Cluster) (*api.Cloud, error) {
	key := api.Key{Kind: api.KindCloud, Name: cluster.Status.Cloud}
	if cluster.Spec.OpenStack != nil {
		key.Name = cluster.Spec.OpenStack.Cloud
	}
	if key.Name == "" {
		return nil, nil
	}
	entry := s.Objects.Get(key)
	if entry == nil {
		if s.Objects.Damaged(key) != nil {
			return nil, damaged(key)
		}
		return nil, nil
	}
	cloud, ok := entry.Object.(*api.Cloud)
	if !ok || cluster.Spec.OpenStack != nil && !cloud.Serves(cluster) {
		return nil, nil
	}
	return cloud, nil
}

// orEmpty returns a map that is written as {}: templates read its entries.
func orEmpty(m map[string]string) map[string]string {
	if m == nil {
		return map[string]string{}
	}
	return m
}

// Differ reports whether answers about two versions of an object, either of which may be nil, may
// differ.
func Differ(old, now api.Object) bool {
	if old == nil || now == nil {
		return old != now
	}
	return decides(old) != decides(now) || !reflect.DeepEqual(seatsOf(old), seatsOf(now))
}

// facts are what an answer depends on besides clusters.
type facts struct {
	current, none, fits, held bool
	policy                    string
}

func decides(object api.Object) facts {
	f := facts{current: observedGeneration(object) == object.Meta().Generation, none: wantsNone(object)}
	if w, ok := object.(*api.Workload); ok {
		f.policy = w.Status.Policy
	}
	if c := scheduled(object); c != nil {
		f.fits = c.Status == api.ConditionTrue
	}
	f.held = held(object) != nil
	return f
}

// seats returns the clusters of a decision that the query asks for, without what the clusters are.
func (q *Query) seats(object api.Object) ([]api.DecidedCluster, error) {
	if p, ok := object.(*api.Placement); ok && q.group != "" && !hasGroup(p, q.group) {
		return nil, refuse(api.ProblemNotFound, "%s has no decision group %q", api.KeyOf(p), q.group)
	}
	return slices.DeleteFunc(seatsOf(object), func(one api.DecidedCluster) bool {
		return one.State == api.ClusterEvicting && !q.includeEvicting || q.group != "" && one.DecisionGroup != q.group
	}), nil
}

// seatsOf returns all clusters of a decision, without what the clusters are.
func seatsOf(object api.Object) []api.DecidedCluster {
	var all []api.DecidedCluster
	switch o := object.(type) {
	case *api.Placement:
		all = placementSeats(o)
	case *api.Workload:
		all = workloadSeats(o)
	}
	meta := object.Meta()
	for i := range all {
		all[i].DecisionNamespace, all[i].DecisionName, all[i].DecisionIndex = meta.Namespace, meta.Name, int64(i)
	}
	return all
}

func hasGroup(p *api.Placement, name string) bool {
	return p.Spec.DecisionStrategy != nil &&
		slices.ContainsFunc(p.Spec.DecisionStrategy.DecisionGroups, func(g api.DecisionGroup) bool { return g.Name == name })
}

// phase returns the state of a cluster that stands. During a rollout, one that is not meant any more
// stands until its successor is healthy.
func phase(rollout *api.RolloutStatus, cluster string) api.ClusterPhase {
	if rollout == nil || slices.ContainsFunc(rollout.Target, func(t api.RolloutTarget) bool { return t.Cluster == cluster }) {
		return api.ClusterServing
	}
	return api.ClusterEvicting
}

// placementSeats returns the clusters of a placement, best first.
func placementSeats(p *api.Placement) []api.DecidedCluster {
	details := make(map[string]*api.Decision, len(p.Status.Decisions))
	for i := range p.Status.Decisions {
		details[p.Status.Decisions[i].Cluster] = &p.Status.Decisions[i]
	}
	seats := make([]api.DecidedCluster, 0, len(p.Status.Clusters))
	for _, name := range p.Status.Clusters {
		one := api.DecidedCluster{Cluster: name, State: phase(p.Status.Rollout, name), Revision: strconv.FormatInt(p.Status.DecisionRevision, 10)}
		if d := details[name]; d != nil {
			one.Rank, one.Score, one.DecisionGroup, one.GroupIndex = &d.Rank, &d.Score, d.Group, d.GroupIndex
		}
		seats = append(seats, one)
	}
	return seats
}

// workloadSeats returns the clusters of a workload by name, and then those that it is leaving.
func workloadSeats(w *api.Workload) []api.DecidedCluster {
	revision := strconv.FormatInt(w.Status.DecisionRevision, 10)
	replicas := func(n int64) *int64 {
		if !w.Spec.Replicated() {
			return nil
		}
		return &n
	}
	seats := make([]api.DecidedCluster, 0, len(w.Status.Clusters)+len(w.Status.Evictions))
	for _, c := range w.Status.Clusters {
		seats = append(seats, api.DecidedCluster{
			Cluster: c.Name, State: phase(w.Status.Rollout, c.Name), Revision: revision, Replicas: replicas(c.Replicas), OnDemand: c.OnDemand, Spot: c.Spot,
		})
	}
	left := w.Status.Evicting()
	for _, e := range w.Status.Evictions {
		if _, stays := left[e.Cluster]; stays {
			seats = append(seats, api.DecidedCluster{Cluster: e.Cluster, State: api.ClusterEvicting, Revision: revision, Replicas: replicas(e.Replicas)})
		}
	}
	return seats
}
