package karmada

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// course is the form into which cases of all kinds are translated.
type course struct {
	clusters  []cluster
	policies  []policy
	workloads []workload
	steps     []step
}

// expectation is the expected state of one workload after a step. Absent fields are not compared.
type expectation struct {
	Clusters map[string]int64 `json:"clusters"`
	Affinity *string          `json:"affinity"`
	Policy   *string          `json:"policy"`
	// Reason is that of the condition Scheduled; absent = Scheduled.
	Reason    string              `json:"reason"`
	Evictions map[string]eviction `json:"evictions"`
	// AnyEvictions says that evictions that are not listed do not matter.
	AnyEvictions bool `json:"any_evictions"`
	// Preempted is the number of replicas lost to workloads with a higher priority.
	Preempted int64 `json:"preempted"`
	// Regions are those of the clusters that have replicas.
	Regions []string `json:"regions"`
	// Earlier lists the affinity groups that could take the workload back.
	Earlier []string `json:"earlier"`
	// Held says that failover is held, as in FailoverHeld.
	Held bool `json:"held"`
	// Tried lists the affinity groups that were evaluated, in order.
	Tried []string `json:"tried"`
	// Next is when the decision changes with time alone, in seconds after the first step.
	Next *int64 `json:"next"`
	// moved says whether the clusters or the affinity group have changed in this step.
	moved *bool
	// gone lists clusters that must not be in the binding or the evictions.
	gone []string
	// leaving lists clusters that must be in the evictions.
	leaving []string
}

type eviction struct {
	Replicas int64         `json:"replicas"`
	Reason   string        `json:"reason"`
	Mode     api.PurgeMode `json:"mode"` // absent = Gracefully
	// Until is in seconds after the first step; absent = not compared.
	Until *int64 `json:"until"`
}

// course translates the case.
func (c *Case) course() (course, error) {
	var out course
	var err error
	switch c.Kind {
	case Schedule:
		out, err = c.schedule()
	case Match:
		out, err = c.match()
	case AffinityOrder:
		out, err = c.affinityOrder()
	case PlacementChanged:
		out, err = c.placementChanged()
	case TaintEviction:
		out, err = c.taintEviction()
	case EvictionTask:
		out, err = c.evictionTask()
	case Course:
		out = course{clusters: c.Clusters, policies: c.Policies, workloads: c.Workloads, steps: c.Steps}
	default:
		err = fmt.Errorf("kind %q does not decide anything", c.Kind)
	}
	if err != nil {
		return course{}, fmt.Errorf("case %s: %w", c.ID, err)
	}
	return out, nil
}

// before returns a status from before the first step. It answers an older spec, so that the pass decides again.
func before(clusters map[string]int64, affinity string) *api.WorkloadStatus {
	since := epoch.Add(-time.Hour)
	s := &api.WorkloadStatus{
		ObservedGeneration: 1, ObservedAffinity: affinity, ScheduledAt: &since, DecisionRevision: 1,
		Policy: api.DefaultNamespace + "/" + defaultPolicy, PolicyGeneration: 1,
	}
	s.PolicyUID = "uid-" + s.Policy
	for _, name := range slices.Sorted(maps.Keys(clusters)) {
		s.Clusters = append(s.Clusters, api.WorkloadCluster{Name: name, Replicas: clusters[name], Since: &since})
	}
	return s
}

// reasons are the reasons of the condition Scheduled, by class of error.
var reasons = map[string]string{
	"no_fit":        api.ReasonNoClusterFit,
	"unschedulable": api.ReasonUnschedulable,
	"select_failed": api.ReasonUnschedulable,
}

func (c *Case) schedule() (course, error) {
	w := *c.Workload
	if c.Previous != nil || c.Evicting != nil {
		previous := maps.Clone(c.Previous)
		w.status = before(previous, c.ObservedAffinity)
		until := epoch.Add(10 * time.Minute)
		for _, name := range c.Evicting {
			w.status.Clusters = slices.DeleteFunc(w.status.Clusters, func(c api.WorkloadCluster) bool { return c.Name == name })
			w.status.Evictions = append(w.status.Evictions, api.Eviction{
				Cluster: name, Replicas: max(previous[name], 1), Reason: api.EvictedClusterLost, PurgeMode: api.PurgeGracefully, Since: &epoch, Until: &until,
			})
		}
	}
	if c.Fresh {
		w.reschedules = 1
	}
	p := *c.Policy
	p.EmptyClusters = c.Options.EmptyWorkloadPropagation
	var want expectation
	if c.ExpectedError != nil {
		reason, ok := reasons[c.ExpectedError.Class]
		if !ok {
			return course{}, fmt.Errorf("class %q is not known", c.ExpectedError.Class)
		}
		// Running replicas keep running.
		want = expectation{Reason: reason, Clusters: map[string]int64{}}
		maps.Copy(want.Clusters, c.Previous)
	} else if err := json.Unmarshal(c.Expected, &want.Clusters); err != nil {
		return course{}, fmt.Errorf("read what is expected: %w", err)
	}
	if c.ExpectedAffinity != "" {
		want.Affinity = &c.ExpectedAffinity
	}
	return course{present(c.Clusters), []policy{p}, []workload{w}, one(want)}, nil
}

