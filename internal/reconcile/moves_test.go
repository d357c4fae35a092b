package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Keys of the windows, budgets and freezes that property tests draw.
var (
	drawnWindows = []api.Key{key(api.KindMoveWindow, "", "w0"), key(api.KindMoveWindow, "", "w1"), key(api.KindMoveWindow, "shop", "w2")}
	drawnBudgets = []api.Key{key(api.KindMoveBudget, "", "b0"), key(api.KindMoveBudget, "shop", "b1")}
	drawnFreezes = []api.Key{key(api.KindFreeze, "", "f0"), key(api.KindFreeze, "shop", "f1")}
)

// drawWindow draws a window that opens and closes within minutes.
func drawWindow(t *rapid.T) *api.MoveWindow {
	k := rapid.SampledFrom(drawnWindows).Draw(t, "window")
	w := &api.MoveWindow{Metadata: api.Metadata{Namespace: k.Namespace, Name: k.Name}, Spec: api.MoveWindowSpec{
		Kind:     rapid.SampledFrom([]api.WindowKind{api.WindowAllow, api.WindowDeny}).Draw(t, "kind"),
		Schedule: rapid.SampledFrom([]string{"*/5 * * * *", "0 * * * *", "*/2 * * * *", "30 4 * * *"}).Draw(t, "schedule"),
		Duration: rapid.SampledFrom([]api.Duration{"1m", "3m", "1h"}).Draw(t, "duration"),
		TimeZone: rapid.SampledFrom([]string{"", "Europe/Berlin"}).Draw(t, "time_zone"),
		Reasons:  rapid.SampledFrom([][]api.CauseType{nil, nil, {api.CauseMetric}, {api.CauseScore, api.CauseCapacity}}).Draw(t, "reasons"),
	}}
	zone := func(label string) *api.MoveClusters {
		return rapid.SampledFrom([]*api.MoveClusters{nil, nil, {LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"zone": "a"}}}}).Draw(t, label)
	}
	w.Spec.From, w.Spec.To = zone("from"), zone("to")
	if k.Namespace == "" {
		w.Spec.Selector = rapid.SampledFrom([]*api.MoveSelector{nil, {Namespaces: []string{"shop"}}, {Namespaces: []string{"other"}}}).Draw(t, "selector")
	}
	return w
}

// drawBudget draws a budget that is soon used up.
func drawBudget(t *rapid.T) *api.MoveBudget {
	k := rapid.SampledFrom(drawnBudgets).Draw(t, "budget")
	return &api.MoveBudget{Metadata: api.Metadata{Namespace: k.Namespace, Name: k.Name}, Spec: api.MoveBudgetSpec{
		MaxMoves: rapid.SampledFrom([]api.MoveAmount{"0", "1", "2", "20%"}).Draw(t, "max_moves"),
		Per:      rapid.SampledFrom([]api.Duration{"1m", "5m"}).Draw(t, "per"),
	}}
}

// drawFreeze draws a freeze, with or without an end.
func drawFreeze(t *rapid.T, now time.Time) *api.Freeze {
	k := rapid.SampledFrom(drawnFreezes).Draw(t, "freeze")
	f := &api.Freeze{Metadata: api.Metadata{Namespace: k.Namespace, Name: k.Name}, Spec: api.FreezeSpec{Reason: "incident"}}
	if rapid.Bool().Draw(t, "ends") {
		until := now.Add(time.Duration(rapid.IntRange(-10, 120).Draw(t, "until")) * time.Second)
		f.Spec.Until = &until
	}
	return f
}

// freeze returns a freeze of a namespace, or of everything.
func freeze(namespace string, until *time.Time) *api.Freeze {
	return &api.Freeze{
		Metadata: api.Metadata{Namespace: namespace, Name: api.FreezeName}, Spec: api.FreezeSpec{Reason: "incident", Until: until},
	}
}

// window returns a global window that is open for an hour from 18:00 UTC on.
func window(kind api.WindowKind, change ...func(*api.MoveWindowSpec)) *api.MoveWindow {
	w := &api.MoveWindow{Metadata: api.Metadata{Name: "evenings"}, Spec: api.MoveWindowSpec{Kind: kind, Schedule: "0 18 * * *", Duration: "1h"}}
	for _, c := range change {
		c(&w.Spec)
	}
	return w
}

