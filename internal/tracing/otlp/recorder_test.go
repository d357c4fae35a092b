package otlp

import (
	"bytes"
	"context"
	"encoding/pem"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing/otlptest"
)

func TestMain(m *testing.M) {
	// Remove settings of the developer's machine.
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "OTEL_") {
			_ = os.Unsetenv(name) // the name is valid
		}
	}
	goleak.VerifyTestMain(m)
}

// open opens a recorder until the test ends.
func open(t *testing.T, settings Settings) (*Recorder, *logtest.Buffer) {
	t.Helper()
	settings.SampleRatio = 1
	settings.Check(func(setting, format string, args ...any) {
		t.Fatalf("%s: %v", setting, fmt.Errorf(format, args...))
	})
	logs := &logtest.Buffer{}
	r, err := Open(t.Context(), Options{
		Settings: settings, Service: "test", Version: "1", Instance: "here", CloseWithin: 2 * time.Second, Logger: slog.New(slog.NewTextHandler(logs, nil)),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Close)
	return r, logs
}

// record records spans, each a trace of its own.
func record(r *Recorder, n int) {
	for range n {
		_, span := r.Tracer().Begin(context.Background(), "work", time.Now())
		span.End(nil)
	}
}

func file(t *testing.T, content []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestNothingIsRecordedByDefault(t *testing.T) {
	r, err := Open(t.Context(), Options{Settings: Settings{SampleRatio: 1}})
	if r != nil || err != nil {
		t.Fatalf("got %v, %v", r, err)
	}
	if r.Tracer() != nil || r.Figures() != (Figures{}) {
		t.Error("the nil recorder records")
	}
	r.Close()
}

func TestExport(t *testing.T) {
	t.Parallel()
	headers := file(t, []byte("# of the collector\nx-team: a: b\n\nAuthorization: Bearer s3cr3t\n"))
	for _, c := range []struct {
		protocol  Protocol
		collector func(t *testing.T) *otlptest.Collector
	}{
		{HTTP, func(t *testing.T) *otlptest.Collector { return otlptest.NewHTTP(t) }},
		{GRPC, func(t *testing.T) *otlptest.Collector { return otlptest.NewGRPC(t) }},
	} {
		t.Run(string(c.protocol), func(t *testing.T) {
			collector := c.collector(t)
			r, logs := open(t, Settings{Endpoint: collector.Endpoint, Protocol: c.protocol, HeadersFile: headers})
			record(r, 3)
			span := collector.Await("a span", func(s otlptest.Span) bool { return s.Name == "work" })
			if span.Service != "test" || collector.Headers().Get("Authorization") != "Bearer s3cr3t" || collector.Headers().Get("X-Team") != "a: b" {
				t.Errorf("got %+v with %v", span, collector.Headers())
			}
			record(r, 2)
			r.Close() // sends what waits
			if n := len(collector.Spans()); n != 5 {
				t.Errorf("%d spans have arrived", n)
			}
			if got := r.Figures(); got != (Figures{Exported: 5}) {
				t.Errorf("got %+v", got)
			}
			if logs.String() != "" {
				t.Errorf("logged %s", logs)
			}
		})
	}
}

func TestEnvironment(t *testing.T) {
	for _, c := range []struct {
		protocol  string
		collector func(t *testing.T) *otlptest.Collector
	}{
		{"", func(t *testing.T) *otlptest.Collector { return otlptest.NewHTTP(t) }},
		{"grpc", func(t *testing.T) *otlptest.Collector { return otlptest.NewGRPC(t) }},
	} {
		t.Run("protocol "+c.protocol, func(t *testing.T) {
			collector := c.collector(t)
			t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
			t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.Endpoint)
			t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", c.protocol)
			t.Setenv("OTEL_EXPORTER_OTLP_HEADERS", "x-team=b")
			t.Setenv("OTEL_SERVICE_NAME", "other")
			r, _ := open(t, Settings{})
			record(r, 1)
			span := collector.Await("a span", func(otlptest.Span) bool { return true })
			if span.Service != "other" || collector.Headers().Get("X-Team") != "b" {
				t.Errorf("got %+v with %v", span, collector.Headers())
			}
		})
	}
	t.Run("unknown protocol", func(t *testing.T) {
		t.Setenv("OTEL_TRACES_EXPORTER", "otlp")
		t.Setenv("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "http/json")
		_, err := Open(t.Context(), Options{})
		if err == nil || !strings.Contains(err.Error(), `OTEL_EXPORTER_OTLP_TRACES_PROTOCOL (or OTEL_EXPORTER_OTLP_PROTOCOL): "http/json" is not one of`) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("settings take precedence", func(t *testing.T) {
		collector := otlptest.NewHTTP(t)
		t.Setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
		t.Setenv("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc")
		r, _ := open(t, Settings{Endpoint: collector.Endpoint, Protocol: HTTP})
		record(r, 1)
		collector.Await("a span", func(otlptest.Span) bool { return true })
	})
}

func TestTLS(t *testing.T) {
	t.Parallel()
	taken := make(chan struct{}, 10)
	server := httptest.NewTLSServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { taken <- struct{}{} }))
	defer server.Close()
	ca := file(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	r, _ := open(t, Settings{Endpoint: server.URL, CAFile: ca})
	record(r, 1)
	<-taken
	r.Close()

	// Another authority.
	r, logs := open(t, Settings{Endpoint: server.URL})
	record(r, 1)
	eventually.True(t, "the span is dropped", func() bool { return r.Figures().Refused == 1 })
	eventually.True(t, "the cause is logged", func() bool {
		return strings.Contains(logs.String(), "certificate signed by unknown authority")
	})
}

// hanging accepts connections and never answers.
func hanging(t *testing.T) string {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var open []net.Conn
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			open = append(open, conn)
		}
	}()
	t.Cleanup(func() {
		listener.Close()
		<-ended
		for _, conn := range open {
			conn.Close()
		}
	})
	return "http://" + listener.Addr().String()
}

// refusing answers every request with an error.
func refusing(t *testing.T, status int) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(status)
		_, _ = w.Write(bytes.Repeat([]byte("no "), 10_000))
	}))
	t.Cleanup(server.Close)
	return server.URL
}

