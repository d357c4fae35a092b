package reconcile

import (
	"fmt"
	"log/slog"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A large batch is sorted once, and kept in mind while nothing changes that turns
// depend on; the order is that of the turns however often it is taken.
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
		batch := slices.DeleteFunc(p.queue.take(k), func(d decision) bool { return d.queued().gone })
		if len(batch) != all {
			t.Fatalf("%s: %d of %d are stale", what, len(batch), all)
		}
		if !slices.IsSortedFunc(batch, func(a, b decision) int { return turnOfWorkload(as[*workloadBinding](a), as[*workloadBinding](b)) }) {
			t.Errorf("%s: the turns are in another order", what)
		}
		for _, d := range batch {
			d.queued().stale = false
		}
		for _, w := range p.bindings.workloads { // in no order
			p.queue.mark(w)
		}
	}
	take("first")
	take("again")
	if p.queue.sorted != 1 {
		t.Errorf("%d batches were sorted by what turns depend on, and not 1", p.queue.sorted)
	}
	put(17, 9, 2)
	take("one with another priority")
	p.remove(api.KeyOf(workload("w0018", 1)))
	put(18, 9, 3)
	take("one that is new")
	take("as before")
	if p.queue.sorted != 3 {
		t.Errorf("%d batches were sorted by what turns depend on, and not 3", p.queue.sorted)
	}
}