// budget returns the budget of a namespace, or of the server.
func budget(namespace string, maxMoves api.MoveAmount, per api.Duration) *api.MoveBudget {
	return &api.MoveBudget{Metadata: api.Metadata{Namespace: namespace, Name: "slowly"}, Spec: api.MoveBudgetSpec{MaxMoves: maxMoves, Per: per}}
}

// heldAs returns the condition MoveHeld of the placement "web", as readers see it.
func heldAs(p *planner) string {
	c := api.FindCondition(*api.ConditionsOf(p.snapshot(nil).withMoveHeld(webOf(p).result())), api.ConditionMoveHeld)
	if c == nil {
		return ""
	}
	return c.Reason + ": " + c.Message
}

// betterElsewhere returns a world in which the placement "web" is on c1 and c2 is better since.
func betterElsewhere(t *testing.T, before ...api.Object) (*world, *planner) {
	t.Helper()
	w, p := newWorld(), newPlanner(discard())
	for _, object := range append([]api.Object{
		provider(), metric("m1", 0.9), metric("m2", 0.1), cluster("c1", map[string]string{"zone": "a"}, api.MetricRef{Name: "m1", Weight: ptr(1.0)}),
		cluster("c2", map[string]string{"zone": "b"}, api.MetricRef{Name: "m2", Weight: ptr(1.0)}), newPlacement("web", 1),
	}, before...) {
		w.write(p, object)
	}
	p.pass(epoch)
	wantClusters(t, p, "at first", "c1")
	w.write(p, metric("m1", 0.2))
	w.write(p, metric("m2", 1))
	return w, p
}

