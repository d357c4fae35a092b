package reconcile

import (
	"context"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance/karmada"
)

// TestKarmada runs the cases of propagation policies in simulations, without a server.
func TestKarmada(t *testing.T) {
	cases, err := karmada.Cases(karmada.Kinds...)
	if err != nil {
		t.Fatal(err)
	}
	simulate := func(ctx context.Context, request api.Simulation) (*api.SimulationResult, error) {
		return SimulateFile(ctx, request, nil, epoch)
	}
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			wrong, err := c.Play(t.Context(), simulate)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range wrong {
				t.Errorf("%s: %s", c.Name, text)
			}
			others, err := c.Expecting()
			if err != nil {
				t.Fatal(err)
			}
			for what, other := range others {
				if wrong, err := other.Play(t.Context(), simulate); err == nil && len(wrong) == 0 {
					t.Errorf("%s: the change is not noticed", what)
				}
			}
		})
	}
}
