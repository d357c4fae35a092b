package terraform

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

const (
	// longestVacating is how long a create waits for the deletion of an object of the same name by
	// the same run. Terraform orders the two only if one depends on the other, and it may not begin
	// the deletion before the create has ended.
	longestVacating = 5 * time.Second
	// firstVacating is how long it waits if nothing of the kind has been deleted in this run.
	firstVacating = time.Second
)

// deletions are the deletions of a run, which may make room for objects of the same name: if the
// elements of a list move, the instances of a count exchange their names.
type deletions struct {
	mu      sync.Mutex
	kinds   map[api.Kind]bool // of which a deletion has begun
	running map[api.Key]bool
	ended   map[api.Key]int
	inVain  bool          // a create waited until its time was over
	changed chan struct{} // closed when a deletion begins or ends; nil = nobody waits
}

// begin records the start of a deletion; end records its end.
func (d *deletions) begin(key api.Key) (end func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.running == nil {
		d.kinds, d.running, d.ended = map[api.Kind]bool{}, map[api.Key]bool{}, map[api.Key]int{}
	}
	d.kinds[key.Kind], d.running[key] = true, true
	d.announce()
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.running, key)
		d.ended[key]++
		d.announce()
	}
}

func (d *deletions) announce() {
	if d.changed != nil {
		close(d.changed)
		d.changed = nil
	}
}

// of returns how often an object was deleted in this run.
func (d *deletions) of(key api.Key) int {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.ended[key]
}

// vacated waits for a limited time until an object has been deleted once more than before, and
// reports whether it was. A deletion that has not begun is waited for until a wait was in vain.
func (d *deletions) vacated(ctx context.Context, key api.Key, before int) bool {
	began := time.Now()
	for {
		d.mu.Lock()
		if d.ended[key] > before {
			d.mu.Unlock()
			return true
		}
		limit := firstVacating
		if d.kinds[key.Kind] {
			limit = longestVacating
		}
		if d.inVain && !d.running[key] {
			limit = 0
		}
		if d.changed == nil {
			d.changed = make(chan struct{})
		}
		changed := d.changed
		left := limit - time.Since(began)
		d.inVain = d.inVain || left <= 0
		d.mu.Unlock()
		if left <= 0 {
			return false
		}
		timer := time.NewTimer(left)
		select {
		case <-ctx.Done():
			timer.Stop()
			return false
		case <-changed:
			timer.Stop()
		case <-timer.C:
		}
	}
}
