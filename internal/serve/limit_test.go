package serve_test

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// grace is shorter in tests, because they flood a small limit.
const grace = 10 * time.Millisecond

// site is a server under a limit. /hold answers when release is closed, /take
// when it has the body.
type site struct {
	address string
	holding atomic.Int32
	release chan struct{}
}

func start(t *testing.T, limit *serve.Limit, name string) *site {
	t.Helper()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	return startOn(t, limit, name, inner)
}

func startOn(t *testing.T, limit *serve.Limit, name string, inner net.Listener) *site {
	t.Helper()
	s := &site{address: inner.Addr().String(), release: make(chan struct{})}
	mux := http.NewServeMux()
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	mux.HandleFunc("/take", func(_ http.ResponseWriter, r *http.Request) {
		s.holding.Add(1)
		defer s.holding.Add(-1)
		_, _ = io.Copy(io.Discard, r.Body)
	})
	mux.HandleFunc("/hold", func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		s.holding.Add(1)
		defer s.holding.Add(-1)
		select {
		case <-s.release:
		case <-r.Context().Done():
		}
	})
	server := &http.Server{Handler: mux}
	limit.Watch(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(limit.Listen(name, inner, false)) }()
	t.Cleanup(func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	})
	return s
}

// dial connects from a local address and writes to the connection.
func (s *site) dial(t *testing.T, from, text string) net.Conn {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}, Timeout: eventually.Limit}
	c, err := dialer.Dial("tcp", s.address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

func get(path string) string { return "GET " + path + " HTTP/1.1\r\nHost: a\r\n\r\n" }

// status returns the first line of the response.
func status(t *testing.T, c net.Conn) string {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(eventually.Limit)); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(c).ReadString('\n')
	if err != nil {
		t.Fatalf("got %q, %v", line, err)
	}
	return strings.TrimSpace(line)
}

// isClosed waits until the other side has closed a connection.
func isClosed(t *testing.T, c net.Conn) {
	t.Helper()
	if err := c.SetReadDeadline(time.Now().Add(eventually.Limit)); err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, c); errors.Is(err, os.ErrDeadlineExceeded) {
		t.Error("the connection is still open")
	}
}

