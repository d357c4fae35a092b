package httpapi

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// dial opens a connection and writes to it. The test closes it at its end.
func (s *testServer) dial(text string) net.Conn {
	s.t.Helper()
	conn, err := net.Dial("tcp", strings.TrimPrefix(s.url, "http://"))
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = conn.Close() })
	if _, err := io.WriteString(conn, text); err != nil {
		s.t.Fatal(err)
	}
	return conn
}

// valueOf returns the value of a gauge or counter.
func valueOf(t *testing.T, metric prometheus.Metric) float64 {
	t.Helper()
	var m dto.Metric
	if err := metric.Write(&m); err != nil {
		t.Fatal(err)
	}
	return m.GetGauge().GetValue() + m.GetCounter().GetValue()
}

// metric returns the value of a metric without labels.
func (s *testServer) metric(name string) float64 {
	s.t.Helper()
	for line := range strings.Lines(string(s.do(http.MethodGet, "/metrics", "").body)) {
		if text, ok := strings.CutPrefix(line, name+" "); ok {
			value, err := strconv.ParseFloat(strings.TrimSpace(text), 64)
			if err != nil {
				s.t.Fatal(err)
			}
			return value
		}
	}
	s.t.Fatalf("no metric %s", name)
	return 0
}

// closedWithin returns what the server sends until it closes the connection.
func closedWithin(t *testing.T, conn net.Conn, limit time.Duration) string {
	t.Helper()
	if err := conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
		t.Fatal(err)
	}
	data, err := io.ReadAll(conn)
	if errors.Is(err, os.ErrDeadlineExceeded) {
		t.Errorf("still open after %s", limit)
	}
	return string(data)
}

func TestSlowClientsAreCutOff(t *testing.T) {
	// Each has all the time it needs for what it does send.
	s := startServer(t, func(o *Options) { o.HeaderTimeout, o.BodyTimeout = 200*time.Millisecond, eventually.Limit })
	t.Run("no request", func(t *testing.T) { closedWithin(t, s.dial(""), eventually.Limit) })
	t.Run("half a header", func(t *testing.T) {
		conn := s.dial("GET /v1/clusters HTTP/1.1\r\nHost: a\r\nX-A: ")
		go func() {
			for range 100 { // a byte now and then does not keep it open
				if _, err := conn.Write([]byte("a")); err != nil {
					return
				}
				time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the client is slow
			}
		}()
		closedWithin(t, conn, eventually.Limit)
	})
	s = startServer(t, func(o *Options) { o.HeaderTimeout, o.BodyTimeout = eventually.Limit, 200*time.Millisecond })
	t.Run("half a body", func(t *testing.T) {
		got := closedWithin(t, s.dial("PUT /v1/clusters/a HTTP/1.1\r\nHost: a\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"), eventually.Limit)
		if !strings.Contains(got, " 408 ") {
			t.Errorf("answer %q, want 408", got)
		}
	})
	t.Run("body of a request that is refused", func(t *testing.T) {
		got := closedWithin(t, s.dial("PUT /nothing HTTP/1.1\r\nHost: a\r\nContent-Length: 100\r\n\r\n{"), eventually.Limit)
		if !strings.Contains(got, " 404 ") {
			t.Errorf("answer %q, want 404", got)
		}
	})
	t.Run("a wait may outlast the time for the body", func(t *testing.T) {
		s.signals.settle = nil
		eventually.True(t, "a body arrives in time", func() bool {
			a := s.do(http.MethodPut, "/v1/namespaces/shop/placements/web", `{"spec":{}}`)
			if a.StatusCode != 201 && a.StatusCode != 408 {
				t.Fatalf("%d", a.StatusCode)
			}
			return a.StatusCode == 201
		})
		version := s.do(http.MethodGet, "/v1/namespaces/shop/placements/web", "").Header.Get("ETag")
		a := s.do(http.MethodGet, "/v1/namespaces/shop/placements/web?wait=3s&resource_version="+strings.Trim(version, `"`), "")
		if a.StatusCode != 200 {
			t.Errorf("got %d %s, want 200", a.StatusCode, a.body)
		}
	})
}

func TestBrokenRequestsGetAnAnswerBelow500(t *testing.T) {
	s := startServer(t)
	for _, text := range []string{
		"PUT /v1/clusters/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"PUT /v1/clusters/a HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\n{\"spec\r\n",
		"PUT /v1/clusters/a HTTP/1.1\r\nHost: a\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n{}",
		"GARBAGE\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
		"GET http://%zz/ HTTP/1.1\r\nHost: a\r\n\r\n", "OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n", "CONNECT a:1 HTTP/1.1\r\nHost: a\r\n\r\n",
		"GET /v1/clusters HTTP/1.1\r\nHost: a\r\nX: " + strings.Repeat("a", 100<<10) + "\r\n\r\n",
		"GET /v1/" + strings.Repeat("a/", 20<<10) + " HTTP/1.1\r\nHost: a\r\n\r\n",
	} {
		conn := s.dial(text)
		if err := conn.(*net.TCPConn).CloseWrite(); err != nil {
			t.Fatal(err)
		}
		got := closedWithin(t, conn, eventually.Limit)
		var status int
		if _, err := fmt.Sscanf(got, "HTTP/1.1 %d", &status); got != "" && (err != nil || status < 400 && !strings.HasPrefix(text, "OPTIONS") || status >= 500 && status != http.StatusHTTPVersionNotSupported) {
			t.Errorf("%.40q: got %.100q", text, got)
		}
	}
}

func TestIdleConnectionsMakeRoom(t *testing.T) {
	s := startServer(t)
	request := "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n"
	for i := range 600 { // keep-alive connections from one address that are never closed
		if line, err := bufio.NewReader(s.dial(request)).ReadString('\n'); err != nil || !strings.Contains(line, "200") {
			t.Fatalf("connection %d: %q %v", i, line, err)
		}
	}
	if got := s.metric("scheduler_http_connections"); got > 256 {
		t.Errorf("%v open connections, want at most 256", got)
	}
}

func TestSlowWatchersAreDropped(t *testing.T) {
	s := startServer(t, func(o *Options) { o.WatchWriteTimeout = 200 * time.Millisecond })
	conn := s.dial("GET /v1/watch HTTP/1.1\r\nHost: a\r\n\r\n")
	if err := conn.(*net.TCPConn).SetReadBuffer(4096); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the watch is open", func() bool { return valueOf(t, s.metrics.watchers) > 0 })
	region := strings.Repeat("x", 500_000)
	deadline := time.Now().Add(eventually.Limit)
	for i := 0; valueOf(t, s.metrics.watchers) > 0; i++ {
		if time.Now().After(deadline) {
			t.Fatal("the watch of a client that does not read stays open")
		}
		s.mustPut("/v1/clusters/big?wait=0s", fmt.Sprintf(`{"spec":{"region":"%s%d"}}`, region, i))
	}
}

func TestQuietWatchShowsSignsOfLife(t *testing.T) {
	s := startServer(t, func(o *Options) { o.WatchHeartbeat = 20 * time.Millisecond })
	w := s.watch("/v1/watch?kinds=metric").started()
	written := s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`).Header.Get("ETag")
	// The position advances although the reader gets no events.
	for w.lines.Scan() {
		if w.lines.Text() == "id: "+strings.Trim(written, `"`) {
			return
		}
	}
	t.Error("the watch ended")
}
