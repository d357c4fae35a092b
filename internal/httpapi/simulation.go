package httpapi

import (
	"context"
	"net/http"
	"slices"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// simulationTime bounds one simulation; a full pass over the largest fleet takes
// about a second.
const simulationTime = 60 * time.Second

// simulationSlots is how many simulations may be under way. Their bodies are
// large and their passes busy every core.
const simulationSlots = 4

type simulateInput struct {
	Payload Payload
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
		_ = huma.WriteErr(s.api, ctx, http.StatusTooManyRequests, "too many simulations are under way: repeat the request")
	}
}

func (s *Server) simulate(ctx context.Context, in *simulateInput) (*simulateOutput, error) {
	who := identityOf(ctx)
	if err := who.mayReadNamespace(""); err != nil {
		return nil, err
	}
	var request api.Simulation
	if err := decodeBody(in.Payload.data, &request); err != nil {
		return nil, err
	}
	if err := s.mayLay(who, request); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, simulationTime)
	defer cancel()
	result, err := s.decisions.Simulate(ctx, request)
	if err != nil {
		return nil, err
	}
	return &simulateOutput{s.visibleResult(who, result)}, nil
}

// mayLay refuses a simulation that lays its objects over some that the reader may
// not see: what is laid over an object takes over its status, and would show it
// under another owner.
func (s *Server) mayLay(who identity, request api.Simulation) error {
	if !who.bound() {
		return nil
	}
	keys := slices.Clone(request.Delete)
	for _, raw := range request.Objects {
		if object, _ := api.Decode(raw); object != nil { // what is wrong with it is said later
			keys = append(keys, api.KeyOf(object))
		}
	}
	snapshot := s.fleet.Snapshot()
	for _, key := range keys {
		if entry := snapshot.Get(key); entry != nil && !s.sees(who, entry.Object) {
			return who.forbidden("simulate changes of " + key.String())
		}
	}
	return nil
}

// visibleResult leaves out what the reader could not read directly either.
func (s *Server) visibleResult(who identity, result *api.SimulationResult) *api.SimulationResult {
	if !who.bound() {
		return result
	}
	shown := &api.SimulationResult{Objects: []api.Object{}, Explanations: []api.Explanation{}}
	for _, object := range result.Objects {
		if !s.sees(who, object) {
			continue
		}
		if policy, ok := object.(*api.PropagationPolicy); ok {
			object = visibleBindings(who, policy)
		}
		shown.Objects = append(shown.Objects, object)
	}
	for i := range result.Explanations {
		if who.sees(ownersIn(result.Explanations[i].Namespace)...) {
			shown.Explanations = append(shown.Explanations, *s.visible(who, &result.Explanations[i]))
		}
	}
	shown.Changes = slices.DeleteFunc(slices.Clone(result.Changes), func(c api.Change) bool { return !who.sees(ownersIn(c.Namespace)...) })
	return shown
}
