package webhook

import (
	"encoding/json"
	"os"
	"strconv"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

type conformanceCase struct {
	ID, Grp string
	In      struct {
		Label, Value, Owner string
		Decision            string
		ExistingPreferred   int `json:"existing_preferred"`
	}
	Out struct {
		Decision, Pod  string
		Required       []conformanceTerm
		Preferred      []conformanceTerm
		PreferredTerms int `json:"preferred_terms"`
		Label          []string
	}
}

type conformanceTerm struct {
	Weight           int32
	MatchExpressions [][]any
}

// TestCases runs the cases about the labels of workloads, the affinity of pods and
// owners whose pods are left alone.
func TestCases(t *testing.T) {
	text, err := os.ReadFile("../testdata/vmanager.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []conformanceCase
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range cases {
		run := map[string]func(*testing.T, conformanceCase){"label_validate": labelCase, "affinity_patch": affinityCase}[c.Grp]
		if c.In.Owner != "" {
			run = ownerCase
		}
		if run != nil {
			ran++
			t.Run(c.ID, func(t *testing.T) { run(t, c) })
		}
	}
	if ran != 12 {
		t.Errorf("%d cases were run, not 12", ran)
	}
}

func labelCase(t *testing.T, c conformanceCase) {
	labels, annotations := map[string]string{}, map[string]string{}
	switch c.In.Label {
	case "optimize-scheduling":
		labels["vacant.io/optimize-scheduling"] = c.In.Value
	case "mode":
		mode, _, _ := strings.Cut(c.In.Value, " (no count)")
		labels["vacant.io/optimize-scheduling-mode"] = mode
	case "custom-on-demand":
		labels["vacant.io/optimize-scheduling-mode"] = "custom"
		if strings.HasSuffix(c.In.Value, "%") { // which a label cannot hold
			annotations["vacant.io/optimize-scheduling-mode-custom-on-demand"] = c.In.Value
		} else {
			labels["vacant.io/optimize-scheduling-mode-custom-on-demand"] = c.In.Value
		}
	default:
		t.Fatalf("unknown label %q", c.In.Label)
	}
	d := &appsv1.Deployment{}
	d.Labels, d.Annotations = labels, annotations
	response := ask(t, serverOf(t, toSpot()), "workloads", reviewOf(t, admissionv1.Create, d, nil))
	if response.Allowed != (c.Out.Decision == "allow") {
		t.Errorf("allowed = %t, want %s: %+v", response.Allowed, c.Out.Decision, response.Result)
	}
}

func ownerCase(t *testing.T, c conformanceCase) {
	pod := podOf(func(p *corev1.Pod) {
		if c.In.Owner == "none" {
			p.OwnerReferences = nil
			return
		}
		p.OwnerReferences[0].APIVersion, p.OwnerReferences[0].Kind = "batch/v1", c.In.Owner
	})
	response := ask(t, serverOf(t, toOnDemand()), "pods", reviewOf(t, admissionv1.Create, pod, nil))
	if unset := response.Patch == nil; !response.Allowed || unset != (c.Out.Pod == "unset") {
		t.Errorf("allowed = %t, patch %s; want %s", response.Allowed, response.Patch, c.Out.Pod)
	}
}

func affinityCase(t *testing.T, c conformanceCase) {
	pod := podOf(func(p *corev1.Pod) {
		if c.In.ExistingPreferred == 0 {
			return
		}
		own := corev1.NodeAffinity{}
		for i := range c.In.ExistingPreferred {
			own.PreferredDuringSchedulingIgnoredDuringExecution = append(own.PreferredDuringSchedulingIgnoredDuringExecution,
				corev1.PreferredSchedulingTerm{Weight: 1, Preference: term(rule("zone", "In", "z"+strconv.Itoa(i)))})
		}
		p.Spec.Affinity = &corev1.Affinity{NodeAffinity: &own}
	})
	got := admit(t, serverOf(t, always(Assignment{Type: spot.NodeType(c.In.Decision), Label: defaultLabel})), pod)
	own := got.Spec.Affinity.NodeAffinity
	if want := c.Out.PreferredTerms; want > 0 && len(own.PreferredDuringSchedulingIgnoredDuringExecution) != want {
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
	if c.Out.PreferredTerms == 0 && (!sameJSON(t, required, c.Out.Required) || !sameJSON(t, preferred, c.Out.Preferred)) {
		t.Errorf("required %v, preferred %v; want %v, %v", required, preferred, c.Out.Required, c.Out.Preferred)
	}
	if len(c.Out.Label) == 2 && got.Labels["vacant.io/"+c.Out.Label[0]] != c.Out.Label[1] {
		t.Errorf("labels %v, want %v", got.Labels, c.Out.Label)
	}
}

func expressions(term corev1.NodeSelectorTerm) [][]any {
	var out [][]any
	for _, e := range term.MatchExpressions {
		out = append(out, []any{e.Key, e.Operator, e.Values})
	}
	return out
}