// metric returns the sum of a metric over the series with the labels name=value.
func metric(t *testing.T, limit *serve.Limit, name string, labels ...string) float64 {
	t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(limit.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var sum float64
	for _, family := range families {
		for _, m := range family.GetMetric() {
			matching := family.GetName() == name
			for _, want := range labels {
				found := false
				for _, label := range m.GetLabel() {
					found = found || label.GetName()+"="+label.GetValue() == want
				}
				matching = matching && found
			}
			if matching {
				sum += m.GetGauge().GetValue() + m.GetCounter().GetValue()
			}
		}
	}
	return sum
}

// floods are ways to open many connections without sending a request that takes long.
var floods = map[string]string{
	"silent": "", "half a header": "GET / HTTP/1.1\r\nHost: ", "idle": get("/"),
	"half a body": "POST /take HTTP/1.1\r\nHost: a\r\nContent-Length: 10\r\n\r\nhalf",
}

func TestConnectionFloodDoesNotBlockOthers(t *testing.T) {
	for bound, options := range map[string]serve.LimitOptions{
		"of the same client": {PerClient: 16, Grace: grace}, "of many clients": {Total: 16, Grace: grace},
	} {
		for kind, text := range floods {
			t.Run(kind+" "+bound, func(t *testing.T) {
				limit := serve.NewLimit(options)
				s := start(t, limit, "api")
				kept := s.dial(t, "127.0.0.1", "")
				for i := range 200 {
					from := "127.0.0.1"
					if options.Total > 0 {
						from = fmt.Sprintf("127.0.0.%d", 2+i%50)
					}
					flooding := s.dial(t, from, text)
					if kind == "idle" {
						_ = status(t, flooding)
					}
					if i%8 != 0 {
						continue
					}
					if _, err := io.WriteString(kept, get("/")); err != nil {
						t.Fatalf("after %d connections, on an existing one: %v", i, err)
					}
					if got := status(t, kept); got != "HTTP/1.1 200 OK" {
						t.Fatalf("after %d connections, on an existing one: %s", i, got)
					}
					fresh := s.dial(t, "127.0.0.1", get("/"))
					if got := status(t, fresh); got != "HTTP/1.1 200 OK" {
						t.Fatalf("after %d connections, on a new one: %s", i, got)
					}
					_ = fresh.Close()
				}
				if got := metric(t, limit, "scheduler_http_connections"); got > 16 {
					t.Errorf("%v connections open, want at most 16", got)
				}
				if got := metric(t, limit, "scheduler_http_connections_evicted_total"); got < 150 {
					t.Errorf("%v evicted, want at least 150", got)
				}
				if got := metric(t, limit, "scheduler_http_connections_rejected_total"); got != 0 {
					t.Errorf("%v rejected, want none", got)
				}
			})
		}
	}
}

func TestConnectionsAboveTheLimitAreRefused(t *testing.T) {
	limit := serve.NewLimit(serve.LimitOptions{PerClient: 3, Total: 4})
	s := start(t, limit, "api")
	var held []net.Conn
	for range 3 {
		held = append(held, s.dial(t, "127.0.0.1", get("/hold")))
	}
	eventually.True(t, "three requests", func() bool { return s.holding.Load() == 3 })
	if got := status(t, s.dial(t, "127.0.0.1", "")); got != "HTTP/1.1 429 Too Many Requests" {
		t.Errorf("fourth connection of a client: got %s", got)
	}
	held = append(held, s.dial(t, "127.0.0.2", get("/hold")))
	eventually.True(t, "four requests", func() bool { return s.holding.Load() == 4 })
	if got := status(t, s.dial(t, "127.0.0.3", "")); got != "HTTP/1.1 429 Too Many Requests" {
		t.Errorf("fifth connection in total: got %s", got)
	}
	for _, by := range []string{"client", "total"} {
		if got := metric(t, limit, "scheduler_http_connections_rejected_total", "limit="+by); got != 1 {
			t.Errorf("%v rejected by %s", got, by)
		}
	}
	_ = held[0].Close()
	eventually.True(t, "a connection is free again", func() bool { return metric(t, limit, "scheduler_http_connections") == 3 })
	if got := status(t, s.dial(t, "127.0.0.3", get("/"))); got != "HTTP/1.1 200 OK" {
		t.Errorf("after one was closed: got %s", got)
	}
	close(s.release)
	for _, c := range held[1:] {
		if got := status(t, c); got != "HTTP/1.1 200 OK" {
			t.Errorf("connection in use: got %s", got)
		}
	}
}

// Who answers without the body does not wait for it: neither of a client that waits to be told to send it, nor of one
// that announces much.
func TestAnswersDoNotWaitForABodyThatNobodyReads(t *testing.T) {
	s := start(t, serve.NewLimit(serve.LimitOptions{Total: 8}), "api")
	for _, header := range []string{"Content-Length: 10\r\nExpect: 100-continue", "Content-Length: 2000000\r\nExpect: 100-continue", "Content-Length: 2000000"} {
		c := s.dial(t, "127.0.0.1", "POST / HTTP/1.1\r\nHost: a\r\n"+header+"\r\n\r\n")
		if got := status(t, c); got != "HTTP/1.1 200 OK" {
			t.Errorf("%q: got %q", header, got)
		}
	}
}

func TestARequestThatHasArrivedStays(t *testing.T) {
	limit := serve.NewLimit(serve.LimitOptions{Total: 4, Grace: grace})
	s := start(t, limit, "api")
	held := []net.Conn{
		s.dial(t, "127.0.0.1", "POST /hold HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\n\r\nbody"),
		s.dial(t, "127.0.0.2", get("/hold")),
	}
	eventually.True(t, "two requests", func() bool { return s.holding.Load() == 2 })
	for kind, text := range floods {
		for range 10 {
			flooding := s.dial(t, "127.0.0.3", text)
			if kind == "idle" {
				_ = status(t, flooding)
			}
		}
	}
	eventually.True(t, "connections were closed to make room", func() bool { return metric(t, limit, "scheduler_http_connections_evicted_total") >= 36 })
	close(s.release)
	for _, c := range held {
		if got := status(t, c); got != "HTTP/1.1 200 OK" {
			t.Error(got)
		}
	}
}

func TestEveryListenerHasAReservedShare(t *testing.T) {
	limit := serve.NewLimit(serve.LimitOptions{Total: 8})
	greedy, quiet := start(t, limit, "api"), start(t, limit, "webhook")
	for i := range 6 { // all but the two reserved ones
		greedy.dial(t, fmt.Sprintf("127.0.0.%d", i+1), get("/hold"))
	}
	eventually.True(t, "six requests", func() bool { return greedy.holding.Load() == 6 })
	if got := status(t, greedy.dial(t, "127.0.0.9", "")); got != "HTTP/1.1 429 Too Many Requests" {
		t.Errorf("seventh connection: got %s", got)
	}
	for range 2 {
		quiet.dial(t, "127.0.0.1", get("/hold"))
	}
	eventually.True(t, "two requests to the other listener", func() bool { return quiet.holding.Load() == 2 })
	if got := status(t, quiet.dial(t, "127.0.0.1", "")); got != "HTTP/1.1 429 Too Many Requests" {
		t.Errorf("third connection to the other listener: got %s", got)
	}
}

func TestConnectionsWithoutARequestAreClosed(t *testing.T) {
	limit := serve.NewLimit(serve.LimitOptions{RequestWithin: 300 * time.Millisecond})
	s := start(t, limit, "api")
	var used net.Conn
	closed := -1.0
	eventually.True(t, "a request arrives in time", func() bool {
		closed++
		used = s.dial(t, "127.0.0.1", "")
		_, _ = io.WriteString(used, get("/")) // the time may have passed since
		line, _ := bufio.NewReader(used).ReadString('\n')
		if line != "" && line != "HTTP/1.1 200 OK\r\n" {
			t.Fatal(line)
		}
		return line != ""
	})
	for name, text := range map[string]string{"silent": "", "half a header": "GET / HTTP/1.1\r\nHost: "} {
		t.Run(name, func(t *testing.T) {
			c := s.dial(t, "127.0.0.1", "")
			_, _ = io.WriteString(c, text) // the time may have passed since
			isClosed(t, c)
		})
	}
	if _, err := io.WriteString(used, get("/")); err != nil {
		t.Fatal(err)
	}
	if got := status(t, used); got != "HTTP/1.1 200 OK" {
		t.Errorf("connection that has had a request: got %s", got)
	}
	if got := metric(t, limit, "scheduler_http_connections_evicted_total", "limit=silent"); got != closed+2 {
		t.Errorf("%v closed, want %v", got, closed+2)
	}
}

// An HTTP/2 connection counts as idle after the handshake; the handshake is not a request.
func TestHTTP2ConnectionsWithoutARequestAreClosed(t *testing.T) {
	example := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer example.Close()
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	limit := serve.NewLimit(serve.LimitOptions{RequestWithin: time.Second})
	server := &http.Server{
		Handler:   http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }),
		TLSConfig: &tls.Config{Certificates: example.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}},
	}
	limit.Watch(server)
	served := make(chan error, 1)
	go func() { served <- server.ServeTLS(limit.Listen("api", inner, true), "", "") }()
	defer func() {
		_ = server.Close()
		if err := <-served; !errors.Is(err, http.ErrServerClosed) {
			t.Errorf("serve: %v", err)
		}
	}()

	closed := 0.0
	connect := func(greeting string) (c *tls.Conn) {
		dialer := &net.Dialer{Timeout: eventually.Limit}
		eventually.True(t, "the handshake and the greeting are in time", func() bool {
			closed++
			var err error
			if c, err = tls.DialWithDialer(dialer, "tcp", inner.Addr().String(), &tls.Config{InsecureSkipVerify: true, NextProtos: []string{"h2"}}); err != nil {
				return false
			}
			t.Cleanup(func() { _ = c.Close() })
			_, err = io.WriteString(c, greeting)
			return err == nil
		})
		return c
	}
	for name, greeting := range map[string]string{
		"after the handshake": "", "after the settings": "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\x00\x00\x00\x04\x00\x00\x00\x00\x00",
	} {
		t.Run(name, func(t *testing.T) {
			isClosed(t, connect(greeting))
		})
	}
	if got := metric(t, limit, "scheduler_http_connections_evicted_total", "limit=silent"); closed < 2 || got != closed {
		t.Errorf("%v were closed, want %v", got, closed)
	}

	client := &http.Client{Transport: &http.Transport{ForceAttemptHTTP2: true, TLSClientConfig: &tls.Config{InsecureSkipVerify: true}}}
	defer client.CloseIdleConnections()
	ask := func() (reused, inTime bool) {
		trace := &httptrace.ClientTrace{GotConn: func(info httptrace.GotConnInfo) { reused = info.Reused }}
		r, err := http.NewRequestWithContext(httptrace.WithClientTrace(t.Context(), trace), http.MethodGet, "https://"+inner.Addr().String(), nil)
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			return reused, false
		}
		defer response.Body.Close()
		if text, err := io.ReadAll(response.Body); err != nil || string(text) != "HTTP/2.0" {
			t.Fatalf("got %q, %v", text, err)
		}
		return reused, true
	}
	eventually.True(t, "a request is in time", func() bool { _, inTime := ask(); return inTime })
	isClosed(t, connect("")) // the time for a request has passed since
	if reused, answered := ask(); !reused || !answered {
		t.Error("a connection that has had a request is closed, too")
	}
}

