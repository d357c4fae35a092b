package reconcile

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// krakeCase is a case about clusters on clouds, or Magnum clusters in projects.
type krakeCase struct {
	ID   string `json:"id"`
	Grp  string `json:"grp"`
	In   krakeIn
	Out  krakeOut
	Note string `json:"note"`
}

type krakeIn struct {
	MetricValues     map[string]any                `json:"metric_values"`
	Values           map[string]float64            `json:"values"`
	Clouds           map[string]map[string]float64 `json:"clouds"`
	NamespacedClouds map[string]map[string]float64 `json:"namespaced_clouds"`
	GlobalClouds     map[string]map[string]float64 `json:"global_clouds"`
	Projects         map[string]map[string]float64 `json:"projects"`
	Project          krakeLabelled                 `json:"project"`
	Magnum           krakeLabelled                 `json:"magnum_cluster"`
	Labels           map[string]map[string]string  `json:"labels"`
	Constraints      []string                      `json:"constraints"`
	Kubeconfig       bool                          `json:"kubeconfig"`
	Cloud            krakeLabelled                 `json:"cloud"`
	Cluster          json.RawMessage               `json:"cluster"`
	InheritLabels    bool                          `json:"inherit_labels"`
	InheritMetrics   bool                          `json:"inherit_metrics"`
	CloudConstraints []string                      `json:"cluster_cloud_metric_constraints"`
}

type krakeLabelled struct {
	Labels  map[string]string  `json:"labels"`
	Metrics map[string]float64 `json:"metrics"`
}

type krakeOut struct {
	Scores     map[string]float64 `json:"scores"`
	ChooseFrom []string           `json:"choose_from"`
	Error      string             `json:"error"`
	Score      *float64           `json:"score"`
	Labels     any                `json:"labels"`
	Metrics    any                `json:"metrics"`
	Scheduler  string             `json:"scheduler"`
}

// elsewhere are the cases that are not played here, and why.
var elsewhere = map[string]string{
	"K293": "there is no state FAILED: a cluster that no cloud fits is asked again when clouds change",
	"K303": "a placement does not create clusters (auto_cluster_create); a configuration does, from the cloud of a scheduler_cluster",
	"K305": "as K303",
	"K306": "as K303",
	"K308": "as K303",
	"K310": "as K303",
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

// guestOf is a guest as last decided.
func guestOf[T api.Object](t *testing.T, h *hosting, key api.Key) T {
	t.Helper()
	g := h.guests[key]
	if g == nil {
		t.Fatalf("%s is not known", key)
	}
	object := g.outcome
	if object == nil {
		object = g.object
	}
	typed, ok := object.(T)
	if !ok {
		t.Fatalf("%s is a %T", key, object)
	}
	return typed
}

func TestKrakeHosts(t *testing.T) {
	data, err := os.ReadFile("testdata/krake_hosts.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []krakeCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	played := map[string]func(*testing.T, krakeCase){
		"select_cloud": playCloud, "cluster_intake": playCloud, "select_project": playProject, "inherit": playInherit,
	}
	for _, c := range cases {
		if elsewhere[c.ID] != "" {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			play, ok := played[c.Grp]
			if !ok {
				t.Fatalf("nobody plays group %s", c.Grp)
			}
			play(t, c)
		})
	}
}

// figured is a planner with the metrics of a case: "bad" has no usable value.
func figured(in krakeIn) (*world, *planner) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	for name, value := range in.Values {
		w.write(p, metric(name, value))
	}
	for name, value := range in.MetricValues {
		number, ok := value.(float64)
		if !ok {
			number = 1.5
		}
		w.write(p, metric(name, number))
	}
	return w, p
}

func playCloud(t *testing.T, c krakeCase) {
	w, p := figured(c.In)
	for _, names := range []map[string]map[string]float64{c.In.Clouds, c.In.GlobalClouds} {
		for name, weights := range names {
			w.write(p, cloud(name, "", c.In.Labels[name], refsOf(weights)...))
		}
	}
	for name, weights := range c.In.NamespacedClouds {
		w.write(p, cloud(name, "shop", nil, refsOf(weights)...))
	}
	if c.In.Clouds == nil && c.In.GlobalClouds == nil {
		for name, labels := range c.In.Labels {
			w.write(p, cloud(name, "", labels))
		}
	}
	if c.Grp == "cluster_intake" {
		w.write(p, cloud("a", "", nil))
	}
	guest := cluster("guest", nil)
	guest.Spec.Namespace = "shop"
	guest.Spec.CloudConstraints = &api.CloudConstraints{LabelConstraints: c.In.Constraints}
	if c.In.Kubeconfig {
		guest.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(kubeconfigText)}
	}
	w.write(p, guest)
	p.pass(epoch)
	s := guestOf[*api.Cluster](t, p.clouds, api.KeyOf(guest)).Status
	switch {
	case c.Out.Scheduler == "ignore":
		if s.Cloud != "" || api.FindCondition(s.Conditions, api.ConditionBound) != nil {
			t.Errorf("a cluster that exists was bound: %+v", s)
		}
	case c.Out.Scheduler == "enqueue":
		if s.Cloud != "a" {
			t.Errorf("not bound: %+v", s)
		}
	case c.Out.Error != "":
		bound := api.FindCondition(s.Conditions, api.ConditionBound)
		if s.Cloud != "" || bound == nil || bound.Reason != api.ReasonNoSuitableCloud || bound.Message == "" {
			t.Errorf("status %+v, want no cloud and why", s)
		}
	case !slices.Contains(c.Out.ChooseFrom, s.Cloud):
		t.Errorf("chose %q of %v", s.Cloud, c.Out.ChooseFrom)
	}
	checkScores(t, c.Out.Scores, s.Cloud, s.CloudScore)
}