// present leaves out clusters that are being deleted: here, deletion takes no time.
func present(clusters []cluster) []cluster {
	return slices.DeleteFunc(slices.Clone(clusters), func(c cluster) bool { return c.Deleting })
}

// one returns a course with one step.
func one(want expectation) []step {
	return []step{{Expect: map[string]expectation{defaultWorkload: want}}}
}

func (c *Case) match() (course, error) {
	var matches bool
	if err := json.Unmarshal(c.Expected, &matches); err != nil {
		return course{}, fmt.Errorf("read what is expected: %w", err)
	}
	want := expectation{Clusters: map[string]int64{c.Cluster.Name: 1}}
	if !matches {
		want = expectation{Clusters: map[string]int64{}, Reason: api.ReasonNoClusterFit}
	}
	return course{[]cluster{*c.Cluster}, []policy{{ClusterAffinity: c.Affinity}}, []workload{{Replicas: 1, IsWorkload: true}}, one(want)}, nil
}

// affinityOrder gives every affinity group a cluster for which it has the result in the case. The workload is scaled
// up, so that it cannot just stay.
func (c *Case) affinityOrder() (course, error) {
	var room, full int64 = 10, 0
	out := course{policies: []policy{{ReplicaScheduling: &replicaScheduling{Type: "Divided", Preference: "Aggregated"}}}}
	for _, name := range c.Terms {
		out.policies[0].ClusterAffinities = append(out.policies[0].ClusterAffinities, term{Name: name, affinity: affinity{ClusterNames: []string{"in-" + name}}})
		switch outcome := c.Outcomes[name]; outcome {
		case "ok", "":
			out.clusters = append(out.clusters, cluster{Name: "in-" + name, AvailableReplicas: &room})
		case "unschedulable", "error":
			out.clusters = append(out.clusters, cluster{Name: "in-" + name, AvailableReplicas: &full})
		case "nofit":
		default:
			return course{}, fmt.Errorf("outcome %q is not known", outcome)
		}
	}
	w := workload{Replicas: 4, IsWorkload: true}
	held := map[string]int64{}
	if c.Observed != "" {
		held["in-"+c.Observed] = 2
		w.status = before(held, c.Observed)
		if !slices.Contains(c.Terms, c.Observed) {
			out.clusters = append(out.clusters, cluster{Name: "in-" + c.Observed, AvailableReplicas: &room})
		}
	}
	if c.ExplicitReschedule {
		w.reschedules = 1
	}
	out.workloads = []workload{w}
	want := expectation{Affinity: &c.ExpectedAffinity, Tried: c.ExpectedTried}
	switch c.ExpectedResult {
	case "scheduled":
		want.Clusters = map[string]int64{"in-" + c.ExpectedAffinity: 4}
	case "kept":
		want.Clusters, want.Reason = held, api.ReasonUnschedulable
	case "cleared":
		want.Clusters, want.Reason = map[string]int64{}, api.ReasonNoClusterFit
	default:
		return course{}, fmt.Errorf("result %q is not known", c.ExpectedResult)
	}
	out.steps = one(want)
	return out, nil
}