// Whatever the collector does, nobody waits for it, the queue is limited, and Close ends in time.
func TestCollectorThatFails(t *testing.T) {
	t.Parallel()
	unused := func(t *testing.T) string { return "http://" + proxytest.FreeAddress(t) }
	for _, c := range []struct {
		name     string
		endpoint func(t *testing.T) string
		protocol Protocol
	}{
		{"is down", unused, HTTP},
		{"is down", unused, GRPC},
		{"hangs", hanging, HTTP},
		{"hangs", hanging, GRPC},
		{"rejects", func(t *testing.T) string { return refusing(t, http.StatusForbidden) }, HTTP},
		{"is busy", func(t *testing.T) string { return refusing(t, http.StatusServiceUnavailable) }, HTTP},
		{"rejects", func(t *testing.T) string {
			return otlptest.NewGRPC(t, grpc.UnaryInterceptor(func(context.Context, any, *grpc.UnaryServerInfo, grpc.UnaryHandler) (any, error) {
				return nil, status.Error(codes.PermissionDenied, "no")
			})).Endpoint
		}, GRPC},
	} {
		t.Run(c.name+" "+string(c.protocol), func(t *testing.T) {
			t.Parallel()
			r, logs := open(t, Settings{Endpoint: c.endpoint(t), Protocol: c.protocol})
			const spans = 3 * maxWaiting
			record(r, spans)
			if n := r.Figures().Waiting; n > maxWaiting {
				t.Errorf("%d spans wait", n)
			}
			var closed atomic.Bool
			go func() { r.Close(); closed.Store(true) }()
			eventually.True(t, "the recorder is closed", closed.Load)
			got := r.Figures()
			hangs := c.name == "hangs" // otherwise batches may fail as fast as spans are recorded
			if got.Exported != 0 || got.Waiting != 0 || got.Full+got.Refused != spans || hangs && got.Full == 0 {
				t.Errorf("got %+v", got)
			}
			if n := strings.Count(logs.String(), "\n"); n > 1 || len(logs.String()) > 1000 {
				t.Errorf("logged %d lines: %s", n, logs)
			}
		})
	}
}

