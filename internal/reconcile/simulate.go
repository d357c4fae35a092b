package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"math"
	"reflect"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// maxSimulations is the number of concurrent simulations; each holds a copy of decisions.
const maxSimulations = 2

// Limits of the answer of a simulation, which is held in memory.
const (
	// maxExplained is the maximum number of explanations for placements that are not in the request.
	maxExplained = 100
	// maxCandidates is the maximum number of candidates of all explanations together.
	maxCandidates = 1_000_000
	// maxChosen is the maximum number of clusters of all decisions together that change.
	maxChosen = 2_000_000
	// maxRanked is the maximum number of clusters in all rankings together that the request's
	// placements need: one for each different way to score clusters.
	maxRanked = 20_000_000
)

// limit is how long a fork works for a request, and how much it may decide. Once it is reached, the
// fork is of no use any more. nil is no limit.
type limit struct {
	ctx          context.Context // of the request
	chosen, most int             // clusters of all decisions together that change
}

// reached reports whether there is a reason to stop.
func (l *limit) reached() bool { return l != nil && (l.chosen > l.most || l.ctx.Err() != nil) }

// err returns why the fork has stopped, or nil.
func (l *limit) err() error {
	if err := l.ctx.Err(); err != nil {
		return fmt.Errorf("simulate: %w", err)
	}
	if l.chosen > l.most {
		return api.FieldErrors{{Field: "objects", Message: fmt.Sprintf(
			"lead to decisions with more than %d clusters in all, more than an answer can have: simulate fewer at a time, or with a number_of_clusters", l.most)}}
	}
	return nil
}

// count counts the clusters of a decision that changes.
func (l *limit) count(d decision) {
	if l != nil {
		at, _ := whereIs(d.result())
		l.chosen += max(len(at.clusters), len(at.replicas))
	}
}

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
	return simulate(ctx, request, r.options.ReadConstant, now, func() (*planner, baseWorld) {
		if request.Base == "empty" {
			return newReadPlanner(r.logger), nothing{}
		}
		return r.fork(live)
	})
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

// fork returns a planner with the state of the live one at a time, and the world that it knows,
// including what has been written since the last pass.
func (r *Reconciler) fork(now time.Time) (*planner, liveWorld) {
	s, index := r.forks.latest(&r.current)
	base := liveWorld{r.options.Fleet.Snapshot(), s.quarantined}
	p := s.fork(index, r.logger)
	p.lose(base.lost())
	for key := range s.quarantined {
		// What live decisions leave out would make the simulation panic. Usually the planner
		// already leaves it out.
		if known, _ := s.get(key); known.object != nil {
			p.remove(key)
			p.quarantine(known.decided())
		} else if !isDecided(key.Kind) {
			p.remove(key)
		}
	}
	for _, change := range fleet.Difference(s.taken, base.at) {
		switch {
		case s.quarantined[change.Key] != nil:
		case change.New == nil:
			p.remove(change.Key)
		default:
			p.putEntry(change.New)
		}
	}
	p.pass(now)
	return p, base
}

// SimulateFile runs a simulation without a server: its base is empty. now is the default time.
func SimulateFile(ctx context.Context, request api.Simulation, read ReadConstant, now time.Time) (*api.SimulationResult, error) {
	if request.Base == "live" {
		return nil, api.FieldErrors{{Field: "base", Message: "\"live\" requires a server: a simulation from a file must use \"empty\""}}
	}
	if request.Now != nil {
		now = *request.Now
	}
	return simulate(ctx, request, read, now, func() (*planner, baseWorld) {
		return newReadPlanner(slog.New(slog.DiscardHandler)), nothing{}
	})
}

// simulate runs a request at now. fork returns a planner and the world that it has decided.
func simulate(ctx context.Context, request api.Simulation, read ReadConstant, now time.Time, fork func() (*planner, baseWorld)) (*api.SimulationResult, error) {
	if request.Steps {
		return simulateSteps(ctx, request, read, now, fork)
	}
	p, base := fork()
	return newSimulation(read, base).run(ctx, p, request, now)
}

// baseWorld is what a simulation starts with.
type baseWorld interface {
	// object returns the object with a key, or nil.
	object(key api.Key) api.Object
	// lost returns the objects that cannot be used for decisions.
	lost() []api.Key
}

// nothing is a world without objects.
type nothing struct{}

func (nothing) object(api.Key) api.Object { return nil }
func (nothing) lost() []api.Key           { return nil }

// liveWorld is the current world.
type liveWorld struct {
	at          *fleet.Snapshot
	quarantined map[api.Key]*quarantined
}

func (w liveWorld) object(key api.Key) api.Object {
	if entry := w.at.Get(key); entry != nil && w.quarantined[key] == nil {
		return entry.Object
	}
	return nil
}

func (w liveWorld) lost() []api.Key {
	return append(lostIn(w.at), slices.Collect(maps.Keys(w.quarantined))...)
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
	// candidates, chosen and ranked limit the memory: maxCandidates, maxChosen and maxRanked.
	candidates, chosen, ranked int
	inherited                  int // rankings that the planner had at first
}

