package reconcile

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A large batch is sorted once, and the order is kept until something changes that it depends on. Taking decisions
// repeatedly follows the order.
func TestLargeBatchesKeepTheirTurns(t *testing.T) {
	p := newPlanner(slog.New(slog.DiscardHandler))
	k := decidedAs(api.KindWorkload)
	put := func(n int, priority int64, revision int64) {
		w := workload(fmt.Sprintf("w%04d", n), 1, func(w *api.Workload) { w.Spec.Priority = priority })
		p.put(w, revision)
	}
	const all = largeBatch + 500
	for n := range all {
		put(n*7919%all, int64(n%5), 1)
	}
	take := func(what string) {
		t.Helper()
		batch := slices.DeleteFunc(slices.Collect(p.queue.round(k)), func(d decision) bool { return d.queued().gone })
		if len(batch) != all {
			t.Fatalf("%s: batch of %d, want %d", what, len(batch), all)
		}
		if !slices.IsSortedFunc(batch, func(a, b decision) int { return turnOfWorkload(as[*workloadBinding](a), as[*workloadBinding](b)) }) {
			t.Errorf("%s: the batch is not in the order of turns", what)
		}
		for _, w := range p.bindings.workloads { // in random order
			p.queue.mark(w)
		}
	}
	take("first")
	take("again")
	if p.queue.sorted != 1 {
		t.Errorf("%d batches were sorted by turn, want 1", p.queue.sorted)
	}
	put(17, 9, 2)
	take("changed priority")
	p.remove(api.KeyOf(workload("w0018", 1)))
	put(18, 9, 3)
	take("new workload")
	take("as before")
	if p.queue.sorted != 3 {
		t.Errorf("%d batches were sorted by turn, want 3", p.queue.sorted)
	}
}

// What becomes stale in a round is decided in it if its turn is still to come, and in the next one otherwise.
func TestStaleInARound(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for _, name := range []string{"a", "b", "c", "d", "e", "f"} {
		w.write(p, newPlacement(name, 1))
	}
	p.pass(epoch)
	of := func(name string) decision {
		return p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name}]
	}
	k := decidedAs(api.KindPlacement)
	round := func(marks map[string][]string) (made string) {
		for d := range p.queue.round(k) {
			made += d.key().Name
			for _, name := range marks[d.key().Name] {
				p.queue.mark(of(name))
			}
		}
		return made
	}
	p.queue.mark(of("e"))
	p.queue.mark(of("b"))
	if got := round(map[string][]string{"b": {"f", "d", "a", "e", "b"}, "d": {"c", "e"}, "e": {"f"}}); got != "bdef" {
		t.Errorf("first round %q, want bdef", got)
	}
	if got := round(nil); got != "abc" {
		t.Errorf("second round %q, want abc", got)
	}
	if p.queue.has(k) {
		t.Error("more is stale")
	}
}
