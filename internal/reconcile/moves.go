package reconcile

import (
	"cmp"
	"slices"
	"time"

	"github.com/google/btree"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/movement"
)

// moves are what may hold the moves of decisions: windows, freezes and budgets, with what was used
// of these.
type moves struct {
	rules *moveRules
	// uses are the moves that count in budgets, by scope and time.
	uses *btree.BTreeG[use]
	// chosen returns how many clusters the decisions of a scope have.
	chosen func(moveScope) int64
	// known are the budgets of scopes at one time, until something more is used.
	known   map[api.Key]movement.Budget
	knownAt time.Time
	// eased says that a budget may have more left than before: something used no longer counts, or a
	// decision has changed of whose clusters it is a percentage.
	eased bool
}

// moveRules are the windows, freezes and budgets of a server. They are immutable.
type moveRules struct {
	movement.Rules
	budgets  []*api.MoveBudget // in the order of their keys
	unusable []api.Key         // lost objects: they are taken for a freeze
}

// moveScope is what a budget counts the moves of: the decisions of a namespace, those that follow a
// policy, or all.
type moveScope struct{ namespace, policy string }

// use is one use of the budgets of a scope.
type use struct {
	moveScope
	at    time.Time
	key   api.Key
	moves int64
}

func newMoves() *moves {
	return &moves{
		rules: &moveRules{},
		uses: btree.NewG(16, func(a, b use) bool {
			return cmp.Or(cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.policy, b.policy), a.at.Compare(b.at), a.key.Compare(b.key)) < 0
		}),
		known: map[api.Key]movement.Budget{},
	}
}

// freeze returns a copy that does not change.
func (m *moves) freeze() *moves {
	return &moves{rules: m.rules, uses: m.uses.Clone()}
}

// adopt takes over those of a snapshot.
func (m *moves) adopt(from *moves) { m.rules, m.uses = from.rules, thaw(from.uses) }

// putWindow applies a window; nil deletes it.
func (m *moves) putWindow(key api.Key, w *api.MoveWindow) error {
	return m.change(func(rules *moveRules) error {
		rules.Windows = slices.DeleteFunc(slices.Clone(rules.Windows), func(w *movement.Window) bool { return w.Key() == key })
		if w == nil {
			return nil
		}
		compiled, err := movement.NewWindow(w)
		if err == nil {
			rules.Windows = append(rules.Windows, compiled)
			slices.SortFunc(rules.Windows, func(a, b *movement.Window) int { return a.Key().Compare(b.Key()) })
		}
		return err
	})
}

// putFreeze applies a freeze; nil deletes it.
func (m *moves) putFreeze(key api.Key, f *api.Freeze) {
	_ = m.change(func(rules *moveRules) error {
		rules.Freezes = withReplaced(rules.Freezes, key, f)
		return nil
	})
}

// putBudget applies a budget; nil deletes it.
func (m *moves) putBudget(key api.Key, b *api.MoveBudget) {
	_ = m.change(func(rules *moveRules) error {
		rules.budgets = withReplaced(rules.budgets, key, b)
		return nil
	})
}

// lose sets which windows, freezes and budgets are lost. What cannot be read may hold moves: so it
// does.
func (m *moves) lose(keys []api.Key) (changed bool) {
	keys = slices.DeleteFunc(slices.Clone(keys), func(key api.Key) bool {
		return key.Kind != api.KindMoveWindow && key.Kind != api.KindMoveBudget && key.Kind != api.KindFreeze
	})
	slices.SortFunc(keys, api.Key.Compare)
	if slices.Equal(keys, m.rules.unusable) {
		return false
	}
	_ = m.change(func(rules *moveRules) error {
		rules.Freezes = slices.DeleteFunc(slices.Clone(rules.Freezes), func(f *api.Freeze) bool { return f.Metadata.Name == "" })
		for _, key := range keys {
			rules.Freezes = append(rules.Freezes, &api.Freeze{
				Metadata: api.Metadata{Namespace: key.Namespace},
				Spec:     api.FreezeSpec{Reason: key.String() + " cannot be used, because it is damaged in the store or the server fails on it"},
			})
		}
		rules.unusable = keys
		return nil
	})
	return true
}

