//go:build faults

package faults

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
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

// TestFaultListsOfAPausedServer pauses one of three servers, writes through the others, and asks the paused one for
// lists, before and after it continues. A list shows every write that was acknowledged before its request, or says that
// it is older.
func TestFaultListsOfAPausedServer(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 9)
	binary, err := tapped()
	if err != nil {
		t.Fatal(err)
	}
	for _, store := range []struct {
		name, binary string
		on           func(*ensemble)
	}{{"etcd", serverBinary, onEtcd}, {"peers", binary, onThemselves}} {
		t.Run(store.name, func(t *testing.T) {
			t.Parallel()
			e := newEnsemble(t, f, store.binary, store.on, unwrapped)
			var current, older atomic.Int64
			for round := range rounds(3, 20) {
				paused := round % len(e.replicas)
				e.listWhilePaused(e.replicas[paused], e.clients(paused+1), int64(round+1), &current, &older)
			}
			if current.Load() == 0 {
				t.Error("no list was current")
			}
			t.Logf("%d lists were current, %d said that they are older", current.Load(), older.Load())
		})
	}
}

// listWhilePaused pauses a server, writes an object with a number through a client of the others, and counts the lists
// with that number, and those that say that they are older.
func (e *ensemble) listWhilePaused(r *replica, others *client.Client, number int64, current, older *atomic.Int64) {
	e.t.Helper()
	r.pause()
	e.fault.happened()
	written := placement("listed", groupName(0), 1, number)
	written.SetDefaults()
	eventually.True(e.t, "the others accept a write", func() bool {
		_, err := others.Put(e.t.Context(), written, client.PutOptions{})
		return err == nil
	})
	acknowledged := time.Now()
	key := api.KeyOf(written)
	path := strings.TrimSuffix(key.URLPath(), "/"+key.Name)
	list := func() {
		asked := time.Now()
		answer, err := r.ask(http.MethodGet, path, "")
		if err != nil || answer.status != http.StatusOK {
			e.t.Errorf("list: %d %s %v", answer.status, answer.body, err)
			return
		}
		age, err := ageOf(answer.header)
		if err != nil {
			e.t.Errorf("the age of a list: %v", err)
			return
		}
		var all api.List[*api.Placement]
		if err := json.Unmarshal([]byte(answer.body), &all); err != nil {
			e.t.Error(err)
			return
		}
		shows := slices.ContainsFunc(all.Items, func(p *api.Placement) bool { return api.KeyOf(p) == key && numberOf(p) == number })
		switch {
		case shows:
			current.Add(1)
		case asked.Add(-age).After(acknowledged):
			e.t.Errorf("a list without what was acknowledged %s before it says that it is at most %s old", asked.Sub(acknowledged), age)
		default:
			older.Add(1)
		}
	}
	var listing sync.WaitGroup
	for range 4 {
		listing.Go(list)
	}
	time.Sleep(50 * time.Millisecond) //nolint:forbidigo // a stopped server cannot show that a request has arrived
	r.signal(syscall.SIGCONT)
	for range 4 {
		listing.Go(func() {
			for range 8 {
				list()
			}
		})
	}
	listing.Wait()
}
