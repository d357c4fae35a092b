package outbound

import (
	"context"
	"errors"
	"net"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// TestConnectionsAreLimited checks that all dialers share the slots, that a connection waits for a free slot, and that
// the error says why if there is none in time.
func TestConnectionsAreLimited(t *testing.T) {
	LimitConnections(2)
	mine := process.Load()
	t.Cleanup(func() { process.Store(&slots{}) })
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	dial := func(ctx context.Context) (net.Conn, error) {
		return Dialer(addresspolicy.OnLoopback())(ctx, "tcp", listener.Addr().String())
	}
	first, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	second, err := dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if n := mine.taken.Load(); n != 2 {
		t.Errorf("%d connections counted, want 2", n)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := dial(ended); !errors.Is(err, errNoSlot) || Describe(err) != errNoSlot.Error() {
		t.Errorf("without a slot: %v", err)
	}
	waiting := make(chan error)
	go func() {
		third, err := dial(context.Background())
		if err == nil {
			err = third.Close()
		}
		waiting <- err
	}()
	_ = first.Close()
	_ = first.Close() // does not release the slot twice
	if err := <-waiting; err != nil {
		t.Errorf("third connection: %v", err)
	}
	_ = second.Close()
	if n := mine.taken.Load(); n != 0 {
		t.Errorf("%d connections counted after all were closed", n)
	}
	// A failed attempt releases its slot.
	_ = listener.Close()
	for range 3 {
		if _, err := dial(t.Context()); err == nil || errors.Is(err, errNoSlot) {
			t.Errorf("closed port: %v", err)
		}
	}
}

// TestWaitForASlotEnds checks that waiting for a slot counts against the connection timeout.
func TestWaitForASlotEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		LimitConnections(0)
		defer process.Store(&slots{})
		began := time.Now()
		if _, err := Dialer(addresspolicy.OnLoopback())(t.Context(), "tcp", "127.0.0.1:1"); !errors.Is(err, errNoSlot) || time.Since(began) != dialTimeout {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	})
}