// TestMovesAreHeld covers what holds a move, what it says, and when it is made.
func TestMovesAreHeld(t *testing.T) {
	evening := time.Date(2026, 3, 1, 18, 0, 0, 0, time.UTC)
	later := epoch.Add(10 * time.Minute)
	for name, test := range map[string]struct {
		by   api.Object
		held string // "": it moves at once
		at   time.Time
	}{
		"freeze":                 {freeze("", nil), "HeldByFreeze: kept: freeze (incident), else c2", time.Time{}},
		"freeze that ends":       {freeze("shop", &later), "HeldByFreeze: kept: freeze (incident) until 2026-03-01 12:10 UTC, else c2", later},
		"freeze that is over":    {freeze("shop", &epoch), "", time.Time{}},
		"freeze elsewhere":       {freeze("bank", nil), "", time.Time{}},
		"allowed in the evening": {window(api.WindowAllow), "HeldByWindow: kept: window evenings until 2026-03-01 18:00 UTC, else c2", evening},
		"denied in the evening":  {window(api.WindowDeny), "", time.Time{}},
		"denied for eight hours": {window(api.WindowDeny, func(s *api.MoveWindowSpec) { s.Schedule, s.Duration = "0 10 * * *", "8h" }), "HeldByWindow: kept: window evenings until 2026-03-01 18:00 UTC, else c2", evening},
		"in the time of a zone":  {window(api.WindowAllow, func(s *api.MoveWindowSpec) { s.Schedule, s.TimeZone = "0 19 * * *", "Europe/Berlin" }), "HeldByWindow: kept: window evenings until 2026-03-01 19:00 CET, else c2", evening},
		"another namespace":      {window(api.WindowAllow, func(s *api.MoveWindowSpec) { s.Selector = &api.MoveSelector{Namespaces: []string{"bank"}} }), "", time.Time{}},
		"for another reason":     {window(api.WindowAllow, func(s *api.MoveWindowSpec) { s.Reasons = []api.CauseType{api.CauseFailBack} }), "", time.Time{}},
		"for this reason":        {window(api.WindowAllow, func(s *api.MoveWindowSpec) { s.Reasons = []api.CauseType{api.CauseMetric} }), "HeldByWindow: kept: window evenings until 2026-03-01 18:00 UTC, else c2", evening},
		"from the cluster":       {window(api.WindowAllow, func(s *api.MoveWindowSpec) { s.From = &api.MoveClusters{ClusterNames: []string{"c1"}} }), "HeldByWindow: kept: window evenings until 2026-03-01 18:00 UTC, else c2", evening},
		"from another cluster":   {window(api.WindowAllow, func(s *api.MoveWindowSpec) { s.From = &api.MoveClusters{ClusterNames: []string{"c2"}} }), "", time.Time{}},
		"to clusters by label": {window(api.WindowAllow, func(s *api.MoveWindowSpec) {
			s.To = &api.MoveClusters{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"zone": "b"}}}
		}), "HeldByWindow: kept: window evenings until 2026-03-01 18:00 UTC, else c2", evening},
		"budget of none":           {budget("", "0", "1h"), "HeldByBudget: kept: budget slowly, else c2", time.Time{}},
		"budget of one":            {budget("shop", "1", "1h"), "", time.Time{}},
		"budget of none, rounded":  {budget("shop", "0%", "1h"), "HeldByBudget: kept: budget slowly, else c2", time.Time{}},
		"budget of a few, rounded": {budget("shop", "1%", "1h"), "", time.Time{}},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := betterElsewhere(t, test.by)
			p.pass(epoch)
			if test.held == "" {
				wantClusters(t, p, "with "+name, "c2")
				return
			}
			wantClusters(t, p, "with "+name, "c1")
			if got := heldAs(p); got != test.held {
				t.Errorf("held as %q, want %q", got, test.held)
			}
			if x := p.placer.explain(webOf(p), epoch).Render(); x.Held == nil || !slices.Equal(x.Held.Would, []string{"c2"}) || !strings.Contains(x.Summary, "kept: ") {
				t.Errorf("explained as %+v: %s", x.Held, x.Summary)
			}
			checkSettled(t, p, epoch)
			// A restart moves nothing.
			again := newPlanner(discard())
			for k, object := range w.afterPass(p) {
				again.put(object, w.specs[k])
			}
			if writes := again.pass(epoch); len(writes) > 0 {
				t.Errorf("a restart writes %v", writes)
			}
			if got := heldAs(again); got != test.held {
				t.Errorf("after a restart held as %q, want %q", got, test.held)
			}
			// It is decided again with the figures of the moment, without anything else.
			p.tells, webOf(p).move = true, nil
			if !test.at.IsZero() {
				if got := p.nextAt(); !got.Equal(test.at) {
					t.Errorf("looked at again at %v, want %v", got, test.at)
				}
				p.pass(test.at)
			} else {
				w.remove(p, api.KeyOf(test.by))
				p.pass(epoch)
			}
			wantClusters(t, p, "in the end", "c2")
			if m := webOf(p).move; m == nil || m.cause.Type != api.CauseWindowOpened || m.cause.Object != nil && *m.cause.Object != api.KeyOf(test.by) {
				t.Errorf("moved because of %+v, want that it was held", m)
			}
			if got := heldAs(p); got != "" {
				t.Errorf("in the end held as %q", got)
			}
		})
	}
}

// TestNothingForcedIsHeld checks that a freeze holds neither what a decision must leave, nor what a
// user's own write asks for.
func TestNothingForcedIsHeld(t *testing.T) {
	for name, change := range map[string]func(w *world, p *planner){
		"the cluster is offline": func(w *world, p *planner) {
			c := cluster("c1", map[string]string{"zone": "a"}, api.MetricRef{Name: "m1", Weight: ptr(1.0)})
			c.Status.State = api.StateOffline
			w.write(p, c)
		},
		"the cluster is tainted": func(w *world, p *planner) {
			c := cluster("c1", map[string]string{"zone": "a"}, api.MetricRef{Name: "m1", Weight: ptr(1.0)})
			c.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoExecute}}
			c.Status.Taints = []api.ClusterTaint{{Key: "k", Effect: api.EffectNoExecute, TimeAdded: &epoch}}
			w.write(p, c)
		},
		"the cluster is deleted": func(w *world, p *planner) { w.remove(p, key(api.KindCluster, "", "c1")) },
		"another spec": func(w *world, p *planner) {
			w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) { s.LabelConstraints = []string{"zone is b"} }))
		},
		"a new object": func(w *world, p *planner) {
			w.remove(p, key(api.KindPlacement, "shop", "web"))
			w.write(p, newPlacement("web", 1))
		},
	} {
		t.Run(name, func(t *testing.T) {
			w, p := betterElsewhere(t, freeze("", nil))
			p.pass(epoch)
			wantClusters(t, p, "frozen", "c1")
			change(w, p)
			p.pass(epoch)
			wantClusters(t, p, name, "c2")
			if got := heldAs(p); got != "" {
				t.Errorf("held as %q", got)
			}
		})
	}
}

