package binding

import (
	"encoding/json"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// TestExplanationDoesNotChange keeps an explanation while the same Binder decides another workload.
func TestExplanationDoesNotChange(t *testing.T) {
	fleet := newWorld()
	fleet.cluster("berlin", nil)
	fleet.cluster("paris", nil)
	f := fleet.fleet()
	var b Binder
	explain := func(name string, weight int64) *api.Explanation {
		t.Helper()
		w := &api.Workload{Metadata: api.Metadata{Name: name, UID: name, Generation: 1}, Spec: api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment", Replicas: new(int64(10))}}
		policy := &api.PropagationPolicy{Metadata: api.Metadata{Name: name, UID: name, Generation: 1}}
		policy.Spec.Placement.ReplicaScheduling = &api.ReplicaScheduling{
			Type: api.Divided, DivisionPreference: api.Weighted,
			WeightPreference: &api.WeightPreference{StaticWeights: []api.StaticWeight{
				{Affinity: api.ClusterAffinity{ClusterNames: []string{"berlin"}}, Weight: weight}, {Weight: 1},
			}},
		}
		w.SetDefaults()
		policy.SetDefaults()
		p, err := NewPropagation(w, policy)
		if err != nil {
			t.Fatal(err)
		}
		_, x := b.Explain(f, p, []*placement.View{placement.NewView(f, p.Groups[0].Query, ledger.Others{}, nil)}, ledger.Others{}, Present{}, epoch)
		return x
	}
	text := func(x *api.Explanation) string {
		t.Helper()
		data, err := json.Marshal(x)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	kept := explain("kept", 4)
	if len(kept.Candidates) != 2 || kept.Candidates[0].Weight == nil || *kept.Candidates[0].Weight != 4 {
		t.Fatalf("explanation %s, want two candidates, the first with weight 4", text(kept))
	}
	before := text(kept)
	explain("other", 7)
	if after := text(kept); after != before {
		t.Errorf("the explanation changed from\n%s\nto\n%s", before, after)
	}
}
