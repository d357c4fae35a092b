package reconcile

import (
	"context"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/arktostest"
)

// TestArktos lays the cases about sites before simulations that need no server.
func TestArktos(t *testing.T) {
	cases, err := arktostest.Cases()
	if err != nil {
		t.Fatal(err)
	}
	simulate := func(ctx context.Context, request api.Simulation) (*api.SimulationResult, error) {
		return SimulateFile(ctx, request, nil, epoch)
	}
	for _, c := range cases {
		if _, known := arktostest.Inexpressible[c.ID]; known {
			continue
		}
		t.Run(c.ID, func(t *testing.T) {
			wrong, err := c.Play(t.Context(), simulate)
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range wrong {
				t.Errorf("%s: %s", c.Note, text)
			}
		})
	}
}
