package kubernetes

import (
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// lookIn is one observation of a cluster by Krake's observer.
type lookIn struct {
	Prev       conformance.Field[string]                     `json:"prev"`
	API        conformance.Field[string]                     `json:"api"`
	Conditions conformance.Field[[]conformance.Pair[string]] `json:"conditions"`
}

type lookOut struct {
	State string `json:"state"`
}

// TestKrakeObserver runs Krake's cases: it brings the cluster into the previous state, and then observes it once more.
// Krake has no thresholds, so a failure counts at once here, and a lost cluster is back with the second observation, as
// in Krake.
func TestKrakeObserver(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/signal/kubernetes",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"observer": conformance.Player(playLook),
		},
	}
	suite.Run(t)
}

func playLook(t *conformance.T, in *lookIn, out *lookOut) {
	inWorld(t.T, func(_ *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1"))
		const interval = 10 * time.Second
		look := func() { faketime.Sleep(interval) }
		cluster := on("eu", "eu")
		cluster.Spec.Health = &api.HealthSpec{Interval: api.Duration(interval.String()), FailureThreshold: 1, SuccessThreshold: 2}
		present := func() {
			s.do(func() {
				if code, failed := strings.CutPrefix(in.API.Get(), "http "); failed {
					var err error
					if s.readyz, err = strconv.Atoi(code); err != nil {
						t.Error(err)
					}
				} else if in.API.Get() != "ok" {
					t.Errorf("API %q is not supported", in.API.Get())
				}
			})
			var conditions []func(*corev1.Node)
			for _, pair := range in.Conditions.Get() {
				conditions = append(conditions, says(corev1.NodeConditionType(pair[0]), corev1.ConditionStatus(pair[1])))
			}
			s.put(machine("n1", conditions...))
		}
		if in.Prev.Get() == "PENDING" {
			present()
			w.put(cluster)
		} else {
			w.put(cluster)
			if in.Prev.Get() != "ONLINE" {
				s.do(func() { s.readyz = 503 })
				look()
				s.do(func() { s.readyz = 200 })
			}
			if in.Prev.Get() == "CONNECTING" {
				look()
			}
			if got := w.status("eu").State; !strings.EqualFold(string(got), in.Prev.Get()) {
				t.Errorf("the state before is %s, want %s", got, in.Prev.Get())
			}
			present()
			look()
		}
		if got := w.status("eu").State; !strings.EqualFold(string(got), out.State) {
			t.Errorf("from %s with API %s: got %s, want %s", in.Prev.Get(), in.API.Get(), got, out.State)
		}
	})
}
