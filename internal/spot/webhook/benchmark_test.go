package webhook

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

// constant assigns every pod the same type, and remembers nothing.
type constant struct{ Assignment }

func (constant) Secret() string { return testSecret }

func (c constant) Assign(context.Context, Creation) Assignment { return c.Assignment }

// BenchmarkPod admits a typical pod: 8 KiB, most of it containers.
func BenchmarkPod(b *testing.B) {
	pod := podOf(func(p *corev1.Pod) {
		p.Spec.Affinity = requiring(term(zone), term(arch))
		for i := range 3 {
			c := corev1.Container{Name: fmt.Sprintf("c%d", i), Image: "registry.example.com/shop/web:v1.2.3"}
			c.Resources.Requests = corev1.ResourceList{"cpu": resource.MustParse("100m"), "memory": resource.MustParse("128Mi")}
			for j := range 24 {
				c.Env = append(c.Env, corev1.EnvVar{Name: fmt.Sprintf("SETTING_%d", j), Value: strings.Repeat("value ", 8)})
			}
			p.Spec.Containers = append(p.Spec.Containers, c)
		}
	})
	body, err := json.Marshal(reviewOf(b, admissionv1.Create, pod, nil))
	if err != nil {
		b.Fatal(err)
	}
	for _, to := range []split.NodeType{split.OnDemand, split.Spot} {
		b.Run(string(to), func(b *testing.B) {
			s := serverOf(b, constant{Assignment{Type: to, Label: defaultLabel, Cost: new(int32(100))}})
			b.SetBytes(int64(len(body)))
			b.ReportAllocs()
			for b.Loop() {
				r := httptest.NewRequest(http.MethodPost, "/clusters/a/"+testSecret+"/pods?timeout=3s", strings.NewReader(string(body)))
				r.Header.Set("Content-Type", "application/json")
				w := httptest.NewRecorder()
				s.handler.ServeHTTP(w, r)
				if w.Code != http.StatusOK {
					b.Fatal(w.Body)
				}
			}
		})
	}
}
