package tracing

import (
	"context"
	"net/http"
	"strconv"

	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"go.opentelemetry.io/otel/trace"
)

// Client makes a span of each request that belongs to a trace that is recorded. With a tracer, the other
// requests begin traces. The other side learns nothing of the trace: it may be anybody's.
func Client(base http.RoundTripper, tracer *Tracer) http.RoundTripper {
	return &client{base: base, tracer: tracer}
}

// Peer is Client for requests to servers of this program: they continue the trace.
func Peer(base http.RoundTripper) http.RoundTripper { return &client{base: base, tell: true} }

type client struct {
	base   http.RoundTripper
	tracer *Tracer
	tell   bool
}

// RoundTrip implements http.RoundTripper.
func (c *client) RoundTrip(req *http.Request) (*http.Response, error) {
	ctx, span := c.start(req)
	if c.tell && trace.SpanContextFromContext(ctx).IsValid() {
		req = req.Clone(ctx)
		propagation.TraceContext{}.Inject(ctx, propagation.HeaderCarrier(req.Header))
	} else if span.Recording() {
		req = req.WithContext(ctx)
	}
	resp, err := c.base.RoundTrip(req)
	if resp != nil && span.Recording() {
		span.span.SetAttributes(semconv.HTTPResponseStatusCode(resp.StatusCode))
		if resp.StatusCode >= http.StatusBadRequest {
			span.span.SetStatus(codes.Error, "")
			span.span.SetAttributes(semconv.ErrorTypeKey.String(strconv.Itoa(resp.StatusCode)))
		}
	}
	span.End(err)
	return resp, err
}

// start begins the span of a request. It ends when the response begins. Its attributes say which server was
// asked, but not for what: addresses may contain secrets.
func (c *client) start(req *http.Request) (context.Context, Span) {
	ctx := req.Context()
	parent := trace.SpanFromContext(ctx)
	var tracer trace.Tracer
	switch {
	case parent.IsRecording():
		tracer = parent.TracerProvider().Tracer(scope)
	case c.tracer != nil && !parent.SpanContext().IsValid():
		tracer = c.tracer.tracer
	default:
		return ctx, Span{}
	}
	ctx, span := recorded(tracer.Start(ctx, req.Method, trace.WithSpanKind(trace.SpanKindClient)))
	if span.Recording() {
		span.span.SetAttributes(semconv.HTTPRequestMethodKey.String(req.Method), semconv.ServerAddress(req.URL.Hostname()), semconv.URLScheme(req.URL.Scheme))
		if port, err := strconv.Atoi(req.URL.Port()); err == nil {
			span.span.SetAttributes(semconv.ServerPort(port))
		}
	}
	return ctx, span
}

// CloseIdleConnections makes http.Client.CloseIdleConnections work.
func (c *client) CloseIdleConnections() {
	if closer, ok := c.base.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}
