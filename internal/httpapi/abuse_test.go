package httpapi

import (
	"context"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// badRequests generates invalid and hostile requests. The same seed generates the same requests.
type badRequests struct {
	random *rand.Rand
	paths  []string
	bodies []string
}

func newBadRequests(seed uint64) *badRequests {
	b := &badRequests{random: rand.New(rand.NewPCG(seed, 1))}
	for _, info := range api.Kinds {
		b.paths = append(b.paths, samples[info.Kind].path, api.CollectionPath(info.Kind, "shop"))
		b.bodies = append(b.bodies, samples[info.Kind].body, samples[info.Kind].other)
	}
	b.paths = append(b.paths, "/v1/simulations", "/v1/previews", "/v1/tokens", "/v1/clusters/eu-1/heartbeat", "/v1/namespaces/shop/placements/web/reschedule", "/v1/namespaces/shop/workloads/web/reschedule", "/v1/namespaces/shop/workloads/web/health", "/v1/watch?kinds=x", "/")
	b.bodies = append(b.bodies, hostileDocuments...)
	return b
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }

// mutate corrupts a document slightly.
func (b *badRequests) mutate(body string) string {
	data := []byte(body)
	for range 1 + b.random.IntN(4) {
		at := b.random.IntN(len(data) + 1)
		switch b.random.IntN(4) {
		case 0:
			data = data[:at]
		case 1:
			data = append(data[:at:at], append([]byte(pick(b.random, "\x00", "\xff", `"`, "{", "[", "}", ",", `\u0000`, "1e999", "null", "-", " ")), data[at:]...)...)
		case 2:
			if at < len(data) {
				data[at] = byte(b.random.IntN(256))
			}
		default:
			data = append(data, data[at:]...)
		}
	}
	return string(data)
}

func (b *badRequests) request(ctx context.Context, base, token string) (*http.Request, error) {
	var body io.Reader
	switch b.random.IntN(40) {
	case 0: // larger than allowed, with and without a declared length
		body = strings.NewReader(strings.Repeat("x", 1<<20+b.random.IntN(1<<20)))
	case 1:
		body = io.MultiReader(strings.NewReader(strings.Repeat(`{"spec":`, 1+b.random.IntN(200_000))))
	default:
		body = strings.NewReader(b.mutate(pick(b.random, b.bodies...)))
	}
	path := pick(b.random, b.paths...)
	if b.random.IntN(10) == 0 {
		path += pick(b.random, "/..%2f..", "%00", "?wait=x", "?limit=-1", "?continue=e30", "?resource_version=x&wait=1s", "//", "/"+strings.Repeat("a", 3000))
	}
	r, err := http.NewRequestWithContext(ctx, pick(b.random, "PUT", "PUT", "PUT", "POST", "DELETE", "PATCH"), base+path, body)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", pick(b.random, "application/json", "application/json", "application/json", "text/plain", ";", ""))
	if b.random.IntN(4) > 0 {
		r.Header.Set("Authorization", "Bearer "+token)
	} else {
		r.Header.Set("Authorization", pick(b.random, "Bearer x.y", "Basic eDp5", "Bearer "+token+"x", "Bearer "+strings.Repeat("a", 5000)))
	}
	if b.random.IntN(10) == 0 {
		r.Header.Set(pick(b.random, "If-Match", "If-None-Match"), pick(b.random, "x", `"1"`, `"99999999999999999999"`, `W/"1"`, ","))
	}
	return r, nil
}

// slowHeader opens a connection, sends part of a header, and keeps it open.
func slowHeader(address string) (net.Conn, error) {
	conn, err := net.Dial("tcp", address)
	if err != nil {
		return nil, err
	}
	_, err = io.WriteString(conn, "PUT /v1/clusters/a HTTP/1.1\r\nHost: a\r\nX-Slow: ")
	return conn, err
}

func liveHeap() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc
}

func TestTenThousandBadRequests(t *testing.T) {
	const requests, slow, workers = 10_000, 200, 8
	s := startServer(t, authenticated, func(o *Options) {
		o.HeaderTimeout = time.Second
		o.Connections = serve.NewLimit(serve.LimitOptions{PerClient: 1000})
	})
	token := s.addToken(auth.RoleEditor)
	address := strings.TrimPrefix(s.url, "http://")

	var answered, refused, worst atomic.Int64
	send := func(seed uint64, n int) {
		bad := newBadRequests(seed)
		for range n {
			r, err := bad.request(context.Background(), s.url, token)
			if err != nil {
				continue // not a valid request
			}
			resp, err := s.client.Do(r)
			if err != nil {
				continue // the server may close the connection while a large body is being sent
			}
			_, _ = io.Copy(io.Discard, resp.Body)
			_ = resp.Body.Close()
			answered.Add(1)
			if resp.StatusCode >= 400 {
				refused.Add(1)
			}
			if resp.StatusCode >= 500 {
				worst.Store(int64(resp.StatusCode))
			}
		}
	}
	send(0, 500) // allocate everything that is cached once
	s.client.CloseIdleConnections()
	before, goroutines := liveHeap(), runtime.NumGoroutine()

	var sending sync.WaitGroup
	for range slow {
		conn, err := slowHeader(address)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		sending.Go(func() {
			_ = conn.SetReadDeadline(time.Now().Add(eventually.Limit))
			if _, err := io.Copy(io.Discard, conn); err != nil && strings.Contains(err.Error(), "timeout") {
				t.Error("a connection without a complete header stays open")
			}
		})
	}
	for worker := range workers {
		sending.Go(func() { send(uint64(worker)+1, requests/workers) })
	}
	sending.Wait()
	if status := worst.Load(); status != 0 {
		t.Errorf("got %d for a malformed request", status)
	}
	if answered.Load() < requests*9/10 || refused.Load() < requests/2 {
		t.Errorf("%d answers, %d of them rejections: the test checks too little", answered.Load(), refused.Load())
	}

	s.client.CloseIdleConnections()
	eventually.True(t, fmt.Sprintf("no more goroutines than the initial %d", goroutines), func() bool {
		return runtime.NumGoroutine() <= goroutines
	})
	const bound = 32 << 20 // includes the store's history of the accepted writes
	if after := liveHeap(); after > before+bound {
		t.Errorf("the heap grew from %d to %d MiB", before>>20, after>>20)
	}
	s.token = token
	if a := s.do(http.MethodGet, "/v1/clusters", ""); a.StatusCode != 200 {
		t.Errorf("got %d for a valid request afterwards, want 200", a.StatusCode)
	}
}
