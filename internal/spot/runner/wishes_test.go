package runner

import (
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"testing"

	"context"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
)

// workload returns a Deployment that requests a split, with its clusters: name, replicas, and replicas on on-demand
// nodes.
func workload(name string, d *api.DistributionSpec, clusters ...api.WorkloadCluster) *api.Workload {
	w := &api.Workload{Metadata: api.Metadata{Namespace: "shop", Name: name}}
	w.Spec.APIVersion, w.Spec.Kind, w.Spec.Distribution = "apps/v1", api.KindDeployment, d
	w.Status.Clusters = clusters
	return w
}

func on(cluster string, replicas, onDemand int64) api.WorkloadCluster {
	return api.WorkloadCluster{Name: cluster, Replicas: replicas, OnDemand: &onDemand}
}

func custom(amount api.OnDemandAmount) *api.DistributionSpec {
	return &api.DistributionSpec{Mode: api.ModeCustom, CustomOnDemand: amount}
}

func (w *wishes) show(cluster string) string {
	var out []string
	for key, asked := range w.of(cluster) {
		out = append(out, fmt.Sprintf("%s %s %s", key.Name, asked.Distribution.Mode, asked.Distribution.CustomOnDemand))
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// TestRequestsPerCluster checks what a workload requests in each of its clusters.
func TestRequestsPerCluster(t *testing.T) {
	job := workload("web", custom("1"), on("a", 1, 1))
	job.Spec.Kind = "Job"
	leaving := workload("web", custom("30%"))
	leaving.Status.Evictions = []api.Eviction{{Cluster: "a"}}
	undecided := workload("web", custom("3"), api.WorkloadCluster{Name: "a", Replicas: 5})
	for _, test := range []struct {
		name     string
		workload *api.Workload
		a, b     string
	}{
		{"count is divided", workload("web", custom("3"), on("a", 4, 2), on("b", 2, 1)), "web custom 2", "web custom 1"},
		{"count larger than a cluster", workload("web", custom("5"), on("a", 2, 2), on("b", 5, 3)), "web custom 5", "web custom 3"},
		{"percentage is not divided", workload("web", custom("30%"), on("a", 4, 2), on("b", 2, 1)), "web custom 30%", "web custom 30%"},
		{"mode", workload("web", &api.DistributionSpec{Mode: api.ModeAllInSpot}, on("a", 4, 0)), "web all_in_spot ", ""},
		{"undecided", undecided, "web custom 3", ""},
		{"cluster with an eviction", leaving, "web custom 30%", ""},
		{"no distribution", workload("web", nil, on("a", 4, 0)), "", ""},
		{"other kind", job, "", ""},
	} {
		w := newWishes()
		w.put(test.workload)
		if a, b := w.show("a"), w.show("b"); a != test.a || b != test.b {
			t.Errorf("%s: a %q and b %q, want %q and %q", test.name, a, b, test.a, test.b)
		}
		w.remove(api.KeyOf(test.workload))
		w.changed()
		if len(w.clusters)+len(w.names)+len(w.touched)+len(w.own) != 0 {
			t.Errorf("%s: %+v left after the removal", test.name, w)
		}
	}
}

// TestOnlyChangedRequestsAreSent checks that only clusters with changed requests are notified, and that requests are
// not modified once sent.
func TestOnlyChangedRequestsAreSent(t *testing.T) {
	w := newWishes()
	w.put(workload("web", custom("1"), on("a", 2, 1)))
	given := w.of("a")
	w.put(workload("api", custom("1"), on("a", 2, 1), on("b", 2, 1)))
	if len(given) != 1 {
		t.Errorf("the returned map was modified: %v", given)
	}
	changed := w.changed()
	slices.Sort(changed)
	if fmt.Sprint(changed) != "[a b]" || len(w.of("a")) != 2 {
		t.Errorf("changed %v, in a %v", changed, w.of("a"))
	}
	w.put(workload("web", custom("1"), on("a", 2, 1)))
	if changed := w.changed(); len(changed) != 0 {
		t.Errorf("changed %v without a change", changed)
	}
	w.put(workload("web", custom("1"), on("b", 2, 1)))
	changed = w.changed()
	slices.Sort(changed)
	if fmt.Sprint(changed) != "[a b]" || w.show("a") != "api custom 1" || w.show("b") != "api custom 1, web custom 1" {
		t.Errorf("changed %v, a %q, b %q", changed, w.show("a"), w.show("b"))
	}
}

// TestLeavingWorkloadKeepsItsShare: on a cluster that a workload is leaving no pod is replaced for
// the sake of a count that was divided otherwise.
func TestLeavingWorkloadKeepsItsShare(t *testing.T) {
	w := newWishes()
	w.put(workload("web", custom("3"), on("a", 4, 2), on("b", 2, 1)))
	left := workload("web", custom("3"), on("b", 6, 3))
	left.Status.Evictions = []api.Eviction{{Cluster: "a", Replicas: 4}}
	w.put(left)
	if a, b := w.show("a"), w.show("b"); a != "web custom 2" || b != "web custom 3" {
		t.Errorf("got a %q and b %q", a, b)
	}
	moded := workload("web", &api.DistributionSpec{Mode: api.ModeAllInSpot}, on("b", 6, 0))
	moded.Status.Evictions = left.Status.Evictions
	w.put(moded)
	if a := w.show("a"); a != "web all_in_spot " {
		t.Errorf("got a %q after a change of the mode", a)
	}
}

// sink receives the reports.
type sink struct {
	told [][]reconcile.DistributionReport
	err  error
}

func (s *sink) ReportDistributions(_ context.Context, reports []reconcile.DistributionReport) error {
	s.told = append(s.told, reports)
	return s.err
}

// TestReports checks that an observation is reported until the status contains it, and nothing else is.
func TestReports(t *testing.T) {
	key := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
	converged := api.ClusterDistribution{Cluster: "a", State: api.DistributionConverged}
	waiting := api.ClusterDistribution{Cluster: "a", State: api.DistributionWaiting, Message: "soon"}
	stored := func(list ...api.ClusterDistribution) *api.Workload {
		w := workload("web", custom("1"), on("a", 2, 1))
		w.Status.Distribution = list
		return w
	}
	for _, test := range []struct {
		name string
		do   func(r *reports)
		want []api.DistributionState
	}{
		{"unknown workload", func(r *reports) { r.tell(key, converged) }, nil},
		{"new", func(r *reports) { r.put(stored()); r.tell(key, converged) }, []api.DistributionState{converged.State}},
		{"reported before the workload is known to run there", func(r *reports) { r.tell(key, converged); r.put(stored()) }, []api.DistributionState{converged.State}},
		{"same as stored", func(r *reports) { r.put(stored(converged)); r.tell(key, converged) }, nil},
		{"stored meanwhile", func(r *reports) { r.put(stored()); r.tell(key, converged); r.put(stored(converged)) }, nil},
		{"lost", func(r *reports) { r.put(stored(converged)); r.tell(key, converged); r.put(stored()) }, []api.DistributionState{converged.State}},
		{"superseded", func(r *reports) { r.put(stored()); r.tell(key, converged); r.tell(key, waiting) }, []api.DistributionState{waiting.State}},
		{"forgotten before the report", func(r *reports) { r.put(stored()); r.tell(key, converged); r.forget(key, "a") }, nil},
		{"workload deleted before the report", func(r *reports) { r.put(stored()); r.tell(key, converged); r.remove(key) }, nil},
		{"no longer split", func(r *reports) { r.put(stored()); r.tell(key, converged); r.put(workload("web", nil, on("a", 2, 1))) }, nil},
		{"no longer on the cluster", func(r *reports) { r.put(stored()); r.tell(key, converged); r.put(workload("web", custom("1"))) }, nil},
	} {
		r := newReports(&sink{}, slog.New(slog.DiscardHandler))
		test.do(r)
		var got []api.DistributionState
		for _, report := range r.take() {
			if report.Key != key || report.Distribution.Cluster != "a" {
				t.Errorf("%s: unexpected report %+v", test.name, report)
			}
			got = append(got, report.Distribution.State)
		}
		if !slices.Equal(got, test.want) {
			t.Errorf("%s: told %v, want %v", test.name, got, test.want)
		}
		if again := r.take(); len(again) != 0 {
			t.Errorf("%s: reported again: %v", test.name, again)
		}
		r.remove(key)
		r.forget(key, "a")
		if n := len(r.observed) + len(r.stored) + len(r.runs) + len(r.due); n != 0 {
			t.Errorf("%s: %d entries left after the deletion", test.name, n)
		}
	}
	r := newReports(&sink{err: errors.New("no")}, slog.New(slog.DiscardHandler))
	r.put(stored())
	long := converged
	long.Message = strings.Repeat("ü", maxMessage)
	r.tell(key, long)
	if got := r.take()[0].Distribution.Message; len(got) > maxMessage || !strings.HasPrefix(long.Message, got) {
		t.Errorf("message of %d bytes", len(got))
	}
	if r.checkAll(); len(r.take()) != 1 {
		t.Error("a report that could not be stored is not repeated")
	}
}

// TestTargets checks which changes of a cluster restart the work on it.
func TestTargets(t *testing.T) {
	cluster := func(alter func(c *api.Cluster)) target {
		c := &api.Cluster{Metadata: api.Metadata{Name: "a", UID: "1"}}
		c.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret("one")}
		c.Spec.Spot = &api.SpotSpec{Enabled: true, NodeTypeKey: "k", OnDisable: api.OnDisableKeep}
		alter(c)
		return targetOf(c)
	}
	base := cluster(func(*api.Cluster) {})
	for _, test := range []struct {
		name    string
		alter   func(c *api.Cluster)
		another bool
		nothing bool
	}{
		{name: "label", alter: func(c *api.Cluster) { c.Metadata.Labels = map[string]string{"a": "b"} }},
		{name: "rotated kubeconfig", alter: func(c *api.Cluster) { c.Spec.Kubernetes.Kubeconfig = api.NewSecret("two") }, another: true},
		{name: "other node type key", alter: func(c *api.Cluster) { c.Spec.Spot.NodeTypeKey = "l" }, another: true},
		{name: "disabled", alter: func(c *api.Cluster) { c.Spec.Spot.Enabled = false }, another: true},
		{name: "recreate", alter: func(c *api.Cluster) { c.Spec.Spot.OnDisable = api.OnDisableRecreate }, another: true},
		{name: "other cluster of the same name", alter: func(c *api.Cluster) { c.Metadata.UID = "2" }, another: true},
		{name: "no block", alter: func(c *api.Cluster) { c.Spec.Spot = nil }, another: true, nothing: true},
		{name: "no kubeconfig", alter: func(c *api.Cluster) { c.Spec.Kubernetes = nil }, another: true, nothing: true},
	} {
		got := cluster(test.alter)
		if (got != base) != test.another || (got == target{}) != test.nothing {
			t.Errorf("%s: got %+v", test.name, got)
		}
	}
}