func newSimulation(read ReadConstant, base baseWorld) *simulation {
	return &simulation{
		read: read, base: base, over: map[api.Key]api.Object{}, unscored: map[api.Key]map[string]bool{},
		candidates: maxCandidates, chosen: maxChosen, ranked: maxRanked,
	}
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
	s.start(ctx, p)
	if err := s.lay(ctx, request, now); err != nil {
		return nil, err
	}
	s.lose(p)
	if err := s.apply(ctx, p, request, now); err != nil {
		return nil, err
	}
	before := map[api.Key]where{}
	for _, key := range s.order {
		if at, ok := whereIs(s.over[key]); ok {
			before[key] = at
		}
	}
	// Explanations are those of the pass: they start from the previous decision.
	p.advance(now)
	told := &explanations{
		foreseen: map[api.Key]*api.Explanation{}, written: map[api.Key]bool{},
		others: maxExplained, left: s.candidates,
	}
	for _, key := range s.order {
		if err := p.limit.err(); err != nil {
			return nil, err
		}
		if d := p.known(key); d != nil && told.left > 0 {
			told.foreseen[key] = d.kind().explainBefore(p, d, now)
			if isDecided(key.Kind) { // even if it is explained later, it is explained
				told.hold(p.fleet.Len())
			}
		}
	}
	written := append(p.pass(now), s.remeasure(p, now)...)
	if err := p.limit.err(); err != nil {
		return nil, err
	}
	for _, w := range written {
		key := w.key()
		if _, given := before[key]; !given {
			before[key], _ = whereIs(s.base.object(key))
		}
		s.over[key] = w.result()
		told.written[key] = true
	}
	out := s.result(ctx, p, before, told, now)
	if err := p.limit.err(); err != nil {
		return nil, err
	}
	return out, nil
}

// start limits what the planner does for the simulation.
func (s *simulation) start(ctx context.Context, p *planner) {
	p.limit = &limit{ctx: ctx, most: s.chosen}
	s.inherited = len(p.placer.rankings.of)
}

// lose tells the planner which objects of the base are lost, unless the request gives them.
func (s *simulation) lose(p *planner) {
	if lost := s.base.lost(); len(lost) > 0 {
		p.lose(slices.DeleteFunc(lost, func(key api.Key) bool { return slices.Contains(s.order, key) }))
	}
}

// apply gives what was laid over the base to the planner, for the next pass.
func (s *simulation) apply(ctx context.Context, p *planner, request api.Simulation, now time.Time) error {
	s.readConstants(p.fleet, now)
	standIns := s.completeMetrics(request, now)
	// Changes are applied as in the live server, in key order, so that the same request gives the
	// same result.
	differs := slices.SortedFunc(maps.Keys(s.over), api.Key.Compare)
	for _, key := range differs {
		k, base, object := decidedAs(key.Kind), s.base.object(key), s.over[key]
		if base != nil && (object == nil || k != nil && k.startsOver(object, base)) {
			p.remove(key)
		}
	}
	if err := s.put(ctx, p, differs); err != nil {
		return err
	}
	for _, provider := range standIns {
		p.put(provider, laid)
	}
	return nil
}

// put gives the objects with some keys to the planner.
func (s *simulation) put(ctx context.Context, p *planner, keys []api.Key) error {
	clusters := p.fleet.Len()
	for _, key := range keys {
		object := s.over[key]
		if object == nil {
			continue
		}
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
		if key.Kind == api.KindCluster {
			clusters++
		}
		p.put(object, laid)
		if rankings := len(p.placer.rankings.of) - s.inherited; rankings > 1 && rankings*clusters > s.ranked {
			return api.FieldErrors{{Field: "objects", Message: fmt.Sprintf(
				"have placements that score %d clusters in %d different ways, more than a simulation can hold: simulate fewer at a time", clusters, rankings)}}
		}
	}
	return nil
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

// explanations collects what a simulation explains.
type explanations struct {
	foreseen map[api.Key]*api.Explanation // before the pass; of what the request contains, by its key
	written  map[api.Key]bool             // by the pass
	// left is how many more candidates they may have, others how many more there may be of what the
	// request does not contain.
	left, others int
}

// of explains a decision after the pass, or returns nil for what is not decided or too much.
func (x *explanations) of(p *planner, key api.Key, now time.Time) *api.Explanation {
	d := p.known(key)
	if d == nil {
		return nil
	}
	foreseen, given := x.foreseen[key]
	held := given && isDecided(key.Kind)
	if !held && (x.left <= 0 || !given && x.others <= 0) {
		return nil
	}
	told := d.kind().explainAfter(p, d, foreseen, x.written[key], now)
	if told != nil && !held {
		x.hold(len(told.Candidates))
	}
	return told
}

// hold counts an explanation with a number of candidates.
func (x *explanations) hold(candidates int) {
	x.left -= max(candidates, 1)
	x.others--
}

// lay lays the request's objects over the base.
func (s *simulation) lay(ctx context.Context, request api.Simulation, now time.Time) error {
	var errs api.FieldErrors
	if request.Base != "" && request.Base != "live" && request.Base != "empty" {
		errs.Add("base", "%q is not one of \"live\", \"empty\"", request.Base)
	}
	for i, key := range request.Delete {
		if s.object(key) == nil {
			errs.Add(fmt.Sprintf("delete[%d]", i), "%s does not exist", key)
		}
		s.over[key] = nil
	}
	seen := map[api.Key]int{}
	for i, raw := range request.Objects {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("simulate: %w", err)
		}
		field := fmt.Sprintf("objects[%d]", i)
		object, err := decode(raw)
		if err != nil {
			errs.Join(within(field, err))
			continue
		}
		key := api.KeyOf(object)
		if first, ok := seen[key]; ok {
			errs.Add(field, "%s is already given as objects[%d]", key, first)
			continue
		}
		seen[key] = i
		if err := s.inherit(object, s.object(key), raw, now); err != nil {
			errs.Join(within(field, err))
		}
		s.over[key] = object
		s.order = append(s.order, key)
	}
	return errs.Err()
}

