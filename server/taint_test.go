package main

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The response to a write contains the taints that result from it.
func TestTaintsAreInTheAnswer(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	c := cluster("berlin")
	if got := put(s, c).Status.Taints; got != nil {
		t.Errorf("taints of a cluster without any: %+v", got)
	}
	c.Spec.Taints = []api.Taint{{Key: "disk", Value: "full", Effect: api.EffectNoSelect}}
	first := put(s, c)
	if got := first.Status.Taints; len(got) != 1 || !got[0].Is(c.Spec.Taints[0]) || got[0].TimeAdded == nil || !got[0].TimeAdded.Equal(*first.Metadata.ModifiedAt) {
		t.Fatalf("taints %+v of a cluster modified at %s", got, first.Metadata.ModifiedAt)
	}
	c.Metadata.Labels = map[string]string{"location": "FR"}
	c.Spec.Taints[0].Effect = api.EffectNoExecute
	if got := put(s, c).Status.Taints; len(got) != 1 || got[0].Effect != api.EffectNoExecute || !got[0].TimeAdded.Equal(*first.Metadata.ModifiedAt) {
		t.Errorf("taints after a change of the spelling of the effect: %+v, since %s", got, first.Metadata.ModifiedAt)
	}
	c.Spec.Taints = nil
	if got := put(s, c).Status.Taints; got != nil {
		t.Errorf("a removed taint is still there: %+v", got)
	}
}
