package reconcile

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"reflect"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// maxSimulations is how many simulations run at once; each holds a copy of the
// placements.
const maxSimulations = 2

// maxExplained is how many explanations of placements that the request does not
// list itself a simulation returns.
const maxExplained = 100

// Simulate answers what the server would decide if the world were as the request
// says, from the same functions that decide for real. Nothing is changed.
// Objects that break a rule are api.FieldErrors.
func (r *Reconciler) Simulate(ctx context.Context, request api.Simulation) (*api.SimulationResult, error) {
	s, release, err := r.newSimulation(ctx)
	if err != nil {
		return nil, err
	}
	defer release()
	if request.Base == "empty" {
		clear(s.objects)
		s.lost = nil
	}
	now := r.now()
	live := now
	if request.Now != nil {
		now = *request.Now
	}
	return s.run(ctx, request, live, now)
}

// newSimulation is a simulation of the world as it is, once it may run.
func (r *Reconciler) newSimulation(ctx context.Context) (s *simulation, release func(), err error) {
	select {
	case r.simulations <- struct{}{}:
	case <-ctx.Done():
		return nil, nil, fmt.Errorf("wait for another simulation to end: %w", ctx.Err())
	}
	s = newSimulation(r.options.ReadConstant, r.logger)
	world, parked := r.options.Fleet.Snapshot(), r.current.Load().parked
	s.lost = lostIn(world)
	for _, info := range api.Kinds {
		for entry := range world.All(info.Kind, "") {
			// What the live decisions are made without would end the simulation.
			if key := api.KeyOf(entry.Object); parked[key] != nil {
				s.lost = append(s.lost, key)
			} else {
				s.base(entry.Object)
			}
		}
	}
	return s, func() { <-r.simulations }, nil
}

// SimulateFile answers a simulation without a server: its base is empty. now is
// used where the request names no moment.
func SimulateFile(ctx context.Context, request api.Simulation, read ReadConstant, now time.Time) (*api.SimulationResult, error) {
	if request.Base == "live" {
		return nil, api.FieldErrors{{Field: "base", Message: "\"live\" needs a server: a simulation from a file starts from \"empty\""}}
	}
	if request.Now != nil {
		now = *request.Now
	}
	return newSimulation(read, slog.New(slog.DiscardHandler)).run(ctx, request, now, now)
}

// simulation is a world made of a base and the request's objects.
type simulation struct {
	read    ReadConstant
	logger  *slog.Logger
	objects map[api.Key]api.Object
	order   []api.Key // of the request's own objects
	lost    []api.Key // what the base has to do without
	// unscored are the present clusters that the request gives without a score.
	unscored map[api.Key]map[string]bool
}

func newSimulation(read ReadConstant, logger *slog.Logger) *simulation {
	return &simulation{read: read, logger: logger, objects: map[api.Key]api.Object{}, unscored: map[api.Key]map[string]bool{}}
}

func (s *simulation) base(object api.Object) { s.objects[api.KeyOf(object)] = object }

// run lays the request over the base and makes one pass at now. live is the
// moment the base holds for.
func (s *simulation) run(ctx context.Context, request api.Simulation, live, now time.Time) (*api.SimulationResult, error) {
	p := newPlanner(s.logger)
	p.lose(s.lost)
	p.resume(s.sorted(), live)
	base := maps.Clone(s.objects)
	before := map[api.Key]where{}
	for key, object := range s.objects {
		if at, ok := whereIs(object); ok {
			before[key] = at
		}
	}
	if err := s.lay(request, now); err != nil {
		return nil, err
	}
	s.readConstants(now)
	p.lose(slices.DeleteFunc(slices.Clone(s.lost), func(key api.Key) bool { return slices.Contains(s.order, key) }))
	standIns := s.completeMetrics(request, now)
	for _, key := range s.order {
		if at, ok := whereIs(s.objects[key]); ok {
			before[key] = at
		}
	}
	// What the request changes is told as it is live, in key order, so that the
	// same request gives the same answer.
	for _, key := range slices.SortedFunc(maps.Keys(base), api.Key.Compare) {
		k := decidedAs(key.Kind)
		if object, kept := s.objects[key]; !kept || object != base[key] && k != nil && k.startsOver(object, base[key]) {
			p.remove(key)
		}
	}
	for _, object := range s.sorted() {
		if base[api.KeyOf(object)] != object {
			p.put(object, 2)
		}
	}
	for _, provider := range standIns {
		p.put(provider, 1)
	}
	if err := ctx.Err(); err != nil {
		return nil, fmt.Errorf("simulate: %w", err)
	}
	// Explanations are those of the pass: they start from the decision before it.
	p.advance(now)
	told := &explanations{foreseen: map[api.Key]*api.Explanation{}, written: map[api.Key]bool{}}
	for _, key := range s.order {
		if d := p.known(key); d != nil {
			told.foreseen[key] = d.kind().foresee(p, d, now)
		}
	}
	for _, w := range p.pass(now) {
		key := w.key()
		s.objects[key] = w.result()
		told.written[key] = true
	}
	return s.result(p, before, told, now), nil
}

