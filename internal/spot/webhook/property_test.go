package webhook

import (
	"encoding/json"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/component-helpers/scheduling/corev1/nodeaffinity"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// nodeTypeKeys are keys of each form, with the values that nodes may have.
var nodeTypeKeys = map[string][]string{
	api.DefaultNodeTypeKey:                  {"on-demand", "spot", "other"},
	"karpenter.sh/capacity-type":            {"on-demand", "reserved", "spot", "other"},
	"eks.amazonaws.com/capacityType":        {"ON_DEMAND", "CAPACITY_BLOCK", "SPOT", "other"},
	"cloud.google.com/gke-spot":             {"true"},
	"kubernetes.azure.com/scalesetpriority": {"spot"},
	"example.com/type":                      {"on-demand", "spot", "other"},
}

func drawRule(t *rapid.T, keys map[string][]string) corev1.NodeSelectorRequirement {
	key := rapid.SampledFrom(keysOf(keys)).Draw(t, "key")
	operators := []corev1.NodeSelectorOperator{"In", "NotIn", "Exists", "DoesNotExist"}
	r := corev1.NodeSelectorRequirement{Key: key, Operator: rapid.SampledFrom(operators).Draw(t, "operator")}
	if r.Operator == "In" || r.Operator == "NotIn" {
		r.Values = rapid.SliceOfNDistinct(rapid.SampledFrom(keys[key]), 1, len(keys[key]), rapid.ID).Draw(t, "values")
	}
	return r
}

func drawPod(t *rapid.T, keys map[string][]string) *corev1.Pod {
	drawTerm := rapid.Custom(func(t *rapid.T) corev1.NodeSelectorTerm {
		var out corev1.NodeSelectorTerm
		for range rapid.IntRange(0, 3).Draw(t, "rules") {
			out.MatchExpressions = append(out.MatchExpressions, drawRule(t, keys))
		}
		if rapid.IntRange(0, 3).Draw(t, "fields") == 0 {
			out.MatchFields = []corev1.NodeSelectorRequirement{rule("metadata.name", "In", rapid.SampledFrom([]string{"n", "m"}).Draw(t, "name"))}
		}
		return out
	})
	return podOf(func(p *corev1.Pod) {
		if rapid.Bool().Draw(t, "selects") {
			key := rapid.SampledFrom(keysOf(keys)).Draw(t, "selected")
			p.Spec.NodeSelector = map[string]string{key: rapid.SampledFrom(keys[key]).Draw(t, "value")}
		}
		switch rapid.IntRange(0, 4).Draw(t, "affinity") {
		case 0:
		case 1:
			p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &corev1.NodeAffinity{}}
		default:
			p.Spec.Affinity = requiring(rapid.SliceOfN(drawTerm, 1, 4).Draw(t, "terms")...)
		}
		if p.Spec.Affinity != nil && rapid.Bool().Draw(t, "prefers") {
			p.Spec.Affinity.NodeAffinity.PreferredDuringSchedulingIgnoredDuringExecution = []corev1.PreferredSchedulingTerm{{Weight: 3, Preference: term(drawRule(t, keys))}}
		}
	})
}

func drawNode(t *rapid.T, keys map[string][]string) *corev1.Node {
	node := &corev1.Node{}
	node.Name, node.Labels = rapid.SampledFrom([]string{"n", "m", "o"}).Draw(t, "node"), map[string]string{}
	for _, key := range keysOf(keys) {
		if i := rapid.IntRange(-1, len(keys[key])-1).Draw(t, key); i >= 0 {
			node.Labels[key] = keys[key][i]
		}
	}
	return node
}

func runsOn(t *rapid.T, p *corev1.Pod, node *corev1.Node) bool {
	fits, err := nodeaffinity.GetRequiredNodeAffinity(p).Match(node)
	if err != nil {
		t.Fatal(err)
	}
	return fits
}

// TestNodesOfAPod states the law of the affinity, with the scheduler's own code as the
// judge: a pod for on-demand nodes runs exactly where the user lets it and where the
// node is on-demand; one for spot nodes, which only prefers them, exactly where the
// user lets it. One that the user pinned to a type runs where it did before, which is
// on that type of nodes only.
func TestNodesOfAPod(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		key := rapid.SampledFrom(keysOf(nodeTypeKeys)).Draw(t, "node type key")
		keys := map[string][]string{key: nodeTypeKeys[key], "zone": {"a", "b"}, "arch": {"x"}}
		label := spot.LabelOf(key)
		user := drawPod(t, keys)
		assigned := rapid.SampledFrom([]split.NodeType{split.OnDemand, split.Spot}).Draw(t, "assigned")
		got := admit(t, serverOf(t, always(Assignment{Type: assigned, Label: label})), user)

		var read pod
		text, err := json.Marshal(user)
		if err == nil {
			err = json.Unmarshal(text, &read)
		}
		if err != nil {
			t.Fatal(err)
		}
		pinned := read.Spec.pinned(label)
		onDemand, spots := read.Spec.allows(label)
		for range 10 {
			node := drawNode(t, keys)
			is := label.TypeOf(node.Labels)
			before, after := runsOn(t, user, node), runsOn(t, got, node)
			want := before
			if assigned == split.OnDemand && onDemand && spots {
				want = before && is == split.OnDemand
			}
			if after != want {
				t.Fatalf("runs on %s with %v: %t, want %t\nuser %+v\ngot  %+v", node.Name, node.Labels, after, want, user.Spec, got.Spec)
			}
			if before && is != split.Unset && (pinned != split.Unset && is != pinned || !onDemand && !spots) {
				t.Fatalf("runs on a node of type %s, but is reported as pinned to %q", is, pinned)
			}
		}
		if !onDemand || !spots {
			if !sameJSON(t, got.Spec, user.Spec) {
				t.Fatalf("a settled pod was modified: %+v", got.Spec)
			}
		}
	})
}
