package reconcile

import (
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// maxExplained is the maximum number of explanations that a simulation returns for placements that
// are not in the request.
const maxExplained = 100

// explanations collects what a simulation explains.
type explanations struct {
	foreseen map[api.Key]*api.Explanation // before the pass
	written  map[api.Key]bool             // by the pass
}

// of explains a decision after the pass, or returns nil for what is not decided.
func (x *explanations) of(p *planner, key api.Key, now time.Time) *api.Explanation {
	d := p.known(key)
	if d == nil {
		return nil
	}
	return d.kind().recall(p, d, x.foreseen[key], x.written[key], now)
}

// result returns the request's objects and every placement that moves.
func (s *simulation) result(p *planner, before map[api.Key]where, told *explanations, now time.Time) *api.SimulationResult {
	out := &api.SimulationResult{Objects: []api.Object{}, Explanations: []api.Explanation{}, Changes: []api.Change{}}
	explained, at := map[api.Key]*api.Explanation{}, p.snapshot(nil)
	listed := map[api.Key]bool{}
	add := func(key api.Key) {
		listed[key] = true
		if len(out.Explanations) < max(maxExplained, len(s.order)) {
			explained[key] = told.of(p, key, now)
		}
		out.Objects = append(out.Objects, s.shown(at, key, explained[key], now))
		if e := explained[key]; e != nil {
			out.Explanations = append(out.Explanations, *e)
		}
	}
	for _, key := range s.order {
		add(key)
	}
	for _, key := range slices.SortedFunc(maps.Keys(before), api.Key.Compare) {
		at, ok := whereIs(s.object(key))
		if !ok || before[key].same(at) {
			continue
		}
		if !listed[key] {
			add(key)
		}
		change := before[key].change(key, at)
		if e := explained[key]; e != nil {
			change.Message = e.Summary
		}
		out.Changes = append(out.Changes, change)
	}
	return out
}

// shown returns an object after the pass, as a reader would see it.
func (s *simulation) shown(at *snapshot, key api.Key, explanation *api.Explanation, now time.Time) api.Object {
	object := s.object(key)
	if k := decidedAs(key.Kind); k != nil {
		return k.shown(s, at.observe(object), explanation)
	}
	return inputs[key.Kind].shown(at, object, now)
}
