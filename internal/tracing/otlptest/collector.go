// Package otlptest is test code: a collector of OpenTelemetry traces that keeps what it receives.
package otlptest

import (
	"bytes"
	"context"
	"encoding/hex"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	common "go.opentelemetry.io/proto/otlp/common/v1"
	wire "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/metadata"
	"google.golang.org/protobuf/proto"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// Span is a span as it arrived.
type Span struct {
	Name, Service             string
	TraceID, SpanID, ParentID string
	Server, Client, Failed    bool
	Attributes                map[string]string
	Links                     []string // IDs of spans
	Began, Ended              uint64   // nanoseconds
}

// Collector keeps spans.
type Collector struct {
	collector.UnimplementedTraceServiceServer

	// Endpoint is the address to send to.
	Endpoint string

	t       testing.TB
	mu      sync.Mutex
	spans   []Span       // guarded by mu
	raw     bytes.Buffer // guarded by mu: everything that has arrived
	headers http.Header  // guarded by mu: of the last request
}

func newCollector(t testing.TB) *Collector {
	c := &Collector{t: t}
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the spans that have arrived:\n%s", c)
		}
	})
	return c
}

// NewHTTP starts a collector for OTLP over HTTP, until the test ends.
func NewHTTP(t testing.TB) *Collector {
	t.Helper()
	c := newCollector(t)
	server := httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(server.Close)
	c.Endpoint = server.URL
	return c
}

// NewGRPC starts a collector for OTLP over gRPC, until the test ends.
func NewGRPC(t testing.TB, options ...grpc.ServerOption) *Collector {
	t.Helper()
	c := newCollector(t)
	listener, err := new(net.ListenConfig).Listen(context.Background(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := grpc.NewServer(options...)
	collector.RegisterTraceServiceServer(server, c)
	ended := make(chan error, 1)
	go func() { ended <- server.Serve(listener) }()
	t.Cleanup(func() {
		server.Stop()
		if err := <-ended; err != nil {
			t.Errorf("the collector ended with %v", err)
		}
	})
	c.Endpoint = "http://" + listener.Addr().String()
	return c
}

func (c *Collector) serve(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
		http.NotFound(w, r)
		return
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return // the test looks at what arrives
	}
	var request collector.ExportTraceServiceRequest
	if err := proto.Unmarshal(body, &request); err != nil {
		c.t.Errorf("the collector cannot read %d bytes: %v", len(body), err)
	}
	c.keep(body, r.Header, &request)
	w.Header().Set("Content-Type", "application/x-protobuf")
}

// Export implements the service of the protocol.
func (c *Collector) Export(ctx context.Context, request *collector.ExportTraceServiceRequest) (*collector.ExportTraceServiceResponse, error) {
	body, err := proto.Marshal(request)
	if err != nil {
		return nil, err
	}
	header := http.Header{}
	sent, _ := metadata.FromIncomingContext(ctx)
	for name, values := range sent {
		header[http.CanonicalHeaderKey(name)] = values
	}
	c.keep(body, header, request)
	return &collector.ExportTraceServiceResponse{}, nil
}

func (c *Collector) keep(body []byte, headers http.Header, request *collector.ExportTraceServiceRequest) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.headers = headers
	c.raw.Write(body)
	for _, from := range request.ResourceSpans {
		service := texts(from.Resource.GetAttributes())["service.name"]
		for _, scope := range from.ScopeSpans {
			for _, s := range scope.Spans {
				c.spans = append(c.spans, spanOf(service, s))
			}
		}
	}
}

func spanOf(service string, s *wire.Span) Span {
	span := Span{
		Name: s.Name, Service: service, TraceID: hex.EncodeToString(s.TraceId), SpanID: hex.EncodeToString(s.SpanId), ParentID: hex.EncodeToString(s.ParentSpanId),
		Server: s.Kind == wire.Span_SPAN_KIND_SERVER, Client: s.Kind == wire.Span_SPAN_KIND_CLIENT, Failed: s.Status.GetCode() == wire.Status_STATUS_CODE_ERROR,
		Attributes: texts(s.Attributes), Began: s.StartTimeUnixNano, Ended: s.EndTimeUnixNano,
	}
	for _, link := range s.Links {
		span.Links = append(span.Links, hex.EncodeToString(link.SpanId))
	}
	return span
}

func texts(attributes []*common.KeyValue) map[string]string {
	out := map[string]string{}
	for _, a := range attributes {
		switch value := a.Value.GetValue().(type) {
		case *common.AnyValue_StringValue:
			out[a.Key] = value.StringValue
		case *common.AnyValue_IntValue:
			out[a.Key] = fmt.Sprint(value.IntValue)
		default:
			out[a.Key] = fmt.Sprint(value)
		}
	}
	return out
}

// Spans returns the spans that have arrived.
func (c *Collector) Spans() []Span {
	c.mu.Lock()
	defer c.mu.Unlock()
	return append([]Span(nil), c.spans...)
}

// Raw returns everything that has arrived, as it was sent.
func (c *Collector) Raw() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.raw.String()
}

// Headers returns the headers of the last request.
func (c *Collector) Headers() http.Header {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.headers.Clone()
}

// Await waits for a span, and returns it.
func (c *Collector) Await(what string, is func(Span) bool) Span {
	c.t.Helper()
	var found Span
	eventually.True(c.t, "the collector has "+what, func() bool {
		for _, s := range c.Spans() {
			if is(s) {
				found = s
				return true
			}
		}
		return false
	})
	return found
}

// Child waits for a span below another one.
func (c *Collector) Child(parent Span, name string) Span {
	c.t.Helper()
	return c.Await(fmt.Sprintf("%q below %q", name, parent.Name), func(s Span) bool {
		return s.ParentID == parent.SpanID && s.TraceID == parent.TraceID && s.Name == name
	})
}

// Decided waits for the span of the pass in which a write was decided, and returns it: "decide" below its request, or a
// "pass" of the server that was about to begin, and has a link to it.
func (c *Collector) Decided(request Span) Span {
	c.t.Helper()
	return c.Await("the pass that decided "+request.Name, func(s Span) bool {
		within := s.Name == "decide" && s.ParentID == request.SpanID
		return (within || s.Name == "pass" && slices.Contains(s.Links, request.SpanID)) && s.Attributes["scheduler.decisions"] == "1"
	})
}

// String lists the spans.
func (c *Collector) String() string {
	var out strings.Builder
	for _, s := range c.Spans() {
		fmt.Fprintf(&out, "%s %s < %s %s: %s %v links %v\n", s.TraceID[:8], s.SpanID, s.ParentID, s.Service, s.Name, s.Attributes, s.Links)
	}
	return out.String()
}
