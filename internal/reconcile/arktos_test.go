package reconcile

import (
	"context"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance/arktos"
)

// TestArktos lays the cases about sites before simulations that need no server.
func TestArktos(t *testing.T) {
	arktos.Suite(func(ctx context.Context, request api.Simulation) (*api.SimulationResult, error) {
		return SimulateFile(ctx, request, nil, epoch)
	}).Run(t)
}
