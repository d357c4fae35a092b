package columns

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestEveryAspectShows checks that a change of any aspect of a cluster can be told: of each, either a fact shows it, or an object of
// another kind does.
func TestEveryAspectShows(t *testing.T) {
	elsewhere := presence | Membership | Failing | ScoreValues
	shown := elsewhere
	for _, f := range facts {
		shown |= f.aspect
	}
	if missing := OfCluster &^ shown; missing != 0 {
		t.Errorf("no fact shows the aspects %b: add a line to facts", missing)
	}
}

// TestDifferences compares two versions of a cluster.
func TestDifferences(t *testing.T) {
	labelled := func(labels map[string]string, taints ...api.Taint) *api.Cluster {
		return &api.Cluster{Metadata: api.Metadata{Name: "c", Labels: labels}, Spec: api.ClusterSpec{
			Taints: taints, Allocatable: api.Quantities{"cpu": "4"}, Kubernetes: &api.KubernetesSpec{Kubeconfig: api.NewSecret("hidden")},
		}}
	}
	of := func(c *api.Cluster) *Fleet {
		var empty Fleet
		changes := Changes{}
		if c != nil {
			changes.Clusters = map[string]*api.Cluster{"c": c}
		}
		f, _ := empty.With(changes, empty.Now())
		return f
	}
	before := labelled(map[string]string{"a": "1", "b": "2"})
	for name, c := range map[string]struct {
		after   *api.Cluster
		aspects Aspects
		want    []Difference
	}{
		"nothing":    {labelled(map[string]string{"a": "1", "b": "2"}), OfCluster, nil},
		"label":      {labelled(map[string]string{"a": "1", "c": "3"}), Labels, []Difference{{Field: "metadata.labels.b", Old: "2"}, {Field: "metadata.labels.c", New: "3"}}},
		"not asked":  {labelled(nil), Taints | Amounts, nil},
		"taint":      {labelled(before.Metadata.Labels, api.Taint{Key: "x", Value: "y", Effect: api.EffectNoExecute}), Taints, []Difference{{Field: "spec.taints", New: "x=y:NoSelect"}}},
		"gone":       {nil, Labels, []Difference{{}}},
		"two taints": {labelled(before.Metadata.Labels, api.Taint{Key: "x", Effect: api.EffectNoExecute}, api.Taint{Key: "z", Effect: api.EffectNoSchedule}), Taints, []Difference{{Field: "spec.taints", New: "x:NoSelect, z:NoSelectIfNew"}}},
	} {
		t.Run(name, func(t *testing.T) {
			got := Differences(of(before), of(c.after), "c", c.aspects)
			if len(got) != len(c.want) {
				t.Fatalf("got %+v, want %+v", got, c.want)
			}
			for i, in := range got {
				if in.Field != c.want[i].Field || in.Old != c.want[i].Old || in.New != c.want[i].New || in.Object.Name != "c" {
					t.Errorf("got %+v, want %+v", in, c.want[i])
				}
			}
		})
	}
}
