package reconcile

import (
	"encoding/json"
	"maps"
	"math"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// krakeIn is the input of a case about clusters on clouds, or Magnum clusters in projects.
type krakeIn struct {
	// MetricValues are those of the reference's examples, the same in all cases. "bad" has no usable value.
	MetricValues     conformance.Field[map[string]any]                `json:"metric_values"`
	Values           conformance.Field[map[string]float64]            `json:"values"`
	Clouds           conformance.Field[map[string]map[string]float64] `json:"clouds"`
	NamespacedClouds conformance.Field[map[string]map[string]float64] `json:"namespaced_clouds"`
	GlobalClouds     conformance.Field[map[string]map[string]float64] `json:"global_clouds"`
	Projects         conformance.Field[map[string]map[string]float64] `json:"projects"`
	Project          conformance.Field[krakeLabelled]                 `json:"project"`
	Magnum           conformance.Field[krakeLabelled]                 `json:"magnum_cluster"`
	Labels           conformance.Field[map[string]map[string]string]  `json:"labels"`
	Constraints      conformance.Field[[]string]                      `json:"constraints"`
	Kubeconfig       conformance.Field[bool]                          `json:"kubeconfig"`
	ScheduledTo      conformance.Field[*string]                       `json:"scheduled_to"`
	State            conformance.Field[string]                        `json:"state"`
	Cloud            conformance.Field[krakeLabelled]                 `json:"cloud"`
	Cluster          conformance.Field[json.RawMessage]               `json:"cluster"`
	InheritLabels    conformance.Field[bool]                          `json:"inherit_labels"`
	InheritMetrics   conformance.Field[bool]                          `json:"inherit_metrics"`
	CloudConstraints conformance.Field[[]string]                      `json:"cluster_cloud_metric_constraints"`
}

type krakeLabelled struct {
	Labels  conformance.Field[map[string]string]  `json:"labels"`
	Metrics conformance.Field[map[string]float64] `json:"metrics"`
}

type krakeOut struct {
	Scores       map[string]float64 `json:"scores"`
	ChooseFrom   []string           `json:"choose_from"`
	States       map[string]string  `json:"states"`
	Error        string             `json:"error"`
	ClusterState string             `json:"cluster_state"`
	Score        *float64           `json:"score"`
	Labels       any                `json:"labels"`
	Metrics      any                `json:"metrics"`
	Scheduler    string             `json:"scheduler"`
}

const kubeconfigText = `{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],` +
	`"clusters":[{"name":"k","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"t"}}]}`

func refsOf(weights map[string]float64, order ...string) []api.MetricRef {
	var refs []api.MetricRef
	names := order
	if names == nil {
		names = slices.Sorted(maps.Keys(weights))
	}
	for _, name := range names {
		refs = append(refs, api.MetricRef{Name: name, Weight: ptr(weights[name])})
	}
	return refs
}

func cloud(name, namespace string, labels map[string]string, refs ...api.MetricRef) *api.Cloud {
	return &api.Cloud{Metadata: api.Metadata{Name: name, Labels: labels}, Spec: api.CloudSpec{Namespace: namespace, Metrics: refs}}
}

func project(name string, labels map[string]string, refs ...api.MetricRef) *api.OpenStackProject {
	return &api.OpenStackProject{Metadata: api.Metadata{Name: name, Namespace: "shop", Labels: labels}, Spec: api.OpenStackProjectSpec{Metrics: refs}}
}

func magnum(name string, labels map[string]string, constraints ...string) *api.MagnumCluster {
	return &api.MagnumCluster{Metadata: api.Metadata{Name: name, Namespace: "shop", Labels: labels}, Spec: api.MagnumClusterSpec{LabelConstraints: constraints}}
}

// guestOf returns a guest as last decided.
func guestOf[T api.Object](t *testing.T, h *hosts, key api.Key) T {
	t.Helper()
	g := h.guests[key]
	if g == nil {
		t.Fatalf("%s does not exist", key)
	}
	object := g.outcome
	if object == nil {
		object = g.object
	}
	typed, ok := object.(T)
	if !ok {
		t.Fatalf("%s has the type %T", key, object)
	}
	return typed
}

func TestKrakeHosts(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/reconcile",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"select_cloud":   conformance.Player(playCloud),
			"cluster_intake": conformance.Player(playCloud),
			"select_project": conformance.Player(playProject),
			"inherit":        conformance.Player(playInherit),
		},
		Loose: map[string]string{
			"K*/choose_from +one more":    "Krake chooses at random among the best: any of them is right",
			"K*/choose_from/*":            "likewise, where there are several",
			"K251/metrics +another order": "the order of a cluster's metrics means nothing",
			"K287/cluster_state":          "a cluster that no cloud fits has no state FAILED, but a condition that says why, and is asked again when clouds change",
		},
	}
	suite.Run(t)
}

