//go:build integration

package integration

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

const badRequests = 10_000

// assault sends bad requests and counts the responses by status.
type assault struct {
	address  string // host:port
	token    string
	client   *http.Client
	answers  [600]atomic.Int64
	cut      atomic.Int64 // connections that ended without a response
	sent     atomic.Int64
	unwanted sync.Map // description of each request with a 2xx or 5xx response → status
}

// TestBadRequestsLeaveNoTrace sends ten thousand requests with all kinds of errors. None may be answered with a server
// error, and afterwards the server must use no more memory than before.
func TestBadRequestsLeaveNoTrace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	out, err := exec.Command(servertest.Binary(t), "token", "create", "--data-dir", dir, "--role", "admin").Output()
	if err != nil {
		t.Fatal(err)
	}
	p := startServer(t, dir, "--log-level", "error")
	a := &assault{address: strings.TrimPrefix(p.url, "http://"), token: strings.TrimSpace(string(out))}
	a.client = &http.Client{Timeout: 30 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 64}}

	// The first ones fill caches and pools, and grow the heap to its working size.
	a.run(badRequests/5, 1)
	a.client.CloseIdleConnections()
	time.Sleep(2 * time.Second) //nolint:forbidigo // an idle server returns memory, which nothing shows
	before := a.figures(t)
	a.run(badRequests, 2)
	a.client.CloseIdleConnections()

	for code := range a.answers {
		if n := a.answers[code].Load(); n > 0 {
			t.Logf("%d × %d", code, n)
		}
	}
	t.Logf("%d sent, %d connections cut", a.sent.Load(), a.cut.Load())
	a.unwanted.Range(func(what, status any) bool {
		t.Errorf("answered with %v: %v", status, what)
		return true
	})
	if a.cut.Load() > a.sent.Load()/4 {
		t.Error("too many connections were cut: the test checked too little")
	}
	var after figures
	eventually.True(t, "goroutines, connections and memory are back at their initial values", func() bool {
		after = a.figures(t)
		if after.goroutines <= before.goroutines+5 && after.connections <= before.connections+1 && after.resident <= before.resident+32<<20 {
			return true
		}
		time.Sleep(time.Second) //nolint:forbidigo // the query itself uses memory
		return false
	})
	t.Logf("goroutines %.0f → %.0f, connections %.0f → %.0f, resident %.0f → %.0f MiB", before.goroutines, after.goroutines,
		before.connections, after.connections, before.resident/(1<<20), after.resident/(1<<20))
}

// figures are what may leak.
type figures struct{ goroutines, connections, resident float64 }

func (a *assault) figures(t *testing.T) figures {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+a.address+"/metrics", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+a.token)
	resp, err := a.client.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("/metrics: %d %v", resp.StatusCode, err)
	}
	value := func(name string) float64 {
		for line := range strings.Lines(string(text)) {
			if rest, ok := strings.CutPrefix(line, name+" "); ok {
				v, err := strconv.ParseFloat(strings.TrimSpace(rest), 64)
				if err != nil {
					t.Fatal(err)
				}
				return v
			}
		}
		t.Fatalf("/metrics does not contain %s", name)
		return 0
	}
	return figures{value("go_goroutines"), value("scheduler_http_connections"), value("process_resident_memory_bytes")}
}

// run sends n requests, 32 at a time.
func (a *assault) run(n int, seed uint64) {
	var left atomic.Int64
	left.Store(int64(n))
	var running sync.WaitGroup
	for w := range 32 {
		random := rand.New(rand.NewPCG(seed, uint64(w)))
		running.Go(func() {
			for left.Add(-1) >= 0 {
				a.sent.Add(1)
				a.one(random)
			}
		})
	}
	// Meanwhile, slow clients hold connections.
	stop := make(chan struct{})
	var slow sync.WaitGroup
	for range 32 {
		slow.Go(func() { a.slowly(stop) })
	}
	running.Wait()
	close(stop)
	slow.Wait()
}

var (
	badPaths = []string{
		"/", "/v1", "/v1/nothing", "/v1/placements/%zz", "/v1/clusters/..%2f..%2fetc", "/v1/clusters/" + strings.Repeat("x", 5000),
		"/v1/namespaces//placements/x", "/v1/placements?limit=-1", "/v1/placements?continue=%00%ff", "/v1/placements?label_selector=((",
		"/v1/placements?resource_version=x", "/v1/watch?kinds=nothing", "/v1/watch?resource_version=abc", "/v1/clusters/none",
		"/v1/namespaces/a/placements/none/explanation", "/v1/clusters/none?wait=1parsec", "/v1/tokens/not-a-token",
	}
	badMethods = []string{"GET", "PUT", "POST", "DELETE", "PATCH", "OPTIONS", "BREW"}
	seeds      = []string{
		`{"kind":"placement","metadata":{"name":"x","namespace":"a"},"spec":{"number_of_clusters":-1}}`,
		`{"kind":"cluster","metadata":{"name":"x"},"spec":{"metrics":[{"name":"m","weight":1e999}]}}`,
		`{"kind":"metric","metadata":{"name":"x"},"spec":{"min":1,"max":0}}`,
		`{"kind":"metrics_provider","metadata":{"name":"x"},"spec":{"type":"prometheus","prometheus":{"url":"gopher://x"}}}`,
		`{"base":"empty","objects":[{"kind":"cluster","metadata":{"name":"X"}}]}`,
		`{"role":"king"}`,
	}
	targets = []string{
		"/v1/namespaces/a/placements/x", "/v1/clusters/x", "/v1/metrics/x", "/v1/metrics-providers/x", "/v1/namespaces/a/metrics/x",
	}
)

