// Package exemplar links histograms to traces.
package exemplar

import (
	"context"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.opentelemetry.io/otel/trace"
)

// Observe adds a duration to a histogram. If the trace of the context is recorded, it is the exemplar of the bucket: a
// dashboard leads from the slow requests to one of them.
func Observe(ctx context.Context, histogram prometheus.Observer, took time.Duration) {
	span := trace.SpanFromContext(ctx)
	if h, ok := histogram.(prometheus.ExemplarObserver); ok && span.IsRecording() {
		h.ObserveWithExemplar(took.Seconds(), prometheus.Labels{"trace_id": span.SpanContext().TraceID().String()})
		return
	}
	histogram.Observe(took.Seconds())
}
