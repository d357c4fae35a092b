package client_test

import (
	"errors"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// resetting resets the connections for which reset says so, by their number.
type resetting struct {
	net.Listener
	accepted atomic.Int64
	reset    func(n int64) bool
}

func (l *resetting) Accept() (net.Conn, error) {
	for {
		conn, err := l.Listener.Accept()
		if err != nil || !l.reset(l.accepted.Add(1)) {
			return conn, err
		}
		if tcp, ok := conn.(*net.TCPConn); ok {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

func flaky(t *testing.T, reset func(n int64) bool, change ...func(*client.Options)) *client.Client {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	server := &http.Server{
		ReadHeaderTimeout: time.Minute,
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("Connection", "close")
			answer(w, http.StatusOK, map[string]any{"items": []any{}})
		}),
	}
	go func() { _ = server.Serve(&resetting{Listener: listener, reset: reset}) }()
	t.Cleanup(func() { _ = server.Close() })
	opts := client.Options{Endpoint: "http://" + listener.Addr().String(), GiveUp: true}
	for _, c := range change {
		c(&opts)
	}
	c, err := client.New(opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	return c
}

// A connection that is reset is no reason to give up: the check repeats like every other read.
func TestConnectOverAFlakyNetwork(t *testing.T) {
	for _, resets := range []int64{1, 2} {
		c := flaky(t, func(n int64) bool { return n <= resets })
		if _, err := c.Connect(t.Context()); err != nil {
			t.Errorf("after %d connections that were reset: %v", resets, err)
		}
	}
}

// Nor is the server lost if the connection of the last check is reset as well.
func TestLossOverAFlakyNetwork(t *testing.T) {
	c := flaky(t, func(n int64) bool { return n <= 3 }, func(o *client.Options) { o.MaxRetries = 1 })
	var lost *client.LostError
	for _, err := range c.List(t.Context(), api.KindCluster, client.ListOptions{}) {
		if err != nil && errors.As(err, &lost) {
			t.Errorf("the server is lost: %v", err)
		}
	}
}
