package reconcile

import (
	"context"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// maxSimulations is the number of concurrent simulations; each holds a copy of decisions.
const maxSimulations = 2

// Simulate returns what the server would decide if the world were as in the request, using the same
// functions as real decisions. Nothing is changed, and no pass waits for it. Invalid objects are
// api.FieldErrors.
func (r *Reconciler) Simulate(ctx context.Context, request api.Simulation) (*api.SimulationResult, error) {
	release, err := r.mayFork(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	now := r.now()
	live := now
	if request.Now != nil {
		now = *request.Now
	}
	if request.Base == "empty" {
		return newSimulation(r.options.ReadConstant, nothing{}).run(ctx, newPlanner(r.logger), request, now)
	}
	p, base := r.fork(live)
	return newSimulation(r.options.ReadConstant, base).run(ctx, p, request, now)
}

// mayFork waits until another simulation may run.
func (r *Reconciler) mayFork(ctx context.Context) (release func(), err error) {
	select {
	case r.simulations <- struct{}{}:
		return func() { <-r.simulations }, nil
	case <-ctx.Done():
		return nil, fmt.Errorf("wait for another simulation to end: %w", ctx.Err())
	}
}

// SimulateFile runs a simulation without a server: its base is empty. now is the default time.
func SimulateFile(ctx context.Context, request api.Simulation, read ReadConstant, now time.Time) (*api.SimulationResult, error) {
	if request.Base == "live" {
		return nil, api.FieldErrors{{Field: "base", Message: "\"live\" requires a server: a simulation from a file must use \"empty\""}}
	}
	if request.Now != nil {
		now = *request.Now
	}
	return newSimulation(read, nothing{}).run(ctx, newPlanner(slog.New(slog.DiscardHandler)), request, now)
}

// simulation is a world with the request's objects laid over it.
type simulation struct {
	read ReadConstant
	base baseWorld
	over map[api.Key]api.Object // differences from the base; nil = deleted
	// order are the keys of the request's own objects.
	order []api.Key
	// unscored are the current clusters that the request gives without a score.
	unscored map[api.Key]map[string]bool
}

func newSimulation(read ReadConstant, base baseWorld) *simulation {
	return &simulation{read: read, base: base, over: map[api.Key]api.Object{}, unscored: map[api.Key]map[string]bool{}}
}

// object returns the object with a key, or nil.
func (s *simulation) object(key api.Key) api.Object {
	if object, differs := s.over[key]; differs {
		return object
	}
	return s.base.object(key)
}

// run lays the request over the base, which the planner has decided, and makes one pass at now.
func (s *simulation) run(ctx context.Context, p *planner, request api.Simulation, now time.Time) (*api.SimulationResult, error) {
	if err := s.lay(request, now); err != nil {
		return nil, err
	}
	s.readConstants(p.fleet, now)
	if lost := s.base.lost(); len(lost) > 0 {
		p.lose(slices.DeleteFunc(lost, func(key api.Key) bool { return slices.Contains(s.order, key) }))
	}
	standIns := s.completeMetrics(request, now)
	before := map[api.Key]where{}
	for _, key := range s.order {
		if at, ok := whereIs(s.over[key]); ok {
			before[key] = at
		}
	}
	// Changes are applied as in the live server, in key order, so that the same request gives the
	// same result.
	differs := slices.SortedFunc(maps.Keys(s.over), api.Key.Compare)
	for _, key := range differs {
		k, base, object := decidedAs(key.Kind), s.base.object(key), s.over[key]
		if base != nil && (object == nil || k != nil && k.startsOver(object, base)) {
			p.remove(key)
		}
	}
	for _, key := range differs {
		if object := s.over[key]; object != nil {
			p.put(object, laid)
		}
	}
	for _, provider := range standIns {
		p.put(provider, laid)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	// Explanations are those of the pass: they start from the previous decision.
	p.advance(now)
	told := &explanations{foreseen: map[api.Key]*api.Explanation{}, written: map[api.Key]bool{}}
	for _, key := range s.order {
		if d := p.known(key); d != nil {
			told.foreseen[key] = d.kind().foresee(p, d, now)
		}
	}
	for _, w := range append(p.pass(now), s.remeasure(p, now)...) {
		key := w.key()
		if _, given := before[key]; !given {
			before[key], _ = whereIs(s.base.object(key))
		}
		s.over[key] = w.result()
		told.written[key] = true
	}
	return s.result(p, before, told, now), nil
}

// remeasure decides the waiting workloads again that the result lists as bindings of the request's
// policies, and returns what changed. The pass does not look again at a workload that waits when
// others take room, because that does not help it, but its reason tells how much room there is. So
// that would be the room at a moment of the pass that depends on how the base was decided.
// Workloads of the request keep the decision that is explained.
func (s *simulation) remeasure(p *planner, now time.Time) []write {
	for _, key := range s.order {
		if key.Kind == api.KindPropagationPolicy {
			p.bindings.remeasure(key.Path(), func(workload api.Key) bool { return !slices.Contains(s.order, workload) })
		}
	}
	if p.queue.len() == 0 {
		return nil
	}
	return p.pass(now)
}

// laid is the revision of the specs in a request: no object of the base has it.
const laid = math.MaxInt64

// readConstants sets the values of metrics of static providers as the live server would read them,
// unless the request contains one: for metrics that the request concerns, and those that have not
// been read yet. f is the fleet of the base.
func (s *simulation) readConstants(f *columns.Fleet, now time.Time) {
	if s.read == nil {
		return
	}
	read := map[api.Key]*api.Metric{}
	for _, state := range f.Metrics() {
		if state == nil || state.Metric == nil {
			continue
		}
		if _, other := s.over[state.Metric.ProviderKey()]; other || state.Reason == api.ReasonPending {
			read[state.Key] = state.Metric
		}
	}
	for key, object := range s.over {
		if key.Kind != api.KindMetric {
			continue
		}
		m := as[*api.Metric](object)
		if delete(read, key); m != nil && m.Status.Value == nil {
			read[key] = m
		}
	}
	for key, m := range read {
		provider := as[*api.MetricsProvider](s.object(m.ProviderKey()))
		if provider == nil {
			continue
		}
		if status, ok := s.read(provider, m, now); ok {
			copied := *m
			copied.Status = status
			s.over[key] = &copied
		}
	}
}
