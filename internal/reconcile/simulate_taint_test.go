package reconcile

import (
	"fmt"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// A taint that a simulation declares applies from the simulated time on, as if the cluster were written then;
// toleration_seconds counts from that time.
func TestSimulateATaint(t *testing.T) {
	for _, c := range []struct {
		name, cluster string
		at            string // time_added of the taint, relative to the simulated time
		tolerated     bool
	}{
		{"declared", `"spec":{"taints":[{"key":"disk","effect":"NoSelect"}]}`, "2026-03-01T12:00:00Z", true},
		{
			"there for long", `"spec":{"taints":[{"key":"disk","effect":"NoSelect"}]},"status":{"taints":[{"key":"disk","effect":"NoExecute","time_added":"2026-03-01T11:00:00Z"}]}`,
			"2026-03-01T11:00:00Z", false,
		},
		{"modified long ago", `"spec":{"taints":[{"key":"disk","effect":"NoSelect"}]}`, "2026-03-01T11:00:00Z", false},
		{"in the status only, without a time", `"status":{"taints":[{"key":"disk","effect":"NoSelect"}]}`, "2026-03-01T12:00:00Z", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			metadata := `"metadata":{"name":"c1"}`
			if c.name == "modified long ago" {
				metadata = `"metadata":{"name":"c1","modified_at":"2026-03-01T11:00:00Z"}`
			}
			request := api.Simulation{Base: "empty", Now: &epoch, Objects: raw(`{"kind":"cluster",`+metadata+`,`+c.cluster+`}`,
				`{"kind":"placement","metadata":{"name":"web"},"spec":{"tolerations":[{"key":"disk","operator":"Exists","toleration_seconds":300}]}}`)}
			result, err := SimulateFile(t.Context(), request, nil, time.Time{})
			if err != nil {
				t.Fatal(err)
			}
			taints := result.Objects[0].(*api.Cluster).Status.Taints
			if len(taints) != 1 || taints[0].TimeAdded.Format(time.RFC3339) != c.at {
				t.Errorf("taints %s, want one since %s", rendered(taints), c.at)
			}
			if chosen := result.Objects[1].(*api.Placement).Status.Clusters; (len(chosen) == 1) != c.tolerated {
				t.Errorf("chosen %v, want the taint tolerated: %t; %s", chosen, c.tolerated, result.Explanations[0].Summary)
			}
		})
	}
}

// In a simulation over the live fleet, a new taint counts from the simulated time, an existing one keeps its time, and
// one that is left out is removed. The same holds if the cluster declares its allocated amounts.
func TestSimulateAnotherTaint(t *testing.T) {
	y, _ := start(t)
	since := epoch.Add(-time.Hour)
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1"}}
	c.Spec.Taints = []api.Taint{{Key: "disk", Effect: api.EffectNoSelect}, {Key: "old", Effect: api.EffectNoSelect}}
	c.Status.ObservedGeneration = 1
	c.Status.Taints = []api.ClusterTaint{
		{Key: "disk", Effect: api.EffectNoSelect, TimeAdded: &since}, {Key: "old", Effect: api.EffectNoSelect, TimeAdded: &since},
		{Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: &since},
	}
	entry := y.put(c)
	status, err := y.codec.EncodeStatus(c)
	if err != nil {
		t.Fatal(err)
	}
	revision, err := y.store.Derive(t.Context(), []store.StatusWrite{{Key: api.KeyOf(c), Value: status, SpecRevision: entry.SpecRevision}})
	if err != nil {
		t.Fatal(err)
	}
	y.settle(revision)
	for _, more := range []string{``, `,"allocated":{"cpu":"1"}`} {
		result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Now: &epoch, Objects: raw(
			`{"kind":"cluster","metadata":{"name":"c1","modified_at":"2026-03-01T10:00:00Z"},"spec":{"taints":[{"key":"gpu","effect":"NoSelect"},{"key":"disk","effect":"NoExecute"}]` + more + `}}`)})
		if err != nil {
			t.Fatal(err)
		}
		want := "gpu:NoSelect@12:00:00 disk:NoExecute@11:00:00 scheduler/unreachable:NoSelect@11:00:00"
		if got := rendered(result.Objects[0].(*api.Cluster).Status.Taints); got != want {
			t.Errorf("with %q: taints %s, want %s", more, got, want)
		}
	}
}

func rendered(taints []api.ClusterTaint) string {
	text := ""
	for i, t := range taints {
		if i > 0 {
			text += " "
		}
		text += fmt.Sprintf("%s:%s@", t.Key, t.Effect)
		if t.TimeAdded != nil {
			text += t.TimeAdded.UTC().Format(time.TimeOnly)
		}
	}
	return text
}
