//go:build faults

package faults

import (
	"context"
	"crypto/tls"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestFaultAbandonedWhilePaused stops a server and sends it writes, whose clients give up before it
// continues. It reads the requests then, but must not carry them out: the clients may have repeated
// them through another server, and written more since.
func TestFaultAbandonedWhilePaused(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 9)
	now := time.Now()
	certFile, keyFile := certificate(t, t.TempDir(), 1, now.Add(-time.Hour), now.Add(time.Hour))
	for name, args := range map[string][]string{"HTTP/1.1": nil, "HTTP/2.0": {"--tls-cert-file", certFile, "--tls-key-file", keyFile}} {
		t.Run(name, func(t *testing.T) {
			p := launch(t, nil, serverBinary, embedded(dataDir(t), args...)...).awaitReady()
			transport := &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, ForceAttemptHTTP2: true}
			defer transport.CloseIdleConnections()
			send := func(ctx context.Context, method, path string) (status int, err error) {
				request, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(`{"spec":{}}`))
				if err != nil {
					return 0, err
				}
				request.Header.Set("Content-Type", "application/json")
				response, err := transport.RoundTrip(request)
				if err != nil {
					return 0, err
				}
				defer response.Body.Close()
				if response.Proto != name {
					t.Errorf("protocol %s, want the other one", response.Proto)
				}
				_, err = io.Copy(io.Discard, response.Body)
				return response.StatusCode, err
			}
			path := func(i int) string { return fmt.Sprintf("/v1/namespaces/shop/placements/abandoned-%d", i) }
			const writes = 20
			for round := range rounds(3, 20) {
				if status, err := send(t.Context(), http.MethodPut, path(writes)); err != nil || status/100 != 2 {
					t.Fatalf("before the pause: %d %v", status, err)
				}
				p.pause()
				f.happened()
				ctx, giveUp := context.WithTimeout(t.Context(), time.Second)
				var sent sync.WaitGroup
				for i := range writes {
					sent.Go(func() {
						if status, err := send(ctx, http.MethodPut, path(i)); err == nil {
							t.Errorf("a stopped server answered with %d", status)
						}
					})
				}
				sent.Wait()
				giveUp()
				p.signal(syscall.SIGCONT)
				// What arrived before is carried out by now, if it ever is.
				for range 2 {
					if status, err := send(t.Context(), http.MethodDelete, path(writes)); err != nil || status/100 != 2 && status != http.StatusNotFound {
						t.Errorf("after the pause: %d %v", status, err)
					}
				}
				for i := range writes {
					if status, err := send(t.Context(), http.MethodGet, path(i)); err != nil || status != http.StatusNotFound {
						t.Errorf("round %d: a write was applied although its client gave up while the server was stopped: %d %v", round, status, err)
					}
				}
			}
		})
	}
}
