package webhook

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	nameEnabled  = "vacant.io/optimize-scheduling"
	nameMode     = nameEnabled + "-mode"
	nameOnDemand = nameMode + "-custom-on-demand"
)

// deployment returns a Deployment with replicas, and labels given as pairs.
func deployment(replicas int32, labels ...string) *appsv1.Deployment {
	d := &appsv1.Deployment{Spec: appsv1.DeploymentSpec{
		Replicas: new(replicas),
		Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "web"}},
	}}
	d.Labels = map[string]string{}
	for i := 0; i < len(labels); i += 2 {
		d.Labels[labels[i]] = labels[i+1]
	}
	return d
}

// TestWrongSettings checks that all invalid settings are rejected together, with what would be valid.
func TestWrongSettings(t *testing.T) {
	d := deployment(3, nameEnabled, "yes", nameMode, "all-in-space", "vacant.io/optimize-scheduling-mod", "custom")
	d.Annotations = map[string]string{nameOnDemand: "101%"}
	set := &appsv1.StatefulSet{ObjectMeta: d.ObjectMeta}
	for name, review := range map[string]*admissionv1.AdmissionReview{
		"created":       reviewOf(t, admissionv1.Create, d, nil),
		"a StatefulSet": reviewOf(t, admissionv1.Create, set, nil),
		"changed":       reviewOf(t, admissionv1.Update, d, deployment(3, nameEnabled, "true")),
	} {
		t.Run(name, func(t *testing.T) {
			response := ask(t, serverOf(t, toSpot()), "workloads", review)
			if response.Allowed || response.Result == nil || response.Result.Code != 422 || response.Result.Reason != metav1.StatusReasonInvalid {
				t.Fatalf("got %+v", response)
			}
			for _, part := range []string{
				"metadata.labels[" + nameEnabled + "]", `"yes"`, `"true" or "false"`,
				"metadata.labels[" + nameMode + "]", `"all-in-space"`, "majority-in-on-demand",
				"metadata.annotations[" + nameOnDemand + "]", `"101%"`,
				"metadata.labels[vacant.io/optimize-scheduling-mod]", "is not known",
			} {
				if !strings.Contains(response.Result.Message, part) {
					t.Errorf("%s is missing in: %s", part, response.Result.Message)
				}
			}
			if details := response.Result.Details; details == nil || len(details.Causes) != 4 || details.Causes[0].Field != "metadata.labels["+nameEnabled+"]" {
				t.Errorf("unexpected details %+v", details)
			}
		})
	}
}

// TestWorkloadsThatPass are those that are right, those of other kinds, and those that
// were wrong before.
func TestWorkloadsThatPass(t *testing.T) {
	wrong, right := deployment(3, nameEnabled, "yes"), deployment(3, nameEnabled, "true", nameMode, "custom", nameOnDemand, "2")
	moved := wrong.DeepCopy()
	moved.Spec.Replicas, moved.Labels["team"] = new(int32(9)), "a"
	aliased := deployment(3, "vacant.sh/optimize-scheduling", "true", "vacant.sh/optimize-scheduling-strategy", "all-in-spot")
	percent := deployment(3, nameEnabled, "true", nameMode, "custom")
	percent.Annotations = map[string]string{nameOnDemand: "30%"}
	scale := reviewOf(t, admissionv1.Update, wrong, nil)
	scale.Request.SubResource = "scale"
	pod := reviewOf(t, admissionv1.Create, podOf(nil), nil)
	for name, review := range map[string]*admissionv1.AdmissionReview{
		"nothing said":        reviewOf(t, admissionv1.Create, deployment(3), nil),
		"a custom count":      reviewOf(t, admissionv1.Create, right, nil),
		"a percentage":        reviewOf(t, admissionv1.Create, percent, nil),
		"the other names":     reviewOf(t, admissionv1.Create, aliased, nil),
		"switched off":        reviewOf(t, admissionv1.Create, deployment(3, nameEnabled, "false", nameMode, "all-in-spot"), nil),
		"no replicas named":   reviewOf(t, admissionv1.Create, &appsv1.Deployment{ObjectMeta: percent.ObjectMeta}, nil),
		"wrong before, moved": reviewOf(t, admissionv1.Update, moved, wrong),
		"made right":          reviewOf(t, admissionv1.Update, right, wrong),
		"deleted":             reviewOf(t, admissionv1.Delete, wrong, wrong),
		"its scale":           scale,
		"another kind":        pod,
	} {
		t.Run(name, func(t *testing.T) {
			if response := ask(t, serverOf(t, toSpot()), "workloads", review); !response.Allowed || response.Patch != nil || len(response.Warnings) > 0 {
				t.Errorf("got %+v", response)
			}
		})
	}
}

// TestWarnings covers settings that are valid but probably not intended.
func TestWarnings(t *testing.T) {
	clamped := deployment(2, nameEnabled, "true", nameMode, "custom", nameOnDemand, "3")
	ignored := deployment(2, nameEnabled, "true", nameMode, "all-in-spot", nameOnDemand, "1")
	annotated := deployment(2)
	annotated.Annotations = map[string]string{nameEnabled: "true"}
	template := deployment(2)
	template.Spec.Template.Labels = map[string]string{nameEnabled: "true"}
	selecting := deployment(2)
	selecting.Spec.Selector.MatchLabels["vacant.io/affinity"] = "spot"
	for _, test := range []struct {
		name   string
		review *admissionv1.AdmissionReview
		want   string
	}{
		{"more than the replicas", reviewOf(t, admissionv1.Create, clamped, nil), `= "3" is more than the 2 replicas`},
		{"more than the replicas, scaled", reviewOf(t, admissionv1.Update, clamped, deployment(3, nameEnabled, "true", nameMode, "custom", nameOnDemand, "3")), "more than the 2"},
		{"unchanged", reviewOf(t, admissionv1.Update, clamped, clamped), ""},
		{"count with another mode", reviewOf(t, admissionv1.Create, ignored, nil), "is ignored: it needs the label " + nameMode + " = custom"},
		{"not enabled", reviewOf(t, admissionv1.Create, deployment(2, nameMode, "all-in-spot"), nil), "no effect on their own"},
		{"annotation instead of a label", reviewOf(t, admissionv1.Create, annotated, nil), "make it a label"},
		{"in the template", reviewOf(t, admissionv1.Create, template, nil), "they belong to the Deployment itself"},
		{"selected by the affinity label", reviewOf(t, admissionv1.Create, selecting, nil), "spec.selector names the label vacant.io/affinity"},
	} {
		t.Run(test.name, func(t *testing.T) {
			response := ask(t, serverOf(t, toSpot()), "workloads", test.review)
			if !response.Allowed {
				t.Fatalf("rejected: %+v", response.Result)
			}
			if test.want == "" && len(response.Warnings) == 0 {
				return
			}
			if len(response.Warnings) != 1 || test.want == "" || !strings.Contains(response.Warnings[0], test.want) {
				t.Errorf("got %q, want one with %q", response.Warnings, test.want)
			}
		})
	}
}

// TestWarningsAreShort checks that warnings are short enough for the API server, and not cut inside a character.
func TestWarningsAreShort(t *testing.T) {
	got := shorten([]string{strings.Repeat("é", 200), "x", "x", "x", "x", "x", "x", "x", "more"})
	if len(got) != maxWarnings || len(got[0]) > maxWarning || strings.ContainsRune(got[0], '�') || !strings.HasSuffix(got[0], "é…") || got[1] != "x" {
		t.Errorf("got %q", got)
	}
}
