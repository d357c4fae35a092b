package reconcile

import (
	"context"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance/arktos"
)

// TestArktos runs the cases about sites in simulations, without a server.
func TestArktos(t *testing.T) {
	arktos.Suite(func(ctx context.Context, request api.Simulation) (*api.SimulationResult, error) {
		return SimulateFile(ctx, request, nil, epoch)
	}).Run(t)
}
