package reconcile

import (
	"context"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// A pass serves many requests, and other changes such as metrics. So it has a trace of its own, with links to
// the requests and readings that caused it, and each request that waits for its decision shows when that was made and
// written.
//
// The spans of a pass are made some time after it has ended. Before, nobody knows whether it decided anything; and
// who wrote what it decided on may learn the revision later than the pass.

// causesWithin is how long after a pass its causes are known.
const causesWithin = 100 * time.Millisecond

// maxPasses is how many passes are kept for requests that ask for theirs a little late.
const maxPasses = 64

// pass is when a pass did what.
type pass struct {
	revision         int64 // the last one that it decided on
	began, planned   time.Time
	writing, written time.Time // zero = there was nothing to write
	decisions, moved int64     // that were written
}

// passTraces makes the traces of passes.
type passTraces struct {
	tracer *tracing.Tracer // nil = there are no traces

	current  pass  // of the loop alone
	revision int64 // of the loop alone: that of the last pass

	mu     sync.Mutex      // nothing is locked under it
	recent [maxPasses]pass // guarded by mu
	next   int             // guarded by mu
}

// planned notes that the planner has made a pass.
func (t *passTraces) planned(began time.Time) {
	if t.tracer == nil {
		return
	}
	if t.current.began.IsZero() { // it may be called again before everything is written
		t.current.began = began
	}
	t.current.planned = time.Now()
}

// wrote notes that decisions were written.
func (t *passTraces) wrote(began time.Time, batch []write) {
	if t.tracer == nil {
		return
	}
	if t.current.writing.IsZero() {
		t.current.writing = began
	}
	t.current.written = time.Now()
	t.current.decisions += int64(len(batch))
	for _, w := range batch {
		if w.moved {
			t.current.moved++
		}
	}
}

// ended notes that everything that follows from a revision is durable. A server that does not lead decides
// nothing.
func (t *passTraces) ended(ctx context.Context, revision int64, leads bool) {
	if t.tracer == nil {
		return
	}
	p, after := t.current, t.revision
	t.current, t.revision = pass{}, revision
	if !leads || p.began.IsZero() {
		return
	}
	p.revision = revision
	ctx = context.WithoutCancel(ctx)
	time.AfterFunc(causesWithin, func() { t.record(ctx, p, after) })
	t.mu.Lock()
	defer t.mu.Unlock()
	t.recent[t.next] = p
	t.next = (t.next + 1) % maxPasses
}

// record makes the trace of a pass on the revisions after one, unless nothing came of it that anybody asked for.
func (t *passTraces) record(ctx context.Context, p pass, after int64) {
	causes := t.tracer.Causes(after, p.revision)
	if p.decisions == 0 && len(causes) == 0 {
		return
	}
	ctx, span := t.tracer.Begin(ctx, "pass", p.began, causes...)
	span.Number(tracing.RevisionKey, p.revision)
	p.show(ctx, span)
	span.EndAt(p.end(), nil)
}

// of returns the pass that decided on a revision, if it is known.
func (t *passTraces) of(revision int64) (pass, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for i := range t.recent {
		if p := t.recent[(t.next+i)%maxPasses]; p.revision >= revision { // oldest first
			return p, true
		}
	}
	return pass{}, false
}

// show makes the pass that decided on a revision a part of the span of a request that has waited for it. asked is the
// context of the request.
func (t *passTraces) show(asked, within context.Context, span tracing.Span, revision int64) {
	if !span.Recording() || !t.tracer.IsCause(asked, revision) {
		return
	}
	span.Number(tracing.RevisionKey, revision)
	if p, ok := t.of(revision); ok {
		p.show(within, span)
	}
}

// show adds what a pass did to a span.
func (p *pass) show(ctx context.Context, span tracing.Span) {
	span.Number(tracing.DecisionsKey, p.decisions)
	span.Number(tracing.MovedKey, p.moved)
	tracing.Add(ctx, "plan", p.began, p.planned)
	if !p.writing.IsZero() {
		tracing.Add(ctx, "store derive", p.writing, p.written)
	}
}

// end returns when the pass ended.
func (p *pass) end() time.Time {
	if p.written.After(p.planned) {
		return p.written
	}
	return p.planned
}