// figured creates a planner with the metrics of a case. "bad" has no usable value.
func figured(in *krakeIn) (*world, *planner) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	for name, value := range in.Values.Get() {
		w.write(p, metric(name, value))
	}
	for name, value := range in.MetricValues.Get() {
		number, ok := value.(float64)
		if !ok {
			number = 1.5
		}
		w.write(p, metric(name, number))
	}
	return w, p
}

func playCloud(t *conformance.T, in *krakeIn, out *krakeOut) {
	w, p := figured(in)
	for _, names := range []map[string]map[string]float64{in.Clouds.Get(), in.GlobalClouds.Get()} {
		for name, weights := range names {
			w.write(p, cloud(name, "", in.Labels.Get()[name], refsOf(weights)...))
		}
	}
	for name, weights := range in.NamespacedClouds.Get() {
		w.write(p, cloud(name, "shop", nil, refsOf(weights)...))
	}
	if in.Clouds.Get() == nil && in.GlobalClouds.Get() == nil {
		for name, labels := range in.Labels.Get() {
			w.write(p, cloud(name, "", labels))
		}
	}
	if out.Scheduler != "" {
		w.write(p, cloud("a", "", nil)) // it would fit
	}
	guest := cluster("guest", nil)
	guest.Spec.Namespace = "shop"
	guest.Spec.CloudConstraints = &api.CloudConstraints{LabelConstraints: in.Constraints.Get()}
	if in.Kubeconfig.Get() {
		guest.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(kubeconfigText)}
	}
	if to := in.ScheduledTo.Get(); to != nil {
		t.Fatalf("a cluster on %s is not supported", *to)
	}
	if state := in.State.Get(); state != "" && state != "PENDING" {
		t.Fatalf("state %s is not supported", state)
	}
	guest.Status.State = api.ClusterState(strings.ToLower(in.State.Get()))
	w.write(p, guest)
	p.pass(epoch)
	scores := hostScores(p.clouds, api.KeyOf(guest))
	s := guestOf[*api.Cluster](t.T, p.clouds, api.KeyOf(guest)).Status
	switch {
	case out.Scheduler == "ignore":
		if s.Cloud != "" || api.FindCondition(s.Conditions, api.ConditionBound) != nil {
			t.Errorf("an existing cluster was bound: %+v", s)
		}
	case out.Scheduler == "enqueue":
		if s.Cloud != "a" {
			t.Errorf("status %+v, want cloud a", s)
		}
	case out.Error != "":
		bound := api.FindCondition(s.Conditions, api.ConditionBound)
		if s.Cloud != "" || bound == nil || bound.Reason != api.ReasonNoSuitableCloud || bound.Message == "" {
			t.Errorf("status %+v, want no cloud, and the reason", s)
		}
	case !slices.Contains(out.ChooseFrom, s.Cloud):
		t.Errorf("cloud %q, want one of %v", s.Cloud, out.ChooseFrom)
	}
	if out.Error != "" && out.Error != noSuitableResource {
		t.Errorf("unknown error %s", out.Error)
	}
	checkScores(t, out, scores, s.Cloud, s.CloudScore)
	if out.States == nil {
		return
	}
	states := map[string]string{}
	for name, weights := range in.Clouds.Get() {
		// The reason of each metric takes the place of the state.
		seen, ok := p.snapshot(nil).observe(cloud(name, "", nil, refsOf(weights)...)).(*api.Cloud)
		if ok && slices.ContainsFunc(seen.Status.Metrics, func(m api.ClusterMetricStatus) bool { return m.Reason != "" }) {
			states[name] = "FAILING_METRICS"
		}
	}
	if !maps.Equal(states, out.States) {
		t.Errorf("states %v, want %v", states, out.States)
	}
}

// noSuitableResource is Krake's error if nothing fits.
const noSuitableResource = "NO_SUITABLE_RESOURCE"

// hostScores returns the scores of all hosts for a guest that has none.
func hostScores(h *hosts, key api.Key) map[string]float64 {
	scores := map[string]float64{}
	query := h.compile(h.guests[key])
	if query == nil {
		return scores // the guest is not decided
	}
	for _, c := range query.Explain(h.fleet, "", epoch).Candidates {
		if c.Score != nil {
			scores[c.Cluster] = *c.Score
		}
	}
	return scores
}

// checkScores compares the scores of all hosts, and the displayed score of the chosen one.
func checkScores(t *conformance.T, out *krakeOut, scores map[string]float64, host string, shown *float64) {
	t.Helper()
	if out.Scores == nil {
		return
	}
	near := func(a, b float64) bool { return math.Abs(a-b) <= 1e-6 }
	if !maps.EqualFunc(scores, out.Scores, near) {
		t.Errorf("scores %v, want %v", scores, out.Scores)
	}
	if shown == nil || !near(*shown, out.Scores[host]) {
		t.Errorf("score %v, want %v", shown, out.Scores[host])
	}
}

