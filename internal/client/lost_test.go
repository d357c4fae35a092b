package client_test

import (
	"errors"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

func givingUp(o *client.Options) { o.GiveUp = true }

// If the token is rejected, the client fails later calls, and calls that wait for their turn, without asking the server
// again.
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
			if _, err := c.Connect(t.Context()); !errors.As(err, &refused) || client.StatusOf(err) != test.status {
				t.Fatalf("Connect() = %v", err)
			}
			var lost *client.LostError
			for range 100 {
				if _, err := c.Get(t.Context(), eastKey); !errors.As(err, &lost) || !strings.Contains(err.Error(), "the token is unknown") {
					t.Fatalf("Get() = %v, want a LostError", err)
				}
			}
			if n := requests.Load(); n != 2 {
				t.Errorf("%d requests, want one to connect and one read", n)
			}
		})
	}
}

// A server that is busy has not rejected the token.
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
	if _, err := c.Connect(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// If a server stops while many calls are in progress, each of them uses up its own retries at most. Later calls are not
// sent.
func TestLostServerFailsLaterCalls(t *testing.T) {
	server := proxytest.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
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
				t.Errorf("a call in progress returned %v", err)
			}
		})
	}
	all.Wait()
	// The server is back, but this run no longer asks it.
	var connections atomic.Int64
	listener, err := net.Listen("tcp", address)
	if err != nil {
		t.Fatal(err)
	}
	back := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler:           http.HandlerFunc(func(http.ResponseWriter, *http.Request) { connections.Add(1) }),
	}
	go func() { _ = back.Serve(listener) }()
	t.Cleanup(func() { _ = back.Close() })
	if _, err := c.Get(t.Context(), eastKey); err == nil || connections.Load() != 0 {
		t.Errorf("a call after the loss returned %v, with %d requests", err, connections.Load())
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
		t.Fatalf("the interrupted request returned %v", err)
	}
	for _, err := range c.List(t.Context(), api.KindCluster, client.ListOptions{}) {
		t.Errorf("another request returned %v", err)
	}
}

// The client tries only once to connect to a server that accepts connections and never responds.
func TestSilentServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var connections atomic.Int64
		c := serveInBubble(t, func(_ http.ResponseWriter, r *http.Request) {
			connections.Add(1)
			<-r.Context().Done()
		}, givingUp, func(o *client.Options) { o.RequestTimeout = 50 * time.Millisecond })
		var unreachable *client.UnreachableError
		if _, err := c.Connect(t.Context()); !errors.As(err, &unreachable) || connections.Load() != 1 {
			t.Errorf("connecting gives %v after %d requests", err, connections.Load())
		}
	})
}

func TestInvalidPort(t *testing.T) {
	for _, endpoint := range []string{"http://localhost:99999", "http://localhost:0", "https://[::1]:65536"} {
		if _, err := client.New(client.Options{Endpoint: endpoint}); err == nil || !strings.Contains(err.Error(), "1 to 65535") {
			t.Errorf("%s: New() = %v", endpoint, err)
		}
	}
}
