package kubernetes

import (
	_ "embed"
	"encoding/json"
	"strconv"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

//go:embed testdata/krake.json
var krakeCases []byte

// krakeCase is one look of Krake's observer at a cluster.
type krakeCase struct {
	ID string `json:"id"`
	In struct {
		Prev       string      `json:"prev"`
		API        string      `json:"api"`
		Conditions [][2]string `json:"conditions"`
	} `json:"in"`
	Out struct {
		State string `json:"state"`
	} `json:"out"`
}

// TestKrakeObserver plays Krake's cases: the cluster is brought into the previous
// state by what leads there, and then looked at once more. Krake knows no
// thresholds; a failure counts at once here, and a cluster that was lost is back
// with the second look, as there.
func TestKrakeObserver(t *testing.T) {
	var file struct{ Cases []krakeCase }
	if err := json.Unmarshal(krakeCases, &file); err != nil {
		t.Fatal(err)
	}
	if len(file.Cases) != 8 {
		t.Fatalf("%d cases", len(file.Cases))
	}
	for _, c := range file.Cases {
		t.Run(c.ID, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.server("eu")
				s.put(machine("n1"))
				const interval = 10 * time.Second
				look := func() { time.Sleep(interval) }
				cluster := on("eu", "eu")
				cluster.Spec.Health = &api.HealthSpec{Interval: api.Duration(interval.String()), FailureThreshold: 1, SuccessThreshold: 2}
				present := func() {
					s.do(func() {
						if code, failed := strings.CutPrefix(c.In.API, "http "); failed {
							var err error
							if s.readyz, err = strconv.Atoi(code); err != nil {
								t.Fatal(err)
							}
						}
					})
					var conditions []func(*corev1.Node)
					for _, pair := range c.In.Conditions {
						conditions = append(conditions, says(corev1.NodeConditionType(pair[0]), corev1.ConditionStatus(pair[1])))
					}
					s.put(machine("n1", conditions...))
				}
				if c.In.Prev == "PENDING" {
					present()
					w.put(cluster)
				} else {
					w.put(cluster)
					if c.In.Prev != "ONLINE" {
						s.do(func() { s.readyz = 503 })
						look()
						s.do(func() { s.readyz = 200 })
					}
					if c.In.Prev == "CONNECTING" {
						look()
					}
					if got := w.status("eu").State; !strings.EqualFold(string(got), c.In.Prev) {
						t.Fatalf("the state before is %s, want %s", got, c.In.Prev)
					}
					present()
					look()
				}
				if got := w.status("eu").State; !strings.EqualFold(string(got), c.Out.State) {
					t.Errorf("%+v: %s, want %s", c.In, got, c.Out.State)
				}
			})
		})
	}
}
