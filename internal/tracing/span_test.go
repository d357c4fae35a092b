package tracing

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"testing"
	"time"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
)

// record returns a tracer, and what it has recorded.
func record(t *testing.T, options ...sdk.TracerProviderOption) (*Tracer, func() []sdk.ReadOnlySpan) {
	t.Helper()
	recorder := tracetest.NewSpanRecorder()
	provider := sdk.NewTracerProvider(append(options, sdk.WithSpanProcessor(recorder))...)
	return New(provider), recorder.Ended
}

// Without a trace, nothing is allocated: that is what every request and every write pays.
func TestWithoutATraceNothingIsAllocated(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, 1)
	var none *Tracer
	began := time.Now()
	if n := testing.AllocsPerRun(100, func() {
		within, span := Start(ctx, "part")
		span.Text(NameKey, "a")
		span.Number(ObjectsKey, 1)
		span.Object("placement", "shop", "web")
		_ = span.In(within)
		span.End(nil)
		within, span = none.Begin(ctx, "all", began)
		none.Caused(within, 5)
		span.Answered("GET", "/", "a", "b", 200)
		if none.Causes(0, 5) != nil || none.IsCause(within, 5) || span.TraceID() != "" {
			t.Error("something was recorded")
		}
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func TestSpans(t *testing.T) {
	tracer, ended := record(t)
	ctx, all := tracer.Begin(t.Context(), "all", time.Now())
	within, part := Start(ctx, "part")
	part.Object("placement", "", "web")
	Add(within, "before", time.Unix(1, 0), time.Unix(2, 0))
	part.End(fmt.Errorf("read the secret s3cr3t: %w", os.ErrNotExist))
	all.End(nil)
	spans := ended()
	if len(spans) != 3 || spans[0].Name() != "before" || spans[1].Name() != "part" || spans[2].Name() != "all" {
		t.Fatalf("got %v", spans)
	}
	if spans[0].Parent().SpanID() != spans[1].SpanContext().SpanID() || spans[1].Parent().SpanID() != spans[2].SpanContext().SpanID() || spans[2].Parent().IsValid() {
		t.Error("the parents are wrong")
	}
	if took := spans[0].EndTime().Sub(spans[0].StartTime()); took != time.Second {
		t.Errorf("the added span took %s", took)
	}
	got := map[string]string{}
	for _, a := range spans[1].Attributes() {
		got[string(a.Key)] = a.Value.String()
	}
	want := map[string]string{"scheduler.object.kind": "placement", "scheduler.object.name": "web", "error.type": "*errors.errorString"}
	if fmt.Sprint(got) != fmt.Sprint(want) || spans[1].Status().Description != "" {
		t.Errorf("got %v, %q, want %v", got, spans[1].Status().Description, want)
	}
}

func TestErrorType(t *testing.T) {
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "timeout"},
		{fmt.Errorf("x: %w", context.Canceled), "canceled"},
		{fmt.Errorf("x: %w", &http.MaxBytesError{}), "*http.MaxBytesError"},
		{errors.Join(os.ErrExist, os.ErrClosed), "*errors.joinError"},
	} {
		if got := errorType(c.err); got != c.want {
			t.Errorf("%v: got %s, want %s", c.err, got, c.want)
		}
	}
}

