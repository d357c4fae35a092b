package webhook

import (
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

type labelIn struct {
	Label conformance.Field[string] `json:"label"`
	Value conformance.Field[string] `json:"value"`
}

type labelOut struct {
	Decision string `json:"decision"`
}

type ownerIn struct {
	Owner conformance.Field[string] `json:"owner"`
}

type ownerOut struct {
	Pod string `json:"pod"`
}

type affinityIn struct {
	Decision  conformance.Field[string] `json:"decision"`
	Existing  conformance.Field[any]    `json:"existing"`
	Preferred conformance.Field[int]    `json:"existing_preferred"`
}

type affinityOut struct {
	Required       []conformanceTerm         `json:"required"`
	Preferred      []conformanceTerm         `json:"preferred"`
	PreferredTerms int                       `json:"preferred_terms"`
	Label          *conformance.Pair[string] `json:"label"`
}

type conformanceTerm struct {
	Weight           int32   `json:"weight"`
	MatchExpressions [][]any `json:"matchExpressions"`
}

// TestCases runs the cases about the labels of workloads, the affinity of pods, and owners whose pods are not split.
func TestCases(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/spot/webhook",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"label_validate": conformance.Player(labelCase),
			"affinity_patch": conformance.Player(affinityCase),
			"next_pod":       conformance.Player(ownerCase),
		},
	}
	suite.Run(t)
}

func labelCase(t *conformance.T, in *labelIn, out *labelOut) {
	labels, annotations := map[string]string{}, map[string]string{}
	switch in.Label.Get() {
	case "optimize-scheduling":
		labels["vacant.io/optimize-scheduling"] = in.Value.Get()
	case "mode":
		mode, _, _ := strings.Cut(in.Value.Get(), " (no count)")
		labels["vacant.io/optimize-scheduling-mode"] = mode
	case "custom-on-demand":
		labels["vacant.io/optimize-scheduling-mode"] = "custom"
		if strings.HasSuffix(in.Value.Get(), "%") { // labels cannot contain it
			annotations["vacant.io/optimize-scheduling-mode-custom-on-demand"] = in.Value.Get()
		} else {
			labels["vacant.io/optimize-scheduling-mode-custom-on-demand"] = in.Value.Get()
		}
	default:
		t.Fatalf("unknown label %q", in.Label.Get())
	}
	d := &appsv1.Deployment{}
	d.Labels, d.Annotations = labels, annotations
	response := ask(t.T, serverOf(t.T, toSpot()), "workloads", reviewOf(t.T, admissionv1.Create, d, nil))
	if response.Allowed != (out.Decision == "allow") || !response.Allowed && out.Decision != "deny" {
		t.Errorf("allowed = %t, want %s: %+v", response.Allowed, out.Decision, response.Result)
	}
}

func ownerCase(t *conformance.T, in *ownerIn, out *ownerOut) {
	pod := podOf(func(p *corev1.Pod) {
		if in.Owner.Get() == "none" {
			p.OwnerReferences = nil
			return
		}
		p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "batch/v1", in.Owner.Get()
	})
	response := ask(t.T, serverOf(t.T, toOnDemand()), "pods", reviewOf(t.T, admissionv1.Create, pod, nil))
	if unset := response.Patch == nil; !response.Allowed || !unset || out.Pod != "unset" {
		t.Errorf("allowed = %t, patch %s; want %s", response.Allowed, response.Patch, out.Pod)
	}
}

func affinityCase(t *conformance.T, in *affinityIn, out *affinityOut) {
	pod := podOf(func(p *corev1.Pod) {
		if in.Preferred.Get() == 0 {
			return
		}
		own := corev1.NodeAffinity{}
		for i := range in.Preferred.Get() {
			own.PreferredDuringSchedulingIgnoredDuringExecution = append(own.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: 1, Preference: term(rule("zone", "In", "z"+strconv.Itoa(i)))})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &own}
	})
	if existing := in.Existing.Get(); existing != nil {
		t.Fatalf("affinity %v is not supported", existing)
	}
	got := admit(t.T, serverOf(t.T, always(Assignment{Type: split.NodeType(in.Decision.Get()), Label: defaultLabel})), pod)
	own := got.Spec.Affinity.NodeAffinity
	if want := out.PreferredTerms; want > 0 && len(own.PreferredDuringSchedulingIgnoredDuringExecution) != want {
		t.Errorf("%d preferred terms, want %d", len(own.PreferredDuringSchedulingIgnoredDuringExecution), want)
	}
	var required, preferred []conformanceTerm
	if own.RequiredDuringSchedulingIgnoredDuringExecution != nil {
		for _, term := range own.RequiredDuringSchedulingIgnoredDuringExecution.NodeSelectorTerms {
			required = append(required, conformanceTerm{0, expressions(term)})
		}
	}
	for _, term := range own.PreferredDuringSchedulingIgnoredDuringExecution {
		preferred = append(preferred, conformanceTerm{term.Weight, expressions(term.Preference)})
	}
	if out.PreferredTerms == 0 && (!sameJSON(t.T, required, out.Required) || !sameJSON(t.T, preferred, out.Preferred)) {
		t.Errorf("required %v, preferred %v; want %v, %v", required, preferred, out.Required, out.Preferred)
	}
	if out.Label != nil && got.Labels["vacant.io/"+out.Label[0]] != out.Label[1] {
		t.Errorf("labels %v, want %v", got.Labels, out.Label)
	}
}

func expressions(term corev1.NodeSelectorTerm) [][]any {
	var out [][]any
	for _, e := range term.MatchExpressions {
		out = append(out, []any{e.Key, e.Operator, e.Values})
	}
	return out
}