// decode decodes and validates one object, and returns all errors.
func decode(raw json.RawMessage) (api.Object, error) {
	object, err := api.Decode(raw)
	var errs api.FieldErrors
	if err != nil && (object == nil || !errors.As(err, &errs)) {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	errs = errs.And(object.Validate())
	if w, ok := object.(*api.Workload); ok {
		errs = errs.And(w.Status.Validate()) // only simulations are given a status
	}
	return object, errs.Err()
}

// within prefixes the errors of one object with its place in the request.
func within(field string, err error) api.FieldErrors {
	var errs api.FieldErrors
	if !errors.As(err, &errs) {
		return api.FieldErrors{{Field: field, Message: err.Error()}}
	}
	out := slices.Clone(errs)
	for i := range out {
		out[i].Field = field + "." + out[i].Field
	}
	return out
}

// inherit completes an object as the server would when it is written: over an object of the base it
// is a new version of it, with that one's status unless the request contains its own.
func (s *simulation) inherit(object, base api.Object, raw json.RawMessage, now time.Time) error {
	var told struct {
		Status   *json.RawMessage `json:"status"`
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &told) // decoded before
	meta := object.Meta()
	meta.WrittenBy = nil // nobody has written it
	if base != nil {
		base = withoutSecrets(base)
		was := base.Meta()
		meta.UID, meta.CreatedAt = was.UID, was.CreatedAt
		meta.RescheduleRequests = max(meta.RescheduleRequests, was.RescheduleRequests)
		document, err := api.DecodeDocument(raw)
		if err != nil {
			return err // impossible: it has been decoded
		}
		if err := api.KeepSecrets(object, base, document).Err(); err != nil {
			return err
		}
		meta.Generation = was.Generation
		if !api.SameIntent(object, base) {
			meta.Generation++
		}
		if told.Status == nil {
			reflect.ValueOf(object.StatusPart()).Elem().Set(reflect.ValueOf(base.StatusPart()).Elem())
		}
	} else if meta.Generation == 0 {
		meta.Generation = 1
	}
	if k := decidedAs(object.ObjectKind()); k != nil {
		k.complete(s, object, base, given{told.Status, told.Metadata.Generation, base == nil}, now)
	}
	return nil
}

// withoutSecrets returns an object with only what the requester may know of its secrets: that they
// exist.
func withoutSecrets(object api.Object) api.Object {
	shown := object.Copy()
	for field := range object.Secrets() {
		shown.SetSecret(field, api.WithheldSecret())
	}
	return shown
}

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

// result returns the request's objects and every placement that moves, as far as ctx lasts.
func (s *simulation) result(ctx context.Context, p *planner, before map[api.Key]where, told *explanations, now time.Time) *api.SimulationResult {
	out := &api.SimulationResult{Objects: []api.Object{}, Explanations: []api.Explanation{}, Changes: []api.Change{}}
	explained, at := map[api.Key]*api.Explanation{}, p.snapshot(nil)
	listed := map[api.Key]bool{}
	add := func(key api.Key) {
		listed[key] = true
		explained[key] = told.of(p, key, now)
		out.Objects = append(out.Objects, s.shown(at, key, explained[key], now))
		if e := explained[key]; e != nil {
			out.Explanations = append(out.Explanations, *e)
		}
	}
	for _, key := range s.order {
		if ctx.Err() != nil {
			return nil
		}
		add(key)
	}
	for _, key := range slices.SortedFunc(maps.Keys(before), api.Key.Compare) {
		if ctx.Err() != nil {
			return nil
		}
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
	if i, ok := inputs[key.Kind]; ok {
		return i.shown(at, object, now)
	}
	return object
}
