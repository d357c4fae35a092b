package webhook

import (
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
)

// TestPodLabels checks which changes to a pod's labels are rejected. All other changes are accepted, for any pod.
func TestPodLabels(t *testing.T) {
	labelled := func(labels ...string) *corev1.Pod {
		return podOf(func(p *corev1.Pod) {
			p.Labels = nil
			for i := 0; i < len(labels); i += 2 {
				p.Labels = map[string]string{labels[i]: labels[i+1], "app": "web"}
			}
		})
	}
	ours, alias := "vacant.io/affinity", "vacant.sh/affinity"
	for _, test := range []struct {
		name     string
		old, new *corev1.Pod
		refused  string
	}{
		{"other label", labelled(), labelled("team", "a"), ""},
		{"unchanged", labelled(ours, "spot"), labelled(ours, "spot"), ""},
		{"added", labelled(), labelled(ours, "spot"), ""},
		{"changed", labelled(ours, "spot"), labelled(ours, "on-demand"), `must stay "spot" and not become "on-demand"`},
		{"removed", labelled(ours, "spot"), labelled("team", "a"), `must stay "spot" and not be removed`},
		{"all labels removed", labelled(ours, "on-demand"), labelled(), "not be removed"},
		{"empty label removed", labelled(ours, ""), labelled("team", "a"), `must stay "" and not be removed`},
		{"emptied", labelled(ours, "spot"), labelled(ours, ""), `not become ""`},
		{"other prefix", labelled(alias, "spot"), labelled(alias, "on-demand"), "metadata.labels[vacant.sh/affinity]"},
		{"moved to the other prefix", labelled(alias, "spot"), labelled(ours, "spot"), "not be removed"},
	} {
		t.Run(test.name, func(t *testing.T) {
			response := ask(t, serverOf(t, toSpot()), "pod-labels", reviewOf(t, admissionv1.Update, test.new, test.old))
			if response.Allowed != (test.refused == "") {
				t.Fatalf("got %+v", response)
			}
			if !response.Allowed && (response.Result.Code != 422 || !strings.Contains(response.Result.Message, test.refused)) {
				t.Errorf("got %+v", response.Result)
			}
		})
	}
	t.Run("created", func(t *testing.T) {
		if response := ask(t, serverOf(t, toSpot()), "pod-labels", reviewOf(t, admissionv1.Create, labelled(), labelled(ours, "spot"))); !response.Allowed {
			t.Errorf("got %+v", response)
		}
	})
	for _, objects := range []string{`"object":{"metadata":[]},"oldObject":{}`, `"object":{},"oldObject":{"metadata":{"labels":{"a":{}}}}`, `"object":7`} {
		t.Run("unreadable "+objects, func(t *testing.T) {
			body := `{"apiVersion":"admission.k8s.io/v1","kind":"AdmissionReview","request":{"uid":"u","kind":{"version":"v1","kind":"Pod"},"operation":"UPDATE",` + objects + `}}`
			if response := answerIn(t, post(serverOf(t, toSpot()), "pod-labels", body), "u"); !response.Allowed || len(response.Warnings) != 1 {
				t.Errorf("got %+v", response)
			}
		})
	}
}
