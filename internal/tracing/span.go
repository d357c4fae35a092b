package tracing

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// scope names the code that makes the spans.
const scope = "github.com/scheduler/terraform-provider-scheduler"

// Attributes of this program, in addition to those that OpenTelemetry defines.
const (
	KindKey      attribute.Key = "scheduler.object.kind"
	NamespaceKey attribute.Key = "scheduler.object.namespace"
	NameKey      attribute.Key = "scheduler.object.name"
	// RevisionKey is the revision of the store that a write made, or that a decision follows from.
	RevisionKey attribute.Key = "scheduler.revision"
	// DecisionsKey is how many decisions were made or written, and MovedKey how many of them chose
	// other clusters or numbers of replicas.
	DecisionsKey attribute.Key = "scheduler.decisions"
	MovedKey     attribute.Key = "scheduler.decisions.moved"
	// ObjectsKey is how many objects a span is about.
	ObjectsKey attribute.Key = "scheduler.objects"
	// RequestKey is the ID of a request, which is also in the log and in the response.
	RequestKey attribute.Key = "scheduler.request_id"
)

// Tracer begins traces. The nil Tracer begins none.
type Tracer struct {
	tracer trace.Tracer
	causes causes
}

// New returns a Tracer whose spans go to a provider.
func New(provider trace.TracerProvider) *Tracer { return &Tracer{tracer: provider.Tracer(scope)} }

// Span is a part of a trace that is recorded. The zero Span is not recorded; its methods do nothing.
type Span struct{ span trace.Span }

// recorded returns a span, or the zero Span if it was not selected to be recorded.
func recorded(ctx context.Context, span trace.Span) (context.Context, Span) {
	if !span.IsRecording() {
		return ctx, Span{}
	}
	return ctx, Span{span}
}

// Begin begins a trace, or continues the one of the context. With causes, which are spans of other traces, it
// is recorded if one of them is.
func (t *Tracer) Begin(ctx context.Context, name string, began time.Time, causes ...trace.Link) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	return recorded(t.tracer.Start(ctx, name, trace.WithTimestamp(began), trace.WithLinks(causes...)))
}

// Serve begins the span of a request that a server has received, as part of the trace that its headers name.
func (t *Tracer) Serve(ctx context.Context, headers http.Header, began time.Time) (context.Context, Span) {
	if t == nil {
		return ctx, Span{}
	}
	// The header tracestate is not taken over: it may hold anything, and would be exported.
	ctx = propagation.TraceContext{}.Extract(ctx, propagation.MapCarrier{"traceparent": headers.Get("Traceparent")})
	return recorded(t.tracer.Start(ctx, "request", trace.WithTimestamp(began), trace.WithSpanKind(trace.SpanKindServer)))
}

// Start begins a part of the trace of the context. If that trace is not recorded, it returns the context and the zero
// Span.
func Start(ctx context.Context, name string) (context.Context, Span) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return ctx, Span{}
	}
	return recorded(parent.TracerProvider().Tracer(scope).Start(ctx, name))
}

// Add adds a part of the trace of the context that has ended.
func Add(ctx context.Context, name string, began, ended time.Time, attributes ...attribute.KeyValue) {
	parent := trace.SpanFromContext(ctx)
	if !parent.IsRecording() {
		return
	}
	_, span := parent.TracerProvider().Tracer(scope).Start(ctx, name, trace.WithTimestamp(began), trace.WithAttributes(attributes...))
	span.End(trace.WithTimestamp(ended))
}

// Recording reports whether the span is recorded.
func (s Span) Recording() bool { return s.span != nil }

// In returns a context whose trace continues below the span.
func (s Span) In(ctx context.Context) context.Context {
	if s.span == nil {
		return ctx
	}
	return trace.ContextWithSpan(ctx, s.span)
}

// TraceID returns the ID of the trace, or "" if it is not recorded.
func (s Span) TraceID() string {
	if s.span == nil {
		return ""
	}
	return s.span.SpanContext().TraceID().String()
}

// Text sets an attribute. The text must not come from a request, except for names of objects that were
// validated.
func (s Span) Text(key attribute.Key, text string) {
	if s.span != nil && text != "" {
		s.span.SetAttributes(key.String(text))
	}
}

// Number sets an attribute.
func (s Span) Number(key attribute.Key, n int64) {
	if s.span != nil {
		s.span.SetAttributes(key.Int64(n))
	}
}

// Object sets the attributes of an object.
func (s Span) Object(kind, namespace, name string) {
	s.Text(KindKey, kind)
	s.Text(NamespaceKey, namespace)
	s.Text(NameKey, name)
}

// End ends the span. Of an error, only the type is recorded.
func (s Span) End(err error) { s.EndAt(time.Time{}, err) }

// EndAt is End for a span that has ended before; the zero time means now.
func (s Span) EndAt(at time.Time, err error) {
	if s.span == nil {
		return
	}
	if err != nil {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(semconv.ErrorTypeKey.String(errorType(err)))
	}
	if at.IsZero() {
		s.span.End()
		return
	}
	s.span.End(trace.WithTimestamp(at))
}

// EndAs is End for a span whose name was not known when it began.
func (s Span) EndAs(name string, err error) {
	if s.span != nil {
		s.span.SetName(name)
		s.End(err)
	}
}

// Answered ends the span of a request that was served.
func (s Span) Answered(method, route, client, request string, status int) {
	if s.span == nil {
		return
	}
	s.span.SetName(method + " " + route)
	s.span.SetAttributes(
		semconv.HTTPRequestMethodKey.String(method), semconv.HTTPRoute(route), semconv.HTTPResponseStatusCode(status),
		semconv.ClientAddress(client), RequestKey.String(request),
	)
	if status >= http.StatusInternalServerError {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(semconv.ErrorTypeKey.String(fmt.Sprint(status)))
	}
	s.span.End()
}

// errorType returns a word for an error. Its text may contain anything.
func errorType(err error) string {
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return "timeout"
	case errors.Is(err, context.Canceled):
		return "canceled"
	}
	for next := errors.Unwrap(err); next != nil; next = errors.Unwrap(err) {
		err = next
	}
	return fmt.Sprintf("%T", err)
}
