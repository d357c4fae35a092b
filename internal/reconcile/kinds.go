package reconcile

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// decidedKinds are the kinds of objects that are decided, in the order in which decisions are made.
// To add one, add a file with its row, and a line here.
var decidedKinds = ranked(&magnumClusters, &clusters, &placements, &workloads)

// decidedKind is a row of the table, regardless of its types.
type decidedKind interface {
	// name returns the kind, and rank its position in the table.
	name() api.Kind
	rank() int
	ranked(at int)
	// hosted says that it is created on a host, which is chosen before the fleet is updated, and
	// that it is passed to the planner together with the inputs of other decisions.
	hosted() bool

	known(p *planner, key api.Key) decision
	applySpec(p *planner, known decision, object api.Object, specRevision int64)
	applyStatus(p *planner, known decision, object api.Object)
	agreed(known decision, object api.Object) bool
	forget(p *planner, key api.Key)
	load(p *planner, r *record)
	holdsOf(object api.Object) []hold
	compare(a, b decision) int
	decided(p *planner, d decision, now time.Time) (changed, moved bool)
	restsOn(p *planner, d decision) api.Key
	explained(s *snapshot, r *record, now time.Time) *api.Explanation
	previewed(s *snapshot, object api.Object, now time.Time) (api.Object, *api.Explanation, error)
	at(object api.Object) where
	observed(s *snapshot, object api.Object) api.Object

	startsOver(object, base api.Object) bool
	complete(s *simulation, object, base api.Object, given given, now time.Time)
	explainBefore(p *planner, d decision, now time.Time) *api.Explanation
	explainAfter(p *planner, d decision, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation
	shown(s *simulation, object api.Object, explanation *api.Explanation) api.Object
}

// row is how one kind of object is decided. All functions are required.
type row[O api.Object, D decision] struct {
	kind   api.Kind
	onHost bool
	place  int // in the table

	// find returns what is known of an object; ok is false if nothing is.
	find func(p *planner, key api.Key) (d D, ok bool)
	// put applies a new object, in which case known is nil, or a new spec; seen applies an object
	// whose spec is known.
	put  func(p *planner, known D, object O, specRevision int64)
	seen func(p *planner, known D, object O)
	// agrees reports whether a decision equals the one stored in an object.
	agrees func(known D, object O) bool
	// remove removes an object, if it is known.
	remove func(p *planner, key api.Key)
	// adopt copies an object of a snapshot.
	adopt func(p *planner, object O, r *record)
	// holds returns the amounts that an object holds on clusters, according to its status.
	holds func(object O) []hold
	// order compares which of two stale decisions is made first. It never returns 0 for different
	// decisions.
	order func(a, b D) int
	// decide makes a decision again. It reports whether the status changed, and whether the chosen
	// place did.
	decide func(p *planner, d D, now time.Time) (changed, moved bool)
	// rests returns the lost object that a decision depends on, or the zero key.
	rests func(p *planner, d D) api.Key
	// explain explains a decision.
	explain func(s *snapshot, object O, r *record, now time.Time) *api.Explanation
	// preview returns an object with the status that it would get if it were written now, and the
	// explanation. The error is that of an invalid spec.
	preview func(s *snapshot, object O, now time.Time) (O, *api.Explanation, error)
	// where returns the decision in a status.
	where func(object O) where
	// observe completes a status by data that changes without a write.
	observe  func(s *snapshot, object O) api.Object
	simulate simulated[O, D]
}

// simulated is what a simulation does differently from the server.
type simulated[O api.Object, D decision] struct {
	// startsOver reports whether a known decision is void in a new version of its object.
	startsOver func(object, base O) bool
	// complete adds what a request omits and writers of the live object would add; base is the
	// previous version, or nil.
	complete func(s *simulation, object, base O, given given, now time.Time)
	// explainBefore explains a decision before the pass that makes it; nil if that is only possible
	// afterwards.
	explainBefore func(p *planner, d D, now time.Time) *api.Explanation
	// explainAfter explains a decision after the pass, where foreseen is the explanation from before and
	// written says whether the pass wrote it; nil if there is nothing to explain.
	explainAfter func(p *planner, d D, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation
	// shown returns an object for the result.
	shown func(s *simulation, object O, explanation *api.Explanation) O
}

// given is what the request of a simulation contains of an object.
type given struct {
	status     *json.RawMessage // nil: that of the base, if any
	generation int64
	first      bool // there is no base
}

// answers reports whether the status of an object is for its spec although it does not say so,
// because nothing else can be meant.
func (g given) answers() bool { return g.generation == 0 && g.first }

// ranked numbers the rows of the table.
func ranked(rows ...decidedKind) []decidedKind {
	for at, k := range rows {
		k.ranked(at)
	}
	return rows
}

// decidedAs returns the row of a kind; nil if it is not decided.
func decidedAs(kind api.Kind) decidedKind {
	if at := slices.IndexFunc(decidedKinds, func(k decidedKind) bool { return k.name() == kind }); at >= 0 {
		return decidedKinds[at]
	}
	return nil
}

// isDecided reports whether a kind is decided and no other decisions are based on it.
func isDecided(kind api.Kind) bool {
	k := decidedAs(kind)
	return k != nil && !k.hosted()
}

// known returns the decision on an object, or nil.
func (p *planner) known(key api.Key) decision {
	if k := decidedAs(key.Kind); k != nil {
		return k.known(p, key)
	}
	return nil
}

// The row without its types. Objects and decisions of other kinds are never passed to it.

func (r *row[O, D]) name() api.Kind { return r.kind }
func (r *row[O, D]) rank() int      { return r.place }
func (r *row[O, D]) ranked(at int)  { r.place = at }
func (r *row[O, D]) hosted() bool   { return r.onHost }

func (r *row[O, D]) known(p *planner, key api.Key) decision {
	p.inherited.takeOver(key)
	if d, ok := r.find(p, key); ok {
		return d
	}
	return nil
}

func (r *row[O, D]) applySpec(p *planner, known decision, object api.Object, specRevision int64) {
	r.put(p, as[D](known), as[O](object), specRevision)
}

func (r *row[O, D]) applyStatus(p *planner, known decision, object api.Object) {
	r.seen(p, as[D](known), as[O](object))
}

func (r *row[O, D]) agreed(known decision, object api.Object) bool {
	return r.agrees(as[D](known), as[O](object))
}

func (r *row[O, D]) forget(p *planner, key api.Key) {
	p.inherited.takeOver(key)
	r.remove(p, key)
}

func (r *row[O, D]) load(p *planner, known *record) { r.adopt(p, as[O](known.decided()), known) }

func (r *row[O, D]) holdsOf(object api.Object) []hold { return r.holds(as[O](object)) }

func (r *row[O, D]) compare(a, b decision) int { return r.order(as[D](a), as[D](b)) }

func (r *row[O, D]) decided(p *planner, d decision, now time.Time) (changed, moved bool) {
	return r.decide(p, as[D](d), now)
}

func (r *row[O, D]) restsOn(p *planner, d decision) api.Key { return r.rests(p, as[D](d)) }

func (r *row[O, D]) explained(s *snapshot, recorded *record, now time.Time) *api.Explanation {
	return r.explain(s, as[O](recorded.decided()), recorded, now)
}

func (r *row[O, D]) previewed(s *snapshot, object api.Object, now time.Time) (api.Object, *api.Explanation, error) {
	return r.preview(s, as[O](object), now)
}

func (r *row[O, D]) at(object api.Object) where { return r.where(as[O](object)) }

func (r *row[O, D]) observed(s *snapshot, object api.Object) api.Object {
	return r.observe(s, as[O](object))
}

func (r *row[O, D]) startsOver(object, base api.Object) bool {
	return r.simulate.startsOver(as[O](object), as[O](base))
}

func (r *row[O, D]) complete(s *simulation, object, base api.Object, given given, now time.Time) {
	r.simulate.complete(s, as[O](object), as[O](base), given, now)
}

func (r *row[O, D]) explainBefore(p *planner, d decision, now time.Time) *api.Explanation {
	return r.simulate.explainBefore(p, as[D](d), now)
}

func (r *row[O, D]) explainAfter(p *planner, d decision, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation {
	return r.simulate.explainAfter(p, as[D](d), foreseen, written, now)
}

func (r *row[O, D]) shown(s *simulation, object api.Object, explanation *api.Explanation) api.Object {
	return r.simulate.shown(s, as[O](object), explanation)
}

// as converts a value to its own type; nil if it has another type or is nil.
func as[T any](value any) T {
	typed, _ := value.(T)
	return typed
}
