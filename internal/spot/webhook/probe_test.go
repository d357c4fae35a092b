package webhook

import (
	"encoding/json"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// TestProbe checks that a dry run with a ConfigMap gets its own content back, and no other.
func TestProbe(t *testing.T) {
	for _, test := range []struct {
		name        string
		labels      map[string]string
		annotations map[string]string
		dryRun      bool
		want        string
	}{
		{"probe", map[string]string{spot.LabelProbe: "n0nce"}, nil, true, "n0nce"},
		{"probe with other annotations", map[string]string{spot.LabelProbe: "n0nce"}, map[string]string{"a": "b"}, true, "n0nce"},
		{"not a dry run", map[string]string{spot.LabelProbe: "n0nce"}, nil, false, ""},
		{"not a probe", map[string]string{"app": "web"}, nil, true, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			c := &corev1.ConfigMap{}
			c.Labels, c.Annotations = test.labels, test.annotations
			review := reviewOf(t, admissionv1.Create, c, nil)
			review.Request.DryRun = new(test.dryRun)
			response := ask(t, serverOf(t, toSpot()), "probe", review)
			var got corev1.ConfigMap
			if err := json.Unmarshal(applied(t, review.Request.Object.Raw, response), &got); err != nil || !response.Allowed {
				t.Fatal(err, response)
			}
			if got.Annotations[spot.LabelProbe] != test.want || got.Annotations["a"] != test.annotations["a"] {
				t.Errorf("annotations %v, want %q", got.Annotations, test.want)
			}
		})
	}
}