// explanations are what a simulation tells of decisions.
type explanations struct {
	foreseen map[api.Key]*api.Explanation // before the pass
	written  map[api.Key]bool             // by the pass
}

// of explains a decision after the pass, nil for what is not decided.
func (x *explanations) of(p *planner, key api.Key, now time.Time) *api.Explanation {
	d := p.known(key)
	if d == nil {
		return nil
	}
	return d.kind().recall(p, d, x.foreseen[key], x.written[key], now)
}

// lay puts the request's objects over the base.
func (s *simulation) lay(request api.Simulation, now time.Time) error {
	var errs api.FieldErrors
	if request.Base != "" && request.Base != "live" && request.Base != "empty" {
		errs.Add("base", "%q is not one of \"live\", \"empty\"", request.Base)
	}
	for i, key := range request.Delete {
		if _, ok := s.objects[key]; !ok {
			errs.Add(fmt.Sprintf("delete[%d]", i), "%s does not exist", key)
		}
		delete(s.objects, key)
	}
	seen := map[api.Key]int{}
	for i, raw := range request.Objects {
		field := fmt.Sprintf("objects[%d]", i)
		object, err := decode(raw)
		if err != nil {
			errs = append(errs, within(field, err)...)
			continue
		}
		key := api.KeyOf(object)
		if first, ok := seen[key]; ok {
			errs.Add(field, "%s is already given as objects[%d]", key, first)
			continue
		}
		seen[key] = i
		if err := s.inherit(object, s.objects[key], raw, now); err != nil {
			errs = append(errs, within(field, err)...)
		}
		s.objects[key] = object
		s.order = append(s.order, key)
	}
	return errs.Err()
}

// decode reads and checks one object, and reports all that is wrong with it.
func decode(raw json.RawMessage) (api.Object, error) {
	object, err := api.Decode(raw)
	var errs api.FieldErrors
	if err != nil && (object == nil || !errors.As(err, &errs)) {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	errs = errs.And(object.Validate())
	if w, ok := object.(*api.Workload); ok {
		errs = errs.And(w.Status.Validate()) // only here is a status given
	}
	return object, errs.Err()
}

// within puts the errors of one object under its place in the request.
func within(field string, err error) api.FieldErrors {
	var errs api.FieldErrors
	if !errors.As(err, &errs) {
		return api.FieldErrors{{Field: field, Message: err.Error()}}
	}
	out := make(api.FieldErrors, len(errs))
	for i, e := range errs {
		out[i] = api.FieldError{Field: field + "." + e.Field, Message: e.Message}
	}
	return out
}

// inherit completes an object as the server would when it is written: over an
// object of the base it is a new version of it, with that one's status unless
// the request brings its own.
func (s *simulation) inherit(object, base api.Object, raw json.RawMessage, now time.Time) error {
	var told struct {
		Status   *json.RawMessage `json:"status"`
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &told) // decoded before
	meta := object.Meta()
	if base != nil {
		base = withoutSecrets(base)
		was := base.Meta()
		meta.UID, meta.CreatedAt = was.UID, was.CreatedAt
		meta.RescheduleRequests = max(meta.RescheduleRequests, was.RescheduleRequests)
		document, err := api.DecodeDocument(raw)
		if err != nil {
			return err // cannot be: it has been decoded
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

// withoutSecrets is an object as whoever asks for a simulation may know it: that
// it has a secret, and not which.
func withoutSecrets(object api.Object) api.Object {
	shown := object.Copy()
	for field := range object.Secrets() {
		shown.SetSecret(field, api.WithheldSecret())
	}
	return shown
}

// readConstants gives metrics of static providers the value the live server
// would read, unless the request brings one.
func (s *simulation) readConstants(now time.Time) {
	if s.read == nil {
		return
	}
	given := map[api.Key]bool{}
	for _, key := range s.order {
		if m, ok := s.objects[key].(*api.Metric); ok && m.Status.Value != nil {
			given[key] = true
		}
	}
	for key, object := range s.objects {
		m, ok := object.(*api.Metric)
		if !ok || given[key] {
			continue
		}
		provider, ok := s.objects[m.ProviderKey()].(*api.MetricsProvider)
		if !ok {
			continue
		}
		if status, ok := s.read(provider, m, now); ok {
			copied := *m
			copied.Status = status
			s.objects[key] = &copied
		}
	}
}

func (s *simulation) sorted() []api.Object {
	out := make([]api.Object, 0, len(s.objects))
	for _, object := range s.objects {
		out = append(out, object)
	}
	slices.SortFunc(out, func(a, b api.Object) int { return api.KeyOf(a).Compare(api.KeyOf(b)) })
	return out
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
	for _, object := range s.sorted() {
		at, ok := whereIs(object)
		key := api.KeyOf(object)
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

// shown is an object after the pass, as a reader would see it.
func (s *simulation) shown(at *snapshot, key api.Key, explanation *api.Explanation, now time.Time) api.Object {
	switch o := s.objects[key].(type) {
	case *api.PlacementScore:
		return o.Observed(now)
	case *api.PropagationPolicy:
		return at.observePolicy(o)
	}
	object := at.observe(s.objects[key])
	if k := decidedAs(key.Kind); k != nil {
		return k.shown(s, object, explanation)
	}
	return object
}
