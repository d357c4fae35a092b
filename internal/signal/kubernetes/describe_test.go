package kubernetes

import (
	"testing"

	"k8s.io/client-go/kubernetes/scheme"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
)

// TestDescribeAnswerOfAnotherServer checks that the response of a server that is not an API server does not appear in
// the status of the cluster: it may be of any size, and different every time.
func TestDescribeAnswerOfAnotherServer(t *testing.T) {
	for name, answer := range map[string]string{
		"no kind":       `{"served_at": "10:00:01"}`,
		"no version":    `{"kind": "PodList-10:00:01"}`,
		"no object":     `null`,
		"another kind":  `{"kind": "Served-10:00:01", "apiVersion": "v1"}`,
		"another group": `{"kind": "PodList", "apiVersion": "served/10-00-01"}`,
	} {
		t.Run(name, func(t *testing.T) {
			_, _, err := scheme.Codecs.UniversalDeserializer().Decode([]byte(answer), nil, nil)
			if err == nil {
				t.Fatal("the answer is accepted as one of an API server")
			}
			if reason, message := kube.Describe("pods", err); reason != api.ReasonIncomplete || message != "pods: the response cannot be read" {
				t.Errorf("%v: got %s %q", err, reason, message)
			}
		})
	}
}