func (m *moves) change(apply func(*moveRules) error) error {
	rules := *m.rules
	err := apply(&rules)
	m.rules, m.known = &rules, map[api.Key]movement.Budget{}
	return err
}

// withReplaced returns a copy of a list, in the order of the keys, with an object added, replaced, or,
// if it is nil, removed.
func withReplaced[O interface {
	api.Object
	comparable
}](list []O, key api.Key, object O) []O {
	list = slices.DeleteFunc(slices.Clone(list), func(o O) bool { return api.KeyOf(o) == key })
	if object != *new(O) {
		list = append(list, object)
		slices.SortFunc(list, func(a, b O) int { return api.KeyOf(a).Compare(api.KeyOf(b)) })
	}
	return list
}

// mover is a decision whose moves may be held.
type mover struct {
	meta *api.Metadata
	// policy is the path of the policy that it follows, with its budget.
	policy string
	// budget is its own, or that of its policy; nil if there is none.
	budget *api.MoveBudgetSpec
	// used is what it used of budgets, and chosen how many clusters it has.
	used   []api.Moves
	chosen int
}

// holding returns what may hold the moves of a decision at a time; nil if nothing does.
func (m *moves) holding(d mover, now time.Time) func() *movement.Holding {
	if m.rules.Empty() && len(m.rules.budgets) == 0 && d.budget == nil {
		return nil
	}
	return func() *movement.Holding {
		return movement.NewHolding(&m.rules.Rules, m.budgets(d, now), d.meta, now)
	}
}

// free holds nothing: with it, the engine counts the moves of a decision whose moves were held until
// now.
func free() *movement.Holding { return nil }

// budgets returns what is left of the budgets that apply to a decision.
func (m *moves) budgets(d mover, now time.Time) (list []movement.Budget) {
	for _, b := range m.rules.budgets {
		if b.Metadata.Namespace == "" || b.Metadata.Namespace == d.meta.Namespace {
			list = append(list, m.left(api.KeyOf(b), &b.Spec, moveScope{namespace: b.Metadata.Namespace}, now))
		}
	}
	switch {
	case d.budget == nil:
	case d.policy != "":
		key := api.Key{Kind: api.KindPropagationPolicy, Name: d.policy}
		list = append(list, m.left(key, d.budget, moveScope{policy: d.policy}, now))
	default:
		var used []movement.Use
		for _, u := range d.used {
			used = append(used, movement.Use{At: u.At, Moves: u.Moves})
		}
		list = append(list, movement.NewBudget("", d.budget.MaxMoves.Of(int64(d.chosen)), d.budget.Per.Or(0), used, now))
	}
	return list
}

// left returns what is left of the budget of a scope.
func (m *moves) left(key api.Key, b *api.MoveBudgetSpec, scope moveScope, now time.Time) movement.Budget {
	amount, percent, _ := b.MaxMoves.Parse()
	if known, ok := m.known[key]; ok && m.knownAt.Equal(now) && (!percent || known.Left > 0 || !known.NextAt.IsZero() || amount == 0) {
		return known // unless it is a percentage of none, which the decision itself may have changed
	}
	per := b.Per.Or(0)
	var used []movement.Use
	m.uses.AscendGreaterOrEqual(use{moveScope: scope, at: now.Add(-per)}, func(u use) bool {
		if u.moveScope == scope {
			used = append(used, movement.Use{At: u.at, Moves: u.moves})
		}
		return u.moveScope == scope
	})
	chosen := int64(0)
	if percent {
		chosen = m.chosen(scope)
	}
	budget := movement.NewBudget(key.Name, b.MaxMoves.Of(chosen), per, used, now)
	if m.known != nil {
		if !m.knownAt.Equal(now) {
			clear(m.known)
			m.knownAt = now
		}
		m.known[key] = budget
	}
	return budget
}

