package webhook

import (
	"encoding/json"
	"testing"

	jsonpatch "gopkg.in/evanphx/json-patch.v4"
	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// FuzzReview sends anything to every path: there is an answer to the request or a
// refusal, and a patch fits what it is for.
func FuzzReview(f *testing.F) {
	pinned := podOf(func(p *corev1.Pod) {
		p.Spec.NodeSelector = map[string]string{"karpenter.sh/capacity-type": "spot"}
		p.Spec.Affinity = requiring(term(), term(zone), term(ours, rule("n", "Gt", "3")))
		p.Spec.Tolerations = []corev1.Toleration{{Key: "gpu"}}
	})
	wrong := deployment(3, nameEnabled, "yes", nameMode, "custom", nameOnDemand, "-1")
	for _, review := range []*admissionv1.AdmissionReview{
		reviewOf(f, admissionv1.Create, podOf(nil), nil),
		reviewOf(f, admissionv1.Create, pinned, nil),
		reviewOf(f, admissionv1.Update, podOf(nil), pinned),
		reviewOf(f, admissionv1.Create, wrong, nil),
		reviewOf(f, admissionv1.Update, wrong, deployment(1)),
		reviewOf(f, admissionv1.Create, &corev1.ConfigMap{}, nil),
	} {
		text, err := json.Marshal(review)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"request":{"uid":"u","object":{"spec":{"affinity":{"nodeAffinity":null},"tolerations":null}}}}`))
	var servers []*Server
	for _, to := range []spot.NodeType{spot.OnDemand, spot.Spot} {
		for _, key := range keysOf(nodeTypeKeys) {
			servers = append(servers, serverOf(f, always(Assignment{Type: to, Label: spot.LabelOf(key), Cost: new(int32(1))})))
		}
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		for i, s := range servers {
			for _, path := range []string{"pods", "pod-labels", "workloads", "probe"} {
				if i > 0 && path != "pods" {
					continue // they do not ask the cluster
				}
				w := post(s, path, string(body))
				if w.Code == 400 {
					continue
				}
				var asked struct {
					Request struct {
						UID    string
						Object json.RawMessage
					}
				}
				var got admissionv1.AdmissionReview
				if err := json.Unmarshal(w.Body.Bytes(), &got); w.Code != 200 || err != nil || got.Response == nil {
					t.Fatalf("status %d, %v: %s", w.Code, err, w.Body)
				}
				if got.Response.UID == "" || !got.Response.Allowed && (got.Response.Result == nil || got.Response.Result.Message == "") {
					t.Fatalf("%s", w.Body)
				}
				if got.Response.Patch == nil {
					continue
				}
				if err := json.Unmarshal(body, &asked); err != nil {
					t.Fatalf("a patch for what cannot be read: %v", err)
				}
				patch, err := jsonpatch.DecodePatch(got.Response.Patch)
				if err == nil {
					_, err = patch.Apply(asked.Request.Object)
				}
				if err != nil {
					t.Fatalf("%v: %s", err, got.Response.Patch)
				}
			}
		}
	})
}