// TestOnlyTheSeatsConcernedMove checks that the loss of one cluster moves its seat, and the others
// stay as long as moves are held.
func TestOnlyTheSeatsConcernedMove(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, freeze("", nil))
	for i, v := range []float64{0.9, 0.8, 0.3, 0.2} {
		w.write(p, metric(fmt.Sprint("m", i), v))
		w.write(p, cluster(fmt.Sprint("c", i), nil, api.MetricRef{Name: fmt.Sprint("m", i), Weight: ptr(1.0)}))
	}
	w.write(p, newPlacement("web", 2))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c0", "c1")
	w.write(p, metric("m2", 1))
	w.write(p, metric("m3", 0.95))
	p.pass(epoch)
	wantClusters(t, p, "frozen", "c0", "c1")
	w.remove(p, key(api.KindCluster, "", "c0"))
	p.pass(epoch)
	wantClusters(t, p, "after the loss of c0", "c2", "c1")
	if got, want := heldAs(p), "HeldByFreeze: kept: freeze (incident), else c2, c3"; got != want {
		t.Errorf("held as %q, want %q", got, want)
	}
}

// TestFurtherClustersAreHeld checks that a placement that wants all clusters gets no further ones
// while everything is frozen, and that one that lacks a cluster gets it.
func TestFurtherClustersAreHeld(t *testing.T) {
	for wanted, want := range map[int64][]string{-1: {"c1"}, 2: {"c1", "c2"}} {
		w, p := newWorld(), newPlanner(discard())
		for _, object := range []api.Object{cluster("c1", nil), freeze("", nil), newPlacement("web", wanted)} {
			w.write(p, object)
		}
		p.pass(epoch)
		w.write(p, cluster("c2", nil))
		p.pass(epoch)
		wantClusters(t, p, fmt.Sprintf("with %d wanted", wanted), want...)
		checkSettled(t, p, epoch)
		w.remove(p, key(api.KindFreeze, "", api.FreezeName))
		p.pass(epoch)
		wantClusters(t, p, "in the end", "c1", "c2")
	}
}

// TestKeptDecisionsGetNoFurtherClusters checks that a freeze holds further clusters of a placement
// that keeps those it has, although others would serve its spread constraints better: because it
// is young, or must not migrate.
func TestKeptDecisionsGetNoFurtherClusters(t *testing.T) {
	for name, kept := range map[string]func(*api.PlacementSpec){
		"young":     func(s *api.PlacementSpec) { s.RescheduleAfter = "1h" },
		"migration": func(s *api.PlacementSpec) { s.Migration = ptr(false) },
	} {
		t.Run(name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			in := func(region, name string, value float64) {
				w.write(p, metric("m"+name, value))
				c := cluster(name, nil, api.MetricRef{Name: "m" + name})
				c.Spec.Region = region
				w.write(p, c)
			}
			w.write(p, provider())
			w.write(p, freeze("", nil))
			in("us", "c1", 0.5)
			in("eu", "c2", 0.1)
			w.write(p, newPlacement("web", -1, kept, func(s *api.PlacementSpec) {
				s.SpreadConstraints = []api.SpreadConstraint{{
					TopologyKey: "region", Type: api.SpreadField, MaxSkew: ptr(int64(1)), WhenUnsatisfiable: api.DoNotSchedule,
				}}
			}))
			p.pass(epoch)
			wantClusters(t, p, "at first", "c1", "c2")
			in("eu", "c3", 0.9) // only two in this region are possible
			in("eu", "c4", 0.9)
			p.pass(epoch.Add(time.Minute))
			wantClusters(t, p, "frozen", "c1", "c2")
			if got := heldAs(p); !strings.HasPrefix(got, "HeldByFreeze: kept: freeze (incident), else ") {
				t.Errorf("held as %q", got)
			}
			checkSettled(t, p, epoch.Add(time.Minute))
			w.remove(p, key(api.KindFreeze, "", api.FreezeName))
			p.pass(epoch.Add(2 * time.Minute))
			if got := webOf(p).status.Clusters; len(got) != 3 || !contains(got, "c2") {
				t.Errorf("after the freeze it is on %v, want a further cluster besides c1 and c2", got)
			}
		})
	}
}