// spent returns the moves of a decision that count in budgets after it moved: only if it has
// budgets, and as long as they count.
func (m *moves) spent(d mover, moved int64, now time.Time) []api.Moves {
	longest := time.Duration(0)
	if d.budget != nil {
		longest = d.budget.Per.Or(0)
	}
	for _, b := range m.rules.budgets {
		if b.Metadata.Namespace == "" || b.Metadata.Namespace == d.meta.Namespace {
			longest = max(longest, b.Spec.Per.Or(0))
		}
	}
	if longest == 0 {
		return nil
	}
	kept := slices.DeleteFunc(slices.Clone(d.used), func(u api.Moves) bool {
		return movement.Use{At: u.At}.Over(longest, now)
	})
	if n := len(kept); n > 0 && kept[n-1].At.Equal(now) {
		kept[n-1].Moves += moved
		return kept
	}
	return append(kept, api.Moves{At: now.UTC(), Moves: moved})
}

// account replaces what a decision used of the budgets of its scopes.
func (m *moves) account(key api.Key, policyBefore string, before []api.Moves, policy string, after []api.Moves) {
	if policyBefore == policy && slices.Equal(before, after) {
		return
	}
	each := func(policy string, list []api.Moves, put func(use)) {
		for _, moved := range list {
			u := use{at: moved.At, key: key, moves: moved.Moves}
			put(u)
			u.namespace = key.Namespace
			put(u)
			if policy != "" {
				u.namespace, u.policy = "", policy
				put(u)
			}
		}
	}
	m.eased = m.eased || len(before) > 0
	each(policyBefore, before, func(u use) { m.uses.Delete(u) })
	each(policy, after, func(u use) { m.uses.ReplaceOrInsert(u) })
	clear(m.known)
}

// changeWindow applies a new version of a window; nil deletes it.
func (p *planner) changeWindow(key api.Key, w *api.MoveWindow) {
	if err := p.moves.putWindow(key, w); err != nil {
		p.logger.Error("a stored window cannot be used; it holds nothing", "window", key.Path(), "error", err)
	}
	p.releaseHeld()
}

// changeBudget applies a new version of a budget; nil deletes it.
func (p *planner) changeBudget(key api.Key, b *api.MoveBudget) {
	p.moves.putBudget(key, b)
	p.releaseHeld()
}

// changeFreeze applies a new version of a freeze; nil deletes it.
func (p *planner) changeFreeze(key api.Key, f *api.Freeze) {
	p.moves.putFreeze(key, f)
	p.releaseHeld()
}

// chosen returns how many clusters the decisions of a scope have. It looks at all of them: only
// budgets in percent need it.
func (p *planner) chosen(scope moveScope) (n int64) {
	for key, placed := range p.placer.placements {
		n += scope.count(key, "", len(placed.status.Clusters))
	}
	for key, w := range p.bindings.workloads {
		n += scope.count(key, w.status.Policy, len(w.status.Clusters))
	}
	if p.inherited != nil {
		p.inherited.records.Ascend(func(r *record) bool {
			if _, taken := p.inherited.taken[*r.key]; !taken {
				n += scope.countRecord(r)
			}
			return true
		})
	}
	return n
}

// chosen returns how many clusters the decisions of a scope have.
func (s *snapshot) chosen(scope moveScope) (n int64) {
	s.records.Ascend(func(r *record) bool {
		n += scope.countRecord(r)
		return true
	})
	return n
}

func (scope moveScope) countRecord(r *record) int64 {
	if r.status != nil {
		return scope.count(*r.key, "", len(r.status.Clusters))
	}
	if w, ok := r.object.(*api.Workload); ok {
		return scope.count(*r.key, w.Status.Policy, len(w.Status.Clusters))
	}
	return 0
}

// count returns the number of clusters of a decision if it belongs to the scope.
func (scope moveScope) count(key api.Key, policy string, clusters int) int64 {
	if scope.policy != "" && scope.policy != policy || scope.namespace != "" && scope.namespace != key.Namespace {
		return 0
	}
	return int64(clusters)
}
