package client_test

import (
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

func givingUp(o *client.Options) { o.GiveUp = true }

// Whoever has no good token is told once: neither the calls that follow nor those
// that wait for their turn ask again.
func TestRefusedLoginFailsLaterCalls(t *testing.T) {
	for _, test := range []struct {
		name   string
		status int
		header string
	}{
		{"unknown token", http.StatusUnauthorized, ""},
		{"too many unknown tokens", http.StatusTooManyRequests, `Bearer realm="scheduler"`},
	} {
		t.Run(test.name, func(t *testing.T) {
			var requests atomic.Int64
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
				requests.Add(1)
				w.Header().Set("Retry-After", "5")
				if test.header != "" {
					w.Header().Set("WWW-Authenticate", test.header)
				}
				problem(w, api.Problem{Status: test.status, Title: "no", Detail: "the token is unknown"})
			}, givingUp)
			var refused *client.LoginError
			if err := c.Connect(t.Context()); !errors.As(err, &refused) || client.StatusOf(err) != test.status {
				t.Fatalf("connecting gives %v", err)
			}
			var lost *client.LostError
			for range 100 {
				if _, err := c.Get(t.Context(), eastKey); !errors.As(err, &lost) || !strings.Contains(err.Error(), "the token is unknown") {
					t.Fatalf("a read gives %v", err)
				}
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("the server had %d requests, expected one to connect and one read", n)
			}
		})
	}
}

// A busy server is not one that refuses the login.
func TestBusyServerIsAskedAgain(t *testing.T) {
	var requests atomic.Int64
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests.Add(1) == 1 {
			w.Header().Set("Retry-After", "0")
			problem(w, api.Problem{Status: http.StatusTooManyRequests, Title: "busy"})
			return
		}
		answer(w, http.StatusOK, map[string]any{})
	}, givingUp)
	if err := c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// A server that goes away while many calls are under way costs each of them its
// own retries at most; what comes later is not sent.
func TestLostServerFailsLaterCalls(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		answer(w, http.StatusOK, east())
	}))
	address := server.Listener.Addr().String()
	c, err := client.New(client.Options{Endpoint: server.URL, MaxRetries: 2, GiveUp: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	if _, err := c.Get(t.Context(), eastKey); err != nil {
		t.Fatal(err)
	}
	server.Close()
	var all sync.WaitGroup
	for range 20 {
		all.Go(func() {
			var lost *client.LostError
			if _, err := c.Get(t.Context(), eastKey); !errors.As(err, &lost) || !strings.Contains(err.Error(), "connection refused") {
				t.Errorf("a call under way gives %v", err)
			}
		})
	}
	all.Wait()
	// It is back, and for this run it does not matter.
	var connections atomic.Int64
	var listener net.Listener
	eventually.True(t, "the port is free: another program's connection may have taken it", func() bool {
		var err error
		listener, err = net.Listen("tcp", address)
		return err == nil
	})
	back := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) { connections.Add(1) }),
	}
	go func() { _ = back.Serve(listener) }()
	t.Cleanup(func() { _ = back.Close() })
	if _, err := c.Get(t.Context(), eastKey); err == nil || connections.Load() != 0 {
		t.Errorf("a call after the loss gives %v and %d requests", err, connections.Load())
	}
}

// One request that breaks off says nothing of the server while that answers others.
func TestBrokenRequestIsNotALoss(t *testing.T) {
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/east") {
			panic(http.ErrAbortHandler)
		}
		answer(w, http.StatusOK, map[string]any{"items": []any{}})
	}, givingUp)
	var lost *client.LostError
	if _, err := c.Get(t.Context(), eastKey); err == nil || errors.As(err, &lost) {
		t.Fatalf("the request that breaks off gives %v", err)
	}
	for _, err := range c.List(t.Context(), api.KindCluster, client.ListOptions{}) {
		t.Errorf("another request gives %v", err)
	}
}

// Connecting to what takes connections and never answers is tried once.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var connections atomic.Int64
		c := serveInBubble(t, func(_ http.ResponseWriter, r *http.Request) {
			connections.Add(1)
			<-r.Context().Done()
		}, givingUp, func(o *client.Options) { o.RequestTimeout = 50 * time.Millisecond })
		var unreachable *client.UnreachableError
		if err := c.Connect(t.Context()); !errors.As(err, &unreachable) || connections.Load() != 1 {
			t.Errorf("connecting gives %v after %d requests", err, connections.Load())
		}
	})
}

func TestInvalidPort(t *testing.T) {
	for _, endpoint := range []string{"http://localhost:99999", "http://localhost:0", "https://[::1]:65536"} {
		if _, err := client.New(client.Options{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), "1 to 65535") {
			t.Errorf("%s gives %v", endpoint, err)
		}
	}
}