func checkScores(t *testing.T, scores map[string]float64, host string, score *float64) {
	t.Helper()
	if want, ok := scores[host]; ok && (score == nil || math.Abs(*score-want) > 1e-6) {
		t.Errorf("score %v, want %v", score, want)
	}
}

func playProject(t *testing.T, c krakeCase) {
	w, p := figured(c.In)
	for name, weights := range c.In.Projects {
		w.write(p, project(name, nil, refsOf(weights)...))
	}
	guest := magnum("guest", c.In.Magnum.Labels)
	guest.Spec.Metrics = refsOf(c.In.Magnum.Metrics)
	if c.In.Projects == nil {
		w.write(p, project("only", c.In.Project.Labels, refsOf(c.In.Project.Metrics)...))
	}
	w.write(p, guest)
	p.pass(epoch)
	seen, ok := p.observe(guestOf[*api.MagnumCluster](t, p.projects, api.KeyOf(guest))).(*api.MagnumCluster)
	if !ok {
		t.Fatal("a Magnum cluster is observed as something else")
	}
	s := seen.Status
	switch {
	case c.Out.Error != "":
		bound := api.FindCondition(s.Conditions, api.ConditionBound)
		if s.Project != "" || bound == nil || bound.Reason != api.ReasonNoSuitableProject {
			t.Errorf("status %+v, want no project", s)
		}
	case c.Out.ChooseFrom != nil && !slices.Contains(c.Out.ChooseFrom, s.Project):
		t.Errorf("chose %q of %v", s.Project, c.Out.ChooseFrom)
	case c.Out.Labels != nil:
		weights := map[string]any{}
		for _, m := range s.Metrics {
			weights[m.Name] = m.Weight
		}
		labels := map[string]any{}
		for key, value := range s.Labels {
			labels[key] = value
		}
		if want := c.Out.Labels.(map[string]any); !maps.Equal(labels, want) {
			t.Errorf("labels %v, want %v", labels, want)
		}
		if want := c.Out.Metrics.(map[string]any); !maps.Equal(weights, want) {
			t.Errorf("metrics %v, want %v", weights, want)
		}
	}
	checkScores(t, c.Out.Scores, s.Project, s.Score)
}

func playInherit(t *testing.T, c krakeCase) {
	w, p := figured(c.In)
	for _, name := range []string{"ec", "ge"} {
		if _, ok := c.In.Values[name]; !ok {
			w.write(p, metric(name, 0.5))
		}
	}
	w.write(p, cloud("cloud", "", c.In.Cloud.Labels, refsOf(c.In.Cloud.Metrics, slices.Sorted(maps.Keys(c.In.Cloud.Metrics))...)...))
	var own krakeLabelled
	guest := cluster("guest", map[string]string{"own": "yes"})
	if string(c.In.Cluster) == `"registered by kubeconfig"` {
		guest.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(kubeconfigText)}
	} else if c.In.Cluster != nil {
		if err := json.Unmarshal(c.In.Cluster, &own); err != nil {
			t.Fatal(err)
		}
	}
	guest.Spec.Metrics = refsOf(own.Metrics)
	guest.Spec.InheritLabels, guest.Spec.InheritMetrics = c.In.InheritLabels, c.In.InheritMetrics
	if c.In.CloudConstraints != nil {
		guest.Spec.CloudConstraints = &api.CloudConstraints{MetricConstraints: c.In.CloudConstraints}
	}
	w.write(p, guest)
	where := placement("web", 1, func(s *api.PlacementSpec) { s.Metrics = &api.MetricsStrategy{Stickiness: ptr(0.0)} })
	w.write(p, where)
	p.pass(epoch)
	row, ok := p.fleet.Row("guest")
	if !ok {
		t.Fatal("the cluster is not in the fleet")
	}
	effective := p.fleet.Cluster(row)
	if want, ok := c.Out.Metrics.([]any); ok {
		got := map[[2]any]int{}
		for _, ref := range effective.Spec.Metrics {
			got[[2]any{ref.Name, *ref.Weight}]++
		}
		listed := map[[2]any]int{}
		for _, ref := range want {
			pair := ref.([]any)
			listed[[2]any{pair[0], pair[1]}]++
		}
		if !maps.Equal(got, listed) {
			t.Errorf("metrics %v, want %v", got, listed)
		}
	}
	if c.Out.Labels == "own only" && !maps.Equal(effective.Metadata.Labels, guest.Metadata.Labels) {
		t.Errorf("labels %v", effective.Metadata.Labels)
	}
	if c.Out.Score != nil {
		decisions := p.placements[api.KeyOf(where)].status.Decisions
		if len(decisions) != 1 || math.Abs(decisions[0].Score-*c.Out.Score) > 1e-6 {
			t.Errorf("decisions %+v, want score %v", decisions, *c.Out.Score)
		}
	}
}

// TestEveryKrakeHostCaseIsAccountedFor: a case that is left out has a reason, and
// there is no reason for a case that does not exist.
func TestEveryKrakeHostCaseIsAccountedFor(t *testing.T) {
	data, err := os.ReadFile("testdata/krake_hosts.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []krakeCase
	if err := json.Unmarshal(data, &cases); err != nil {
		t.Fatal(err)
	}
	for id, why := range elsewhere {
		if why == "" || !slices.ContainsFunc(cases, func(c krakeCase) bool { return c.ID == id }) {
			t.Errorf("%s: %q", id, why)
		}
	}
}
