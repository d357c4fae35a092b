package terraform

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

const (
	// quietTime is how long there must be no reads for a refresh to count as finished. Terraform
	// does not report when it is.
	quietTime = 200 * time.Millisecond
	// longestGathering limits how long one read waits for the others, because everything that
	// depends on its resource waits too.
	longestGathering = 10 * time.Second
	// maxNamed is the number of objects that a warning names.
	maxNamed = 100
)

// unsatisfied collects the unsatisfied objects of a refresh for a single warning. Terraform reads
// each resource separately, deduplicates equal warnings, and does not say which read is the last.
// Therefore the read that finds the first unsatisfied object waits until there are no more reads,
// and reports for all; the others return at once.
type unsatisfied struct {
	mu      sync.Mutex
	reading int // running reads, except the one that gathers
	// begun counts the reads.
	begun int
	// gathering says that a read is waiting to report.
	gathering bool
	// alone says that an earlier wait was in vain, because reads are sequential.
	alone bool
	found map[api.Key]string
	// changed notifies the gathering read that a read has begun or ended.
	changed chan struct{}
}

func newUnsatisfied() *unsatisfied {
	return &unsatisfied{found: map[api.Key]string{}, changed: make(chan struct{}, 1)}
}

// begin records the start of a read; end records its end.
func (u *unsatisfied) begin() (end func()) {
	u.count(1)
	return sync.OnceFunc(func() { u.count(-1) })
}

func (u *unsatisfied) count(n int) {
	u.mu.Lock()
	if n > 0 && (u.reading > 0 || u.gathering) {
		u.alone = false
	}
	u.reading += n
	u.begun += max(n, 0)
	u.mu.Unlock()
	select {
	case u.changed <- struct{}{}:
	default: // already notified
	}
}

// add records why an object is unsatisfied, "" if it is not, and returns what this read must
// report: nothing, or everything that was found.
func (u *unsatisfied) add(ctx context.Context, key api.Key, text string) map[api.Key]string {
	if text == "" {
		return nil
	}
	u.mu.Lock()
	u.found[key] = text
	if u.gathering {
		u.mu.Unlock()
		return nil
	}
	u.gathering = true
	wait, before := !u.alone, u.begun
	u.mu.Unlock()
	if wait {
		u.untilQuiet(ctx)
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	found := u.found
	u.found, u.gathering = map[api.Key]string{}, false
	u.alone = u.begun == before && len(found) == 1
	return found
}

// untilQuiet waits until there have been no reads for a while.
func (u *unsatisfied) untilQuiet(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, longestGathering)
	defer cancel()
	quiet := time.NewTimer(quietTime)
	defer quiet.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-u.changed:
			quiet.Reset(quietTime)
		case <-quiet.C:
			u.mu.Lock()
			reading := u.reading
			u.mu.Unlock()
			if reading == 0 {
				return
			}
			quiet.Reset(quietTime)
		}
	}
}

// warnUnsatisfied adds the warning for everything that was found.
func warnUnsatisfied(found map[api.Key]string, diags *diag.Diagnostics) {
	if len(found) == 0 {
		return
	}
	keys := slices.SortedFunc(maps.Keys(found), func(a, b api.Key) int { return strings.Compare(a.String(), b.String()) })
	var text strings.Builder
	for _, key := range keys[:min(len(keys), maxNamed)] {
		fmt.Fprintf(&text, "%s: %s\n", key, found[key])
	}
	if more := len(keys) - maxNamed; more > 0 {
		fmt.Fprintf(&text, "And %d more.\n", more)
	}
	text.WriteString("The provider's warn_unsatisfied = false (SCHEDULER_WARN_UNSATISFIED) turns this warning off.")
	diags.AddWarning("Some decisions are not satisfied", text.String())
}

// missing says what is missing of what an object requests, or returns "".
func (r *Resource) missing(object api.Object) string {
	if r.Unsatisfied != nil {
		return r.Unsatisfied(object)
	}
	state, ok := r.Choice.state(object)
	if !ok {
		return ""
	}
	for _, conditionType := range []string{state.Found, api.ConditionSatisfied} {
		if c := state.is(conditionType, api.ConditionFalse); c != nil {
			return Sentence(c.Message)
		}
	}
	if state.Observed < object.Meta().Generation {
		return "The server has not decided yet."
	}
	return ""
}

// reached reports whether an object has what an apply with these attributes waits for.
func (r *Resource) reached(object api.Object, attributes tftypes.Value) bool {
	state, ok := r.Choice.state(object)
	return !ok || unawaited(attributes) ||
		state.Observed >= object.Meta().Generation && state.is(state.Found, api.ConditionFalse) == nil && !r.Choice.unfinished(attributes, object)
}
