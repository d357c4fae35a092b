package tracing

import (
	"context"
	"sync"

	"go.opentelemetry.io/otel/trace"
)

// maxCauses is how many writes are remembered: more than there are in a pass of the reconciler, unless
// nearly every write is recorded.
const maxCauses = 1024

// maxLinks is how many causes a span names. The SDK keeps no more by default.
const maxLinks = 128

// causes remembers which spans have made which revisions of the store, so that what follows from a revision
// can name its cause.
type causes struct {
	mu   sync.Mutex // nothing is locked under it
	ring [maxCauses]cause
	next int
}

type cause struct {
	span     trace.SpanContext
	revision int64
}

// Caused notes that the span of the context made a revision, or waits for what follows from it. Nothing is
// noted of a span that is not recorded.
func (t *Tracer) Caused(ctx context.Context, revision int64) {
	if t == nil || revision == 0 {
		return
	}
	span := trace.SpanFromContext(ctx)
	if !span.IsRecording() {
		return
	}
	c := &t.causes
	c.mu.Lock()
	defer c.mu.Unlock()
	c.ring[c.next] = cause{span.SpanContext(), revision}
	c.next = (c.next + 1) % maxCauses
}

// Causes returns links to the spans that made the revisions after one, up to another: the last ones, if there are very
// many.
func (t *Tracer) Causes(after, upTo int64) []trace.Link {
	if t == nil {
		return nil
	}
	c := &t.causes
	c.mu.Lock()
	defer c.mu.Unlock()
	var links []trace.Link
	seen := map[trace.SpanID]bool{}
	for i := range c.ring {
		noted := c.ring[(c.next+maxCauses-1-i)%maxCauses]
		if noted.revision > after && noted.revision <= upTo && !seen[noted.span.SpanID()] && len(links) < maxLinks {
			seen[noted.span.SpanID()] = true
			links = append(links, trace.Link{SpanContext: noted.span})
		}
	}
	return links
}

// IsCause reports whether the span of the context made one of the revisions up to one, or waits for it.
func (t *Tracer) IsCause(ctx context.Context, upTo int64) bool {
	if t == nil {
		return false
	}
	id := trace.SpanContextFromContext(ctx).SpanID()
	c := &t.causes
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, noted := range c.ring {
		if noted.revision > 0 && noted.revision <= upTo && noted.span.SpanID() == id {
			return true
		}
	}
	return false
}