// Each change is logged once.
func TestCollectorThatFailsForAWhile(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	code := http.StatusForbidden
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		w.WriteHeader(code)
	}))
	defer server.Close()
	r, logs := open(t, Settings{Endpoint: server.URL})
	for n := range int64(2) {
		record(r, 1)
		eventually.True(t, "the span is dropped", func() bool { return r.Figures().Refused == n+1 })
	}
	mu.Lock()
	code = http.StatusOK
	mu.Unlock()
	for n := range int64(2) {
		record(r, 1)
		eventually.True(t, "the span is exported", func() bool { return r.Figures().Exported == n+1 })
	}
	if text := logs.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, "does not take traces") || !strings.Contains(text, "takes traces again") {
		t.Errorf("logged %s", text)
	}
}

func TestSampling(t *testing.T) {
	collector := otlptest.NewHTTP(t)
	r, err := Open(t.Context(), Options{Settings: Settings{Endpoint: collector.Endpoint}, CloseWithin: time.Minute, Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	continued := func(flags string) context.Context {
		return tracing.FromEnvironment(t.Context(), func(name string) string {
			return map[string]string{"TRACEPARENT": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-" + flags}[name]
		})
	}
	tracer := r.Tracer()
	begin := func(ctx context.Context) tracing.Span { _, span := tracer.Begin(ctx, "a", time.Now()); return span }
	if begin(t.Context()).Recording() || begin(continued("00")).Recording() || !begin(continued("01")).Recording() {
		t.Error("the choice of the caller does not count, or one in no traces is recorded")
	}
	ctx, span := tracer.Begin(continued("01"), "b", time.Now())
	tracer.Caused(ctx, 5)
	if _, follows := tracer.Begin(t.Context(), "c", time.Now(), tracer.Causes(0, 5)...); !span.Recording() || !follows.Recording() {
		t.Error("what follows from a recorded trace is not recorded")
	}
}

func TestSettings(t *testing.T) {
	server := httptest.NewTLSServer(nil)
	server.Close()
	roots := file(t, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))
	for _, c := range []struct {
		name     string
		settings Settings
		want     string
	}{
		{"http on this machine", Settings{Endpoint: "http://localhost:4318"}, ""},
		{"http on another machine", Settings{Endpoint: "http://otel:4318"}, "endpoint: http:// sends traces and headers unencrypted"},
		{"http on another machine, on purpose", Settings{Endpoint: "http://otel:4318", Plain: true}, ""},
		{"https", Settings{Endpoint: "https://otel:4317/", Protocol: GRPC, CAFile: roots}, ""},
		{"a path", Settings{Endpoint: "https://otel:4317/tempo/v1/traces"}, ""},
		{"authorities without TLS", Settings{Endpoint: "http://[::1]:4318", CAFile: roots}, "ca-file: requires an endpoint with https://"},
		{"a query", Settings{Endpoint: "https://otel:4317?token=x"}, "endpoint: it is not an address"},
		{"not a header", Settings{HeadersFile: file(t, []byte("a: b\ns3cr3t\n"))}, "line 2 is not a header: write Name: value"},
		{"control characters", Settings{HeadersFile: file(t, []byte("a: s3\x00cr3t\n"))}, "line 1 is not a header"},
		{"empty headers", Settings{HeadersFile: file(t, []byte("# s3cr3t\n"))}, "contains no header"},
		{"not a number", Settings{SampleRatio: -1}, "sample-ratio: -1 is not between 0 and 1"},
	} {
		var got []string
		c.settings.Check(func(setting, format string, args ...any) {
			got = append(got, setting+": "+fmt.Errorf(format, args...).Error())
		})
		text := strings.Join(got, "\n")
		if (text == "") != (c.want == "") || !strings.Contains(text, c.want) || strings.Contains(text, "s3cr3t") {
			t.Errorf("%s: got %q, want %q", c.name, text, c.want)
		}
	}
	for _, c := range []struct{ endpoint, want string }{
		{"http://a:4318", "http://a:4318/v1/traces"},
		{"http://a:4318/", "http://a:4318/v1/traces"},
		{"https://a/tempo", "https://a/tempo"},
	} {
		if got := (&Settings{Endpoint: c.endpoint}).address(HTTP); got != c.want {
			t.Errorf("%s: got %s, want %s", c.endpoint, got, c.want)
		}
	}
}