func TestCauses(t *testing.T) {
	tracer, _ := record(t)
	first, span1 := tracer.Begin(t.Context(), "one", time.Now())
	second, span2 := tracer.Begin(t.Context(), "two", time.Now())
	tracer.Caused(first, 5)
	tracer.Caused(first, 6)
	tracer.Caused(second, 7)
	tracer.Caused(t.Context(), 8)
	for _, c := range []struct {
		after, upTo int64
		want        []trace.SpanID
	}{
		{0, 4, nil},
		{4, 6, []trace.SpanID{span1.identity().SpanID()}},
		{6, 9, []trace.SpanID{span2.identity().SpanID()}},
		{0, 9, []trace.SpanID{span2.identity().SpanID(), span1.identity().SpanID()}},
	} {
		var got []trace.SpanID
		for _, link := range tracer.Causes(c.after, c.upTo) {
			got = append(got, link.SpanContext.SpanID())
		}
		if fmt.Sprint(got) != fmt.Sprint(c.want) {
			t.Errorf("after %d up to %d: got %v, want %v", c.after, c.upTo, got, c.want)
		}
	}
	if !tracer.IsCause(first, 5) || tracer.IsCause(first, 4) || tracer.IsCause(t.Context(), 9) {
		t.Error("the wrong spans count as causes")
	}
	for i := range int64(3 * maxCauses) {
		ctx, _ := tracer.Begin(t.Context(), "more", time.Now())
		tracer.Caused(ctx, 100+i)
	}
	if tracer.IsCause(first, 10) {
		t.Error("causes are kept for ever")
	}
	if n := len(tracer.Causes(0, 1<<60)); n != maxLinks {
		t.Errorf("got %d links", n)
	}
}

// Only servers of this program learn which trace a request belongs to.
func TestWhoIsToldOfATrace(t *testing.T) {
	var told string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		told = r.Header.Get("Traceparent")
		w.WriteHeader(http.StatusTeapot)
	}))
	defer server.Close()
	tracer, ended := record(t)
	ask := func(ctx context.Context, transport http.RoundTripper) {
		t.Helper()
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, server.URL+"/p4th?q=s3cr3t", http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := (&http.Client{Transport: transport}).Do(request)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
	}
	ctx, _ := tracer.Begin(t.Context(), "all", time.Now())
	for _, c := range []struct {
		name        string
		ctx         context.Context
		transport   http.RoundTripper
		told, spans int
	}{
		{"a stranger", ctx, Client(http.DefaultTransport, nil), 0, 1},
		{"a stranger, without a trace", t.Context(), Client(http.DefaultTransport, nil), 0, 0},
		{"a stranger, and it begins one", t.Context(), Client(http.DefaultTransport, tracer), 0, 1},
		{"a server", ctx, Peer(http.DefaultTransport), 55, 1},
		{"a server, without a trace", t.Context(), Peer(http.DefaultTransport), 0, 0},
		{"a server, of a trace that others record", FromEnvironment(t.Context(), func(name string) string {
			return map[string]string{"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}[name]
		}), Peer(http.DefaultTransport), 55, 0},
	} {
		before := len(ended())
		ask(c.ctx, c.transport)
		spans := ended()[before:]
		if len(told) != c.told || len(spans) != c.spans {
			t.Errorf("%s: told %q, %d spans", c.name, told, len(spans))
		}
		for _, span := range spans {
			if text := fmt.Sprint(span.Name(), span.Attributes()); bytes.Contains([]byte(text), []byte("s3cr3t")) || bytes.Contains([]byte(text), []byte("p4th")) {
				t.Errorf("%s: the span has %s", c.name, text)
			}
		}
	}
}

func TestLogLinesNameTheirSpan(t *testing.T) {
	tracer, _ := record(t)
	ctx, span := tracer.Begin(t.Context(), "all", time.Now())
	unsampled, _ := record(t, sdk.WithSampler(sdk.NeverSample()))
	without, _ := unsampled.Begin(t.Context(), "none", time.Now())
	var out bytes.Buffer
	logger := slog.New(LogHandler(slog.NewJSONHandler(&out, nil))).With("a", 1)
	for _, c := range []struct {
		ctx  context.Context
		want string
	}{{ctx, span.TraceID()}, {without, ""}, {t.Context(), ""}} {
		out.Reset()
		logger.InfoContext(c.ctx, "text")
		var line map[string]any
		if err := json.Unmarshal(out.Bytes(), &line); err != nil {
			t.Fatal(err)
		}
		got, _ := line["trace_id"].(string)
		if got != c.want || (line["span_id"] != nil) != (c.want != "") || line["a"] == nil {
			t.Errorf("got %v, want trace %q", line, c.want)
		}
	}
}

// identity returns the identity of the span, which is invalid if it is not recorded.
func (s Span) identity() trace.SpanContext {
	if s.span == nil {
		return trace.SpanContext{}
	}
	return s.span.SpanContext()
}
