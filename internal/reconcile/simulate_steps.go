package reconcile

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// simulateSteps makes the changes of a request one after another, with a pass after each, and returns
// what moves on the way. A decision depends on the previous one, so the order matters, and what moves
// and returns may end elsewhere in another order. Changes that do not depend on each other may come in
// any order, so all of them are made twice: in the given order, and in that of inOppositeOrder.
func simulateSteps(ctx context.Context, request api.Simulation, read ReadConstant, now time.Time, fork func() (*planner, baseWorld)) (*api.SimulationResult, error) {
	p, base := fork()
	out, err := newSimulation(read, base).runSteps(ctx, p, request, now, func(given []step) []step { return given })
	if err != nil {
		return nil, err
	}
	p, base = fork()
	opposite, err := newSimulation(read, base).runSteps(ctx, p, request, now, inOppositeOrder)
	if err != nil {
		return nil, err
	}
	moved, shown := map[api.Key]bool{}, map[api.Key]bool{}
	for _, c := range out.Changes {
		moved[c.Key] = true
	}
	for _, object := range out.Objects {
		shown[api.KeyOf(object)] = true
	}
	out.Changes = append(out.Changes, slices.DeleteFunc(opposite.Changes, func(c api.Change) bool { return moved[c.Key] })...)
	out.Objects = append(out.Objects, slices.DeleteFunc(opposite.Objects, func(o api.Object) bool { return shown[api.KeyOf(o)] })...)
	slices.SortFunc(out.Changes, func(a, b api.Change) int { return a.Compare(b.Key) })
	return out, nil
}

// step is one of the changes of a request.
type step struct {
	kind   api.Kind
	change api.Simulation // of a single object
}

// inOppositeOrder returns the changes of what decisions are based on in the opposite order, and then
// the others.
func inOppositeOrder(given []step) []step {
	var inputs, decided []step
	for _, one := range given {
		if isDecided(one.kind) {
			decided = append(decided, one)
		} else {
			inputs = append(inputs, one)
		}
	}
	slices.Reverse(inputs)
	return append(inputs, decided...)
}

// runSteps lays the request's objects over the base one after another, with a pass after each, and
// returns what moves on the way.
func (s *simulation) runSteps(ctx context.Context, p *planner, request api.Simulation, now time.Time, order func([]step) []step) (*api.SimulationResult, error) {
	s.start(ctx, p)
	// First the errors of all objects, with their fields.
	whole := newSimulation(s.read, s.base)
	if err := whole.lay(ctx, request, now); err != nil {
		return nil, err
	}
	whole.lose(p)
	moved := map[api.Key]api.Change{}
	for _, one := range order(stepsOf(request, whole)) {
		if err := s.step(ctx, p, one.change, moved, now); err != nil {
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
func stepsOf(request api.Simulation, whole *simulation) []step {
	var steps []step
	for i, raw := range request.Objects {
		steps = append(steps, step{whole.order[i].Kind, api.Simulation{Objects: []json.RawMessage{raw}}})
	}
	for _, key := range request.Delete {
		if whole.over[key] == nil {
			steps = append(steps, step{key.Kind, api.Simulation{Delete: []api.Key{key}}})
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
