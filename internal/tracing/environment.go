package tracing

import (
	"context"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
)

// FromEnvironment returns a context that continues the trace of the program that has started this one, which it names
// in the variables TRACEPARENT and TRACESTATE.
func FromEnvironment(ctx context.Context, getenv func(string) string) context.Context {
	return propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{
		"traceparent": getenv("TRACEPARENT"), "tracestate": getenv("TRACESTATE"),
	})
}

// Continues reports whether a context is part of a trace, recorded here or not.
func Continues(ctx context.Context) bool { return trace.SpanContextFromContext(ctx).IsValid() }

// Continue returns a function that makes other contexts continue the trace of ctx.
func Continue(ctx context.Context) func(context.Context) context.Context {
	span := trace.SpanFromContext(ctx)
	return func(other context.Context) context.Context { return trace.ContextWithSpan(other, span) }
}
