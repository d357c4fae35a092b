package reconcile

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// decidedKinds are the kinds of objects that are decided, in the order in which
// their decisions are made. A new one is a file with its row, and a line here.
var decidedKinds = ranked(&magnumClusters, &clusters, &placements, &workloads)

// decidedKind is a row of the table, whatever its types.
type decidedKind interface {
	// name is the kind, and rank its place in the table.
	name() api.Kind
	rank() int
	ranked(at int)
	// hosted says that it is created on a host, which is chosen before the fleet
	// moves on, and told together with what others are decided on.
	hosted() bool

	known(p *planner, key api.Key) decision
	take(p *planner, known decision, object api.Object, specRevision int64)
	see(p *planner, known decision, object api.Object)
	agreed(known decision, object api.Object) bool
	forget(p *planner, key api.Key)
	adopted(p *planner, r *record)
	holdsOf(object api.Object) []hold
	sort(batch []decision)
	decided(p *planner, d decision, now time.Time) (changed, moved bool)
	restsOn(p *planner, d decision) api.Key
	explained(s *snapshot, r *record, now time.Time) *api.Explanation
	previewed(s *snapshot, object api.Object, now time.Time) (api.Object, *api.Explanation, error)
	at(object api.Object) where
	observed(s *snapshot, object api.Object) api.Object

	startsOver(object, base api.Object) bool
	complete(s *simulation, object, base api.Object, given given, now time.Time)
	foresee(p *planner, d decision, now time.Time) *api.Explanation
	recall(p *planner, d decision, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation
	shown(s *simulation, object api.Object, explanation *api.Explanation) api.Object
}

// row is how one kind of object is decided. It needs every column.
type row[O api.Object, D decision] struct {
	kind   api.Kind
	onHost bool
	place  int // in the table

	// find is what is known of an object; ok is false where that is nothing.
	find func(p *planner, key api.Key) (d D, ok bool)
	// put takes in an object that is new, known being nil then, or has a new spec,
	// and seen one whose spec is known.
	put  func(p *planner, known D, object O, specRevision int64)
	seen func(p *planner, known D, object O)
	// agrees reports whether a decision is as it is stored in an object.
	agrees func(known D, object O) bool
	// remove forgets an object, if it is known.
	remove func(p *planner, key api.Key)
	// adopt takes over what a snapshot knows of an object.
	adopt func(p *planner, object O, r *record)
	// holds are the amounts that an object holds on clusters, by its status.
	holds func(object O) []hold
	// turn says which of two decisions that are stale is made first. It calls no two
	// equal.
	turn func(a, b D) int
	// decide makes a decision again. It reports whether the status differs, and whether
	// where the object is does.
	decide func(p *planner, d D, now time.Time) (changed, moved bool)
	// rests is the lost object that a decision rests on, the zero key where there is
	// none.
	rests func(p *planner, d D) api.Key
	// explain says why a decision is what it is.
	explain func(s *snapshot, object O, r *record, now time.Time) *api.Explanation
	// preview is an object with the status that it would get if it were written now,
	// and why. The error is that of a spec that breaks a rule.
	preview func(s *snapshot, object O, now time.Time) (O, *api.Explanation, error)
	// where reads the decision from a status.
	where func(object O) where
	// observe completes a status by what moves without a write.
	observe  func(s *snapshot, object O) api.Object
	simulate simulated[O, D]
}

// simulated is what a simulation does otherwise than the server.
type simulated[O api.Object, D decision] struct {
	// startsOver reports whether what is known of a decision is void in a new version
	// of its object.
	startsOver func(object, base O) bool
	// complete fills in what the request leaves out of an object and those who write it
	// live would add; base is the version before, or nil.
	complete func(s *simulation, object, base O, given given, now time.Time)
	// foresee explains a decision before the pass that makes it; nil where that can only
	// be told afterwards.
	foresee func(p *planner, d D, now time.Time) *api.Explanation
	// recall explains a decision after the pass, foreseen being what was said before it
	// and written whether the pass wrote it; nil where there is nothing to explain.
	recall func(p *planner, d D, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation
	// shown is an object as the answer has it.
	shown func(s *simulation, object O, explanation *api.Explanation) O
}

// given is what a request of a simulation says of an object.
type given struct {
	status     *json.RawMessage // nil: that of the base, if any
	generation int64
	first      bool // there is no base
}

// answers reports whether the status that comes with an object answers its spec,
// though it does not say so: nothing else can be meant.
func (g given) answers() bool { return g.generation == 0 && g.first }

// ranked numbers the rows of the table.
func ranked(rows ...decidedKind) []decidedKind {
	for at, k := range rows {
		k.ranked(at)
	}
	return rows
}

// decidedAs is the row of a kind; nil where it is not decided.
func decidedAs(kind api.Kind) decidedKind {
	if at := slices.IndexFunc(decidedKinds, func(k decidedKind) bool { return k.name() == kind }); at >= 0 {
		return decidedKinds[at]
	}
	return nil
}

// isDecided reports whether a kind is decided and nothing else is decided on it.
func isDecided(kind api.Kind) bool {
	k := decidedAs(kind)
	return k != nil && !k.hosted()
}

// known is the decision on an object, nil where there is none.
func (p *planner) known(key api.Key) decision {
	if k := decidedAs(key.Kind); k != nil {
		return k.known(p, key)
	}
	return nil
}

// The row with its types forgotten. An object, or decision, of another kind never
// gets here.

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

func (r *row[O, D]) take(p *planner, known decision, object api.Object, specRevision int64) {
	r.put(p, as[D](known), as[O](object), specRevision)
}

func (r *row[O, D]) see(p *planner, known decision, object api.Object) {
	r.seen(p, as[D](known), as[O](object))
}

func (r *row[O, D]) agreed(known decision, object api.Object) bool {
	return r.agrees(as[D](known), as[O](object))
}

func (r *row[O, D]) forget(p *planner, key api.Key) {
	p.inherited.takeOver(key)
	r.remove(p, key)
}

func (r *row[O, D]) adopted(p *planner, known *record) { r.adopt(p, as[O](known.decided()), known) }

func (r *row[O, D]) holdsOf(object api.Object) []hold { return r.holds(as[O](object)) }

func (r *row[O, D]) sort(batch []decision) {
	slices.SortFunc(batch, func(a, b decision) int { return r.turn(as[D](a), as[D](b)) })
}

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

func (r *row[O, D]) foresee(p *planner, d decision, now time.Time) *api.Explanation {
	return r.simulate.foresee(p, as[D](d), now)
}

func (r *row[O, D]) recall(p *planner, d decision, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation {
	return r.simulate.recall(p, as[D](d), foreseen, written, now)
}

func (r *row[O, D]) shown(s *simulation, object api.Object, explanation *api.Explanation) api.Object {
	return r.simulate.shown(s, as[O](object), explanation)
}

// as is a value by its own type, nil where it is of another or nil.
func as[T any](value any) T {
	typed, _ := value.(T)
	return typed
}
