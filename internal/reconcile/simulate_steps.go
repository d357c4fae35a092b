package reconcile

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// runSteps lays the request's objects over the base one after another, with a pass after each, and
// returns what moves on the way. A decision depends on the previous one, so the order matters, and
// what moves and returns may end elsewhere in another order.
func (s *simulation) runSteps(ctx context.Context, p *planner, request api.Simulation, now time.Time) (*api.SimulationResult, error) {
	// First the errors of all objects, with their fields.
	whole := newSimulation(s.read, s.base)
	if err := whole.lay(ctx, request, now); err != nil {
		return nil, err
	}
	whole.lose(p)
	moved := map[api.Key]api.Change{}
	for _, one := range stepsOf(request, whole) {
		if err := s.step(ctx, p, one, moved, now); err != nil {
			return nil, err
		}
	}
	out := &api.SimulationResult{Objects: []api.Object{}, Explanations: []api.Explanation{}, Changes: []api.Change{}}
	shown := whole.order
	for _, key := range slices.SortedFunc(maps.Keys(moved), api.Key.Compare) {
		out.Changes = append(out.Changes, moved[key])
		if _, given := whole.over[key]; !given {
			shown = append(shown, key)
		}
	}
	at := p.snapshot(nil)
	for _, key := range shown {
		if err := p.limit.err(); err != nil {
			return nil, err
		}
		out.Objects = append(out.Objects, s.shown(at, key, nil, now))
	}
	return out, nil
}

// stepsOf divides a request into those of its objects, and of what it deletes for good.
func stepsOf(request api.Simulation, whole *simulation) []api.Simulation {
	var steps []api.Simulation
	for _, raw := range request.Objects {
		steps = append(steps, api.Simulation{Objects: []json.RawMessage{raw}})
	}
	for _, key := range request.Delete {
		if whole.over[key] == nil {
			steps = append(steps, api.Simulation{Delete: []api.Key{key}})
		}
	}
	return steps
}

// step lays one object over what the steps before left, and adds what moves by it.
func (s *simulation) step(ctx context.Context, p *planner, one api.Simulation, moved map[api.Key]api.Change, now time.Time) error {
	world := newSimulation(s.read, s)
	world.ranked, world.inherited = s.ranked, s.inherited
	if err := world.lay(ctx, one, now); err != nil {
		return err
	}
	if err := world.apply(ctx, p, one, now); err != nil {
		return err
	}
	for _, w := range p.pass(now) {
		key, object := w.key(), w.result()
		world.over[key] = object
		before, _ := whereIs(s.base.object(key))
		if after, _ := whereIs(object); !before.same(after) {
			moved[key] = before.change(key, after)
		}
	}
	maps.Copy(s.over, world.over)
	return p.limit.err()
}

// lost implements baseWorld for the steps that follow.
func (s *simulation) lost() []api.Key { return s.base.lost() }
