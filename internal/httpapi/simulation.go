package httpapi

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
)

// simulationTime bounds one simulation; a full pass over the largest fleet takes
// about a second.
const simulationTime = 60 * time.Second

// simulationSlots is how many simulations may be under way. Their bodies are
// large and their passes busy every core.
const simulationSlots = 4

type simulateInput struct {
	Payload operation.Payload
}

type simulateOutput struct {
	Body *api.SimulationResult
}

// oneOfFew admits a simulation before its body is read.
func (s *Server) oneOfFew(ctx huma.Context, next func(huma.Context)) {
	select {
	case s.simulations <- struct{}{}:
		defer func() { <-s.simulations }()
		next(ctx)
	default:
		ctx.SetHeader("Retry-After", "1")
		s.api.Refuse(ctx, http.StatusTooManyRequests, "too many simulations are under way: repeat the request")
	}
}

func (s *Server) simulate(ctx context.Context, in *simulateInput) (*simulateOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadNamespace(""); err != nil {
		return nil, err
	}
	var request api.Simulation
	if err := operation.Decode(in.Payload.Data, &request); err != nil {
		return nil, err
	}
	if err := s.rights.MaySimulate(who, request); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, simulationTime)
	defer cancel()
	result, err := s.decisions.Simulate(ctx, request)
	if err != nil {
		return nil, err
	}
	return &simulateOutput{s.rights.VisibleResult(who, result)}, nil
}