// TestPartlyHeldDecisionIsLookedAtAgain checks that a placement that gets a vacant seat while another
// one is held says what keeps it from where it is then: it is young.
func TestPartlyHeldDecisionIsLookedAtAgain(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, freeze("", nil))
	for i, v := range []float64{0.2, 0.9, 0.8} {
		w.write(p, metric(fmt.Sprint("m", i), v))
		w.write(p, cluster(fmt.Sprint("c", i), nil, api.MetricRef{Name: fmt.Sprint("m", i)}))
	}
	w.remove(p, key(api.KindCluster, "", "c1"))
	w.remove(p, key(api.KindCluster, "", "c2"))
	w.write(p, newPlacement("web", 2, func(s *api.PlacementSpec) { s.RescheduleAfter = "60s" }))
	p.pass(epoch)
	wantClusters(t, p, "at first", "c0")
	for i := 1; i <= 2; i++ {
		w.write(p, cluster(fmt.Sprint("c", i), nil, api.MetricRef{Name: fmt.Sprint("m", i)}))
	}
	later := epoch.Add(2 * time.Minute)
	p.pass(later)
	wantClusters(t, p, "with a seat that was vacant", "c1", "c0")
	if got := heldAs(p); got != "" {
		t.Errorf("held as %q, want that it is only young", got)
	}
	checkSettled(t, p, later)
	p.pass(later.Add(time.Minute))
	if got := heldAs(p); !strings.HasPrefix(got, "HeldByFreeze") {
		t.Errorf("held as %q when it is old enough, want by the freeze", got)
	}
}

// TestBudgetIsUsed checks that moves use a budget up, over a restart too, and that it is available
// again after its time.
func TestBudgetIsUsed(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, budget("", "2", "10m"))
	w.write(p, metric("m1", 0.9))
	w.write(p, metric("m2", 0.5))
	w.write(p, cluster("c1", nil, api.MetricRef{Name: "m1", Weight: ptr(1.0)}))
	w.write(p, cluster("c2", nil, api.MetricRef{Name: "m2", Weight: ptr(1.0)}))
	for i := range 5 {
		w.write(p, newPlacement(fmt.Sprint("p", i), 1))
	}
	moved := func() (n int) {
		for _, placed := range p.placer.placements {
			if slices.Equal(placed.status.Clusters, []string{"c2"}) {
				n++
			}
		}
		return n
	}
	at := func(now time.Time, want int) {
		t.Helper()
		p.pass(now)
		if got := moved(); got != want {
			t.Errorf("after %v, %d have moved, want %d", now.Sub(epoch), got, want)
		}
		checkSettled(t, p, now)
	}
	at(epoch, 0)
	w.write(p, metric("m1", 0.2))
	w.write(p, metric("m2", 1))
	at(epoch.Add(time.Minute), 2)
	at(epoch.Add(2*time.Minute), 2)
	// Another server takes over.
	again := newPlanner(discard())
	for k, object := range w.afterPass(p) {
		again.put(object, w.specs[k])
	}
	p = again
	at(epoch.Add(3*time.Minute), 2)
	if got, want := p.nextAt(), epoch.Add(11*time.Minute); !got.Equal(want) {
		t.Errorf("looked at again at %v, want %v", got, want)
	}
	at(epoch.Add(11*time.Minute), 4)
	at(epoch.Add(21*time.Minute), 5)
	for _, placed := range p.placer.placements {
		if n := len(placed.status.Moves); n != 1 {
			t.Errorf("%s has %d moves recorded, want 1", placed.key(), n)
		}
	}
}
