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
	// quietTime is how long nothing must have been read for a refresh to count as
	// over. Terraform does not say when it is.
	quietTime = 200 * time.Millisecond
	// longestGathering bounds how long one read is held back for the others. What
	// depends on its resource waits with it.
	longestGathering = 10 * time.Second
	// maxNamed is how many objects a warning names.
	maxNamed = 100
)

// unsatisfied gathers what a refresh finds unsatisfied, so that it is one warning.
// Terraform reads each resource by itself, shows of several equal warnings the first
// alone, and does not say which read is the last. The read that finds the first one
// therefore waits until nothing is read any more, and reports for all; the others
// go on at once.
type unsatisfied struct {
	mu      sync.Mutex
	reading int // reads that are under way, apart from the one that gathers
	// begun counts the reads.
	begun int
	// gathering says that a read waits to report what is found.
	gathering bool
	// alone says that a wait was in vain: reads come one after the other here.
	alone bool
	found map[api.Key]string
	// changed tells the one who gathers that a read has begun or ended.
	changed chan struct{}
}

func newUnsatisfied() *unsatisfied {
	return &unsatisfied{found: map[api.Key]string{}, changed: make(chan struct{}, 1)}
}

// begin says that a read is under way; the function it returns that it is over.
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
	default: // it knows
	}
}

// add takes what is not satisfied of an object, "" = nothing, and returns what is
// to be reported with this read: nothing, or all that was found.
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

// untilQuiet waits until nothing has been read for a while.
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

// warnUnsatisfied is the one warning of what a refresh found.
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
	diags.AddWarning("Not every decision has what it was asked for", text.String())
}

// missing says what is missing of what an object asks for; "" = nothing.
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

// reached reports that an object has what an apply with these attributes waits for.
func (r *Resource) reached(object api.Object, attributes tftypes.Value) bool {
	state, ok := r.Choice.state(object)
	return !ok || unawaited(attributes) ||
		state.Observed >= object.Meta().Generation && state.is(state.Found, api.ConditionFalse) == nil && !r.Choice.unfinished(attributes, object)
}