func playProject(t *conformance.T, in *krakeIn, out *krakeOut) {
	w, p := figured(in)
	for name, weights := range in.Projects.Get() {
		w.write(p, project(name, nil, refsOf(weights)...))
	}
	guest := magnum("guest", in.Magnum.Get().Labels.Get())
	guest.Spec.Metrics = refsOf(in.Magnum.Get().Metrics.Get())
	if in.Projects.Get() == nil {
		w.write(p, project("only", in.Project.Get().Labels.Get(), refsOf(in.Project.Get().Metrics.Get())...))
	}
	w.write(p, guest)
	p.pass(epoch)
	scores := hostScores(p.projects, api.KeyOf(guest))
	seen, ok := p.snapshot(nil).observe(guestOf[*api.MagnumCluster](t.T, p.projects, api.KeyOf(guest))).(*api.MagnumCluster)
	if !ok {
		t.Fatal("Observe returned another type than MagnumCluster")
	}
	s := seen.Status
	switch {
	case out.Error != "":
		bound := api.FindCondition(s.Conditions, api.ConditionBound)
		if s.Project != "" || bound == nil || bound.Reason != api.ReasonNoSuitableProject || out.Error != noSuitableResource {
			t.Errorf("status %+v, want no project", s)
		}
	case out.ChooseFrom != nil && !slices.Contains(out.ChooseFrom, s.Project):
		t.Errorf("project %q, want one of %v", s.Project, out.ChooseFrom)
	case out.Labels != nil:
		weights := map[string]any{}
		for _, m := range s.Metrics {
			weights[m.Name] = m.Weight
		}
		labels := map[string]any{}
		for key, value := range s.Labels {
			labels[key] = value
		}
		if want := out.Labels; !reflect.DeepEqual(any(labels), want) {
			t.Errorf("labels %v, want %v", labels, want)
		}
		if want := out.Metrics; !reflect.DeepEqual(any(weights), want) {
			t.Errorf("metrics %v, want %v", weights, want)
		}
	}
	checkScores(t, out, scores, s.Project, s.Score)
}

func playInherit(t *conformance.T, in *krakeIn, out *krakeOut) {
	w, p := figured(in)
	for _, name := range []string{"ec", "ge"} {
		if _, ok := in.Values.Get()[name]; !ok {
			w.write(p, metric(name, 0.5))
		}
	}
	w.write(p, cloud("cloud", "", in.Cloud.Get().Labels.Get(), refsOf(in.Cloud.Get().Metrics.Get(), slices.Sorted(maps.Keys(in.Cloud.Get().Metrics.Get()))...)...))
	var own krakeLabelled
	guest := cluster("guest", map[string]string{"own": "yes"})
	if string(in.Cluster.Get()) == `"registered by kubeconfig"` {
		guest.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(kubeconfigText)}
	} else if in.Cluster.Has() {
		if err := json.Unmarshal(in.Cluster.Get(), &own); err != nil {
			t.Fatal(err)
		}
		if own.Labels.Has() {
			t.Fatal("a cluster with labels of its own is not supported")
		}
	}
	if to := in.ScheduledTo.Get(); to != nil {
		t.Fatalf("a cluster on %s is not supported", *to)
	}
	guest.Spec.Metrics = refsOf(own.Metrics.Get())
	guest.Spec.InheritLabels, guest.Spec.InheritMetrics = in.InheritLabels.Get(), in.InheritMetrics.Get()
	if in.CloudConstraints.Get() != nil {
		guest.Spec.CloudConstraints = &api.CloudConstraints{MetricConstraints: in.CloudConstraints.Get()}
	}
	w.write(p, guest)
	where := newPlacement("web", 1, func(s *api.PlacementSpec) { s.Metrics = &api.MetricsStrategy{Stickiness: ptr(0.0)} })
	w.write(p, where)
	p.pass(epoch)
	row, ok := p.fleet.Row("guest")
	if !ok {
		t.Fatal("the cluster is not in the fleet")
	}
	effective := p.fleet.Cluster(row)
	if want, ok := out.Metrics.([]any); ok {
		got := map[[2]any]int{}
		for _, ref := range effective.Spec.Metrics {
			got[[2]any{ref.Name, *ref.Weight}]++
		}
		listed := map[[2]any]int{}
		for _, ref := range want {
			pair, _ := ref.([]any)
			if len(pair) != 2 {
				t.Fatalf("%v is not a metric with a weight", ref)
			}
			listed[[2]any{pair[0], pair[1]}]++
		}
		if !maps.Equal(got, listed) {
			t.Errorf("metrics %v, want %v", got, listed)
		}
	}
	if out.Labels != nil && (out.Labels != "own only" || !maps.Equal(effective.Metadata.Labels, guest.Metadata.Labels)) {
		t.Errorf("labels %v, want only the cluster's own", effective.Metadata.Labels)
	}
	if out.Score != nil {
		decisions := p.placer.placements[api.KeyOf(where)].status.Decisions
		if len(decisions) != 1 || math.Abs(decisions[0].Score-*out.Score) > 1e-6 {
			t.Errorf("decisions %+v, want score %v", decisions, *out.Score)
		}
	}
}
