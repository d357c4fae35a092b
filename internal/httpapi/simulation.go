package httpapi

import (
	"context"
	"errors"
	"fmt"
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

// mayLay refuses a simulation that is about objects which the reader may not see,
// whether they exist or not, or in which objects name such.
func (s *Server) mayLay(who identity, request api.Simulation) error {
	if !who.bound() {
		return nil
	}
	snapshot := s.fleet.Snapshot()
	for _, key := range request.Delete {
		if entry := snapshot.Get(key); !s.seesLaid(who, key, nil) || entry != nil && !s.sees(who, entry.Object) {
			return who.forbidden("simulate changes of " + key.String())
		}
	}
	for i, raw := range request.Objects {
		object, _ := api.Decode(raw)
		if object == nil {
			continue // what is wrong with it is said later
		}
		key := api.KeyOf(object)
		var before api.Object
		switch entry := snapshot.Get(key); {
		case entry == nil && !s.seesLaid(who, key, object), entry != nil && !s.sees(who, entry.Object):
			return who.forbidden("simulate changes of " + key.String())
		case entry != nil:
			before = entry.Object
		}
		if err := s.mayRefer(who, object, before); err != nil {
			return within(fmt.Sprintf("objects[%d].", i), err)
		}
	}
	return nil
}

// seesLaid reports whether a reader may see an object of a key that does not exist:
// its namespace decides, its owners where it has some, and of what belongs to a
// cluster the cluster. object is nil where there is only the key.
func (s *Server) seesLaid(who identity, key api.Key, object api.Object) bool {
	if ofCluster(key.Kind) {
		cluster := s.cluster(key.Namespace)
		return cluster == nil || who.seesOf(cluster)
	}
	return who.sees(ownersIn(key.Namespace)...) && (object == nil || who.sees(owners(object)...))
}

// within is a problem with one part of a request, its fields named by their place in
// the whole.
func within(prefix string, err error) error {
	p, ok := errors.AsType[*problem](err)
	if !ok {
		return err
	}
	moved := *p
	moved.Errors = slices.Clone(p.Errors)
	for i := range moved.Errors {
		moved.Errors[i].Field = prefix + moved.Errors[i].Field
	}
	return &moved
}

// visibleResult leaves out what the reader could not read directly either.
func (s *Server) visibleResult(who identity, result *api.SimulationResult) *api.SimulationResult {
	// What other servers said was said of what there is, to those who may write that;
	// what is simulated may name it elsewhere.
	for i, object := range result.Objects {
		result.Objects[i] = api.WithoutDetails(object)
	}
	if !who.bound() {
		return result
	}
	shown := &api.SimulationResult{Objects: []api.Object{}, Explanations: []api.Explanation{}}
	hidden := map[api.Key]bool{}
	for _, object := range result.Objects {
		if !s.sees(who, object) {
			hidden[api.KeyOf(object)] = true
			continue
		}
		if policy, ok := object.(*api.PropagationPolicy); ok {
			object = visibleBindings(who, policy)
		}
		shown.Objects = append(shown.Objects, disclosed(who, object))
	}
	// A cluster has no namespace that would say whose it is.
	sees := func(key api.Key) bool { return who.seesKey(key) && !hidden[key] }
	for i := range result.Explanations {
		x := &result.Explanations[i]
		if sees(api.Key{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}) {
			shown.Explanations = append(shown.Explanations, *s.visible(who, x))
		}
	}
	shown.Changes = slices.DeleteFunc(slices.Clone(result.Changes), func(c api.Change) bool { return !sees(c.Key) })
	return shown
}
