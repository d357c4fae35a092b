package reconcile

import (
	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// wait is a decision that stays as it is for now, with what it waits for: an object that is lost,
// or what holds a move.
type wait struct {
	key api.Key
	// on is the lost object, or the zero key.
	on api.Key
	// by is what holds a move, and text says so with what the decision would be; "" if nothing does.
	by   api.HeldBy
	rule api.Key // the window or freeze, or the zero key
	text string
}

// waits are the decisions that stay as they are for now.
type waits struct {
	of *btree.BTreeG[wait]
	// before is what those waited for in the last snapshot that were evaluated since.
	before map[api.Key]wait
	// held counts those whose moves are held, by what holds them.
	held map[api.HeldBy]int
}

func newWaits() *waits {
	return &waits{
		of:     btree.NewG(16, func(a, b wait) bool { return a.key.Compare(b.key) < 0 }),
		before: map[api.Key]wait{}, held: map[api.HeldBy]int{},
	}
}

// set records what a decision waits for; nothing, if it is only a key.
func (ws *waits) set(w wait) {
	var was wait
	if w == (wait{key: w.key}) {
		was, _ = ws.of.Delete(w)
	} else {
		was, _ = ws.of.ReplaceOrInsert(w)
	}
	was.key = w.key
	ws.count(was, -1)
	ws.count(w, 1)
	ws.waited(was)
}

func (ws *waits) count(w wait, by int) {
	if w.by != "" {
		ws.held[w.by] += by
	}
}

// waited records what a decision has waited for before it is evaluated again.
func (ws *waits) waited(w wait) {
	if _, noted := ws.before[w.key]; !noted {
		ws.before[w.key] = w
	}
}

// all returns the decisions that wait, as far as of includes them.
func (ws *waits) all(of func(wait) bool) (list []wait) {
	ws.of.Ascend(func(w wait) bool {
		if of(w) {
			list = append(list, w)
		}
		return true
	})
	return list
}

// hold records what holds a move of a decision; nil, if nothing does.
func (ws *waits) hold(key api.Key, held *movement.Held) {
	w := wait{key: key}
	if held != nil {
		w.by, w.rule, w.text = held.By, held.Key, held.String()
	}
	ws.set(w)
}

// released returns the cause of a move that was held until now.
func (ws *waits) released(key api.Key) *api.Cause {
	cause := &api.Cause{Type: api.CauseWindowOpened}
	if w, held := ws.of.Get(wait{key: key}); held && w.rule != (api.Key{}) {
		cause.Object = &w.rule
	}
	return cause
}

// otherwiseHeld returns the decisions that wait for something else than in the previous snapshot.
func (p *planner) otherwiseHeld(s *snapshot) (keys []api.Key) {
	for key, before := range p.waits.before {
		if s.waitsFor(key) != before {
			keys = append(keys, key)
		}
	}
	clear(p.waits.before)
	return keys
}

// waitsFor returns what a decision waits for: only its key, if for nothing.
func (s *snapshot) waitsFor(key api.Key) wait {
	if s.waiting == nil { // before the first pass
		return wait{key: key}
	}
	w, _ := s.waiting.Get(wait{key: key})
	w.key = key
	return w
}

// reasonHeld are the reasons of the condition MoveHeld by what holds a move.
var reasonHeld = map[api.HeldBy]string{
	api.HeldByWindow: api.ReasonHeldByWindow, api.HeldByBudget: api.ReasonHeldByBudget, api.HeldByFreeze: api.ReasonHeldByFreeze,
}

// withMoveHeld returns a copy of an object with a condition that says what its decision waits for,
// or the object itself if it waits for nothing.
func (s *snapshot) withMoveHeld(object api.Object) api.Object {
	w := s.waitsFor(api.KeyOf(object))
	c := api.Condition{Type: api.ConditionMoveHeld, Status: api.ConditionTrue}
	switch {
	case w.by != "":
		c.Reason, c.Message = reasonHeld[w.by], "kept: "+w.text
	case w.on != (api.Key{}):
		c.Reason = api.ReasonInputLost
		c.Message = "the decision stays as it is while " + nameFor(object, w.on) + " cannot be used, because it is damaged in the store or the server fails on it"
	default:
		return object
	}
	return api.CopyWith(object, c)
}

// easeBudgets marks the decisions as stale that wait for a budget which may have more left.
func (p *planner) easeBudgets() {
	if !p.moves.eased {
		return
	}
	p.moves.eased = false
	if p.waits.held[api.HeldByBudget] == 0 {
		return
	}
	for _, w := range p.waits.all(func(w wait) bool { return w.by == api.HeldByBudget }) {
		if d := p.known(w.key); d != nil {
			p.queue.mark(d)
		}
	}
}

// releaseHeld marks the decisions as stale whose moves are held: what holds them has changed.
func (p *planner) releaseHeld() {
	if p.passes == 0 {
		return // nothing is decided yet
	}
	for _, w := range p.waits.all(func(w wait) bool { return w.by != "" }) {
		if d := p.known(w.key); d != nil {
			p.queue.mark(d)
		}
	}
	p.bindings.wakePreempting()
}