// placementChanged decides with the applied placement, edits it, and checks whether anything moves. In this fleet,
// every effective change moves something.
func (c *Case) placementChanged() (course, error) {
	var changed bool
	if err := json.Unmarshal(c.Expected, &changed); err != nil {
		return course{}, fmt.Errorf("read what is expected: %w", err)
	}
	out := course{workloads: []workload{{Replicas: 2, IsWorkload: true}}}
	for _, name := range []string{"m0", "m1", "m2", "m3"} {
		out.clusters = append(out.clusters, cluster{Name: name, Labels: map[string]string{"name": name}})
	}
	out.clusters = append(out.clusters, cluster{Name: "tainted", Taints: []taint{{Key: "k", Effect: "NoSchedule"}}})
	first := expectation{Affinity: &c.Observed}
	if c.Applied != nil {
		out.policies = []policy{*c.Applied}
	} else {
		first.Reason = api.ReasonNoPolicyMatched
	}
	out.steps = one(first)
	out.steps = append(out.steps, step{After: 60, Policies: []policy{*c.Placement}, Expect: map[string]expectation{defaultWorkload: {moved: &changed}}})
	return out, nil
}

// taintEviction puts the workload on a cluster with the taints, with another cluster to move to.
func (c *Case) taintEviction() (course, error) {
	var want struct {
		Evict        string `json:"evict"`
		AfterSeconds int64  `json:"after_seconds"`
	}
	if err := conformance.Decode(c.Expected, &want); err != nil {
		return course{}, fmt.Errorf("read what is expected: %w", err)
	}
	out := course{
		clusters:  []cluster{{Name: "held", Taints: c.Taints}, {Name: "spare"}},
		policies:  []policy{{Tolerations: c.Tolerations, SpreadConstraints: []spread{{By: "cluster", Min: 1, Max: 1}}}},
		workloads: []workload{{Replicas: 1, IsWorkload: true, status: before(map[string]int64{"held": 1}, "")}},
	}
	stays := map[string]expectation{defaultWorkload: {Clusters: map[string]int64{"held": 1}}}
	goes := map[string]expectation{defaultWorkload: {Clusters: map[string]int64{"spare": 1}, leaving: []string{"held"}}}
	switch want.Evict {
	case "now":
		out.steps = []step{{Expect: goes}}
	case "never":
		out.steps = []step{{Expect: stays}, {After: 10 * 365 * 86400, Expect: stays}}
	case "after":
		out.steps = []step{{Expect: stays}, {After: want.AfterSeconds - 1, Expect: stays}, {After: want.AfterSeconds, Expect: goes}}
	default:
		return course{}, fmt.Errorf("evict %q is not known", want.Evict)
	}
	return out, nil
}

// evictionTask has a workload that is being evicted from the cluster "old", which is offline.
func (c *Case) evictionTask() (course, error) {
	var want string
	if err := json.Unmarshal(c.Expected, &want); err != nil {
		return course{}, fmt.Errorf("read what is expected: %w", err)
	}
	since := epoch.Add(-time.Duration(c.AgeSeconds) * time.Second)
	until := since.Add(time.Duration(c.TimeoutSeconds) * time.Second)
	leaving := api.Eviction{Cluster: "old", Replicas: 1, Reason: api.EvictedClusterLost, PurgeMode: api.PurgeGracefully, Since: &since, Until: &until}
	if c.SuppressDeletion != nil && *c.SuppressDeletion {
		leaving.PurgeMode, leaving.Until = api.PurgeNever, nil // something else decides whether the replicas go
	}
	out := course{clusters: []cluster{{Name: "old", State: "offline"}}}
	names, held := []string{"nowhere"}, map[string]int64{}
	var health []api.ClusterHealth
	if c.HasScheduled {
		names = nil
		for _, replacement := range slices.Sorted(maps.Keys(c.Replacements)) {
			name := strings.ToLower(replacement)
			names, held[name] = append(names, name), 1
			out.clusters = append(out.clusters, cluster{Name: name})
			health = append(health, api.ClusterHealth{Cluster: name, Status: api.HealthStatus(strings.ToLower(c.Replacements[replacement])), Since: &since, ReportedAt: &epoch})
		}
	}
	status := before(held, "")
	status.Health = health
	status.ObservedGeneration = 2 // nothing else needs a decision
	status.Evictions = []api.Eviction{leaving}
	out.policies = []policy{{ClusterAffinity: &affinity{ClusterNames: names}}}
	out.workloads = []workload{{Replicas: 1, IsWorkload: true, status: status}}
	expected := expectation{Clusters: held}
	if len(held) == 0 {
		expected.Reason = api.ReasonNoClusterFit
	}
	switch want {
	case "keep":
		expected.leaving = []string{"old"}
	case "remove":
		expected.gone = []string{"old"}
	default:
		return course{}, fmt.Errorf("%q is not known", want)
	}
	out.steps = one(expected)
	return out, nil
}