// failing is a listener that lacks file descriptors for a while.
type failing struct {
	net.Listener
	left atomic.Int32
}

func (f *failing) Accept() (net.Conn, error) {
	if f.left.Add(-1) >= 0 {
		return nil, &net.OpError{Op: "accept", Err: errors.New("too many open files")}
	}
	return f.Listener.Accept()
}

func TestTransientAcceptErrors(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{Listener: inner}
	f.left.Store(4)
	limit := serve.NewLimit(serve.LimitOptions{})
	s := startOn(t, limit, "api", f)
	if got := status(t, s.dial(t, "127.0.0.1", get("/"))); got != "HTTP/1.1 200 OK" {
		t.Error(got)
	}
	if got := metric(t, limit, "scheduler_http_accept_failures_total"); got != 4 {
		t.Errorf("%v failures counted, want 4", got)
	}
}

func TestAListenerThatLacksDescriptorsCanBeClosed(t *testing.T) {
	inner, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	f := &failing{Listener: inner}
	f.left.Store(1 << 30)
	server, limit := &http.Server{Handler: http.NotFoundHandler()}, serve.NewLimit(serve.LimitOptions{})
	limit.Watch(server)
	served := make(chan error, 1)
	go func() { served <- server.Serve(limit.Listen("api", f, false)) }()
	eventually.True(t, "Accept fails", func() bool { return metric(t, limit, "scheduler_http_accept_failures_total") > 3 })
	if err := server.Shutdown(context.Background()); err != nil {
		t.Error(err)
	}
	if err := <-served; !errors.Is(err, http.ErrServerClosed) {
		t.Error(err)
	}
	if got := metric(t, limit, "scheduler_http_accept_failures_total"); got > 1000 {
		t.Errorf("%v failures, want a pause between them", got)
	}
}