// one sends one bad request of a random kind.
func (a *assault) one(random *rand.Rand) {
	switch sort := random.IntN(10); sort {
	case 0, 1:
		a.send(random.IntN(2) == 0, badMethods[random.IntN(len(badMethods))], badPaths[random.IntN(len(badPaths))], nil)
	case 2, 3, 4, 5:
		// With one byte changed, which may have no effect.
		body := []byte(seeds[random.IntN(len(seeds))])
		for range random.IntN(4) {
			body[random.IntN(len(body))] = byte(random.IntN(256))
		}
		path, method := targets[random.IntN(len(targets))], http.MethodPut
		switch random.IntN(8) {
		case 0:
			path, method = "/v1/tokens", http.MethodPost
		case 1:
			path, method = "/v1/clusters/none/heartbeat", http.MethodPost
		}
		a.send(false, method, path, body)
	case 6:
		deep := strings.Repeat(`{"spec":[`, random.IntN(20_000))
		a.send(false, http.MethodPut, targets[random.IntN(len(targets))], []byte(deep))
	case 7:
		// Above the limit, with and without a declared length.
		size := 1<<20 + 1 + random.IntN(1<<20)
		a.send(random.IntN(2) == 0, http.MethodPut, targets[random.IntN(len(targets))], bytes.Repeat([]byte(" "), size))
	case 8:
		a.send(true, "GET", "/v1/placements", nil)
	case 9:
		a.raw(random)
	}
}

// send sends one request, with an invalid token or a valid one.
func (a *assault) send(wrongToken bool, method, path string, body []byte) {
	r, err := http.NewRequestWithContext(context.Background(), method, "http://"+a.address+"/", bytes.NewReader(body))
	if err != nil {
		a.unwanted.Store(err.Error(), "no request")
		return
	}
	r.URL.Opaque = "//" + a.address + path // unescaped
	r.Header.Set("Authorization", "Bearer "+a.token)
	if wrongToken {
		r.Header.Set("Authorization", fmt.Sprintf("Bearer 0123456789abcdef.%d", len(body)))
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := a.client.Do(r)
	if err != nil {
		a.cut.Add(1) // the server may close the connection on a body that it does not want
		return
	}
	_, _ = io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	a.note(resp.StatusCode, wrongToken, method, path, body)
}

func (a *assault) note(status int, wrongToken bool, method, path string, body []byte) {
	a.answers[status].Add(1)
	if status >= 500 || status < 300 && wrongToken && path != "/v1/openapi.json" {
		a.unwanted.Store(fmt.Sprintf("%s %.60s %.200q", method, path, body), status)
	}
}

// raw sends what no HTTP library would send.
func (a *assault) raw(random *rand.Rand) {
	connection, err := net.DialTimeout("tcp", a.address, 5*time.Second)
	if err != nil {
		a.cut.Add(1)
		return
	}
	defer connection.Close()
	_ = connection.SetDeadline(time.Now().Add(10 * time.Second))
	texts := []string{
		"GET / HTTP/9.9\r\n\r\n", "\x16\x03\x01\x02\x00\x01\x00", "GET /v1/placements HTTP/1.1\r\n\r\n", strings.Repeat("A", 100_000),
		"PUT /v1/clusters/x HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
		"GET / HTTP/1.1\r\nHost: x\r\n" + strings.Repeat("X: "+strings.Repeat("y", 1000)+"\r\n", 100) + "\r\n",
		"PUT /v1/clusters/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + a.token + "\r\nContent-Length: 1000\r\n\r\n{\"kind\"",
		"PUT /v1/clusters/x HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer " + a.token + "\r\nTransfer-Encoding: chunked\r\n\r\nffffffffffffffffff\r\n",
	}
	_, _ = io.WriteString(connection, texts[random.IntN(len(texts))])
	if tcp, ok := connection.(*net.TCPConn); ok {
		_ = tcp.CloseWrite()
	}
	answer, _ := io.ReadAll(io.LimitReader(connection, 1<<16))
	status := 0
	if _, err := fmt.Sscanf(string(answer), "HTTP/1.1 %d", &status); err != nil || status < 100 || status > 599 {
		a.cut.Add(1)
		return
	}
	// 505 is the correct response to a version that does not exist.
	if status == http.StatusHTTPVersionNotSupported || status == http.StatusNotImplemented {
		a.answers[status].Add(1)
		return
	}
	a.note(status, false, "raw", string(answer[:min(len(answer), 100)]), nil)
}

// slowly sends a header byte by byte, and starts over when it is cut off.
func (a *assault) slowly(stop <-chan struct{}) {
	for {
		connection, err := net.DialTimeout("tcp", a.address, 5*time.Second)
		if err != nil {
			return
		}
		for _, b := range []byte("GET /v1/placements HTTP/1.1\r\nHost: example.com\r\nX-Slow: " + strings.Repeat("z", 1000)) {
			if _, err := connection.Write([]byte{b}); err != nil {
				break
			}
			select {
			case <-stop:
				connection.Close()
				return
			case <-time.After(100 * time.Millisecond):
			}
		}
		connection.Close()
	}
}
