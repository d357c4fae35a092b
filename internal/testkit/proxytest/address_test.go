package proxytest

import (
	"errors"
	"net"
	"net/http"
	"syscall"
	"testing"
)

// An address is refused while nothing listens on it, can be listened on again and again, and is not given to anybody
// who asks for any port.
func TestFreeAddress(t *testing.T) {
	address := FreeAddress(t)
	for range 3 {
		if c, err := net.Dial("tcp", address); !errors.Is(err, syscall.ECONNREFUSED) {
			t.Fatalf("a connection while nothing listens: %v, %v", c, err)
		}
		listener, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := net.Listen("tcp", address); !errors.Is(err, syscall.EADDRINUSE) {
			t.Errorf("a second listener: %v", err)
		}
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		for _, end := range []interface{ Close() error }{c, listener} {
			if err := end.Close(); err != nil {
				t.Error(err)
			}
		}
	}
}

// All ports that are handed out at once are different ones: those of addresses, of listeners and of connections.
func TestFreeAddressesAreNobodyElses(t *testing.T) {
	taken := map[string]bool{}
	take := func(what, address string) {
		if taken[address] {
			t.Errorf("the %s got %s, which is taken", what, address)
		}
		taken[address] = true
	}
	s := NewServer(t, http.NotFoundHandler())
	for range 500 {
		take("address", FreeAddress(t))
		listener, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = listener.Close() })
		take("listener", listener.Addr().String())
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		take("connection", c.LocalAddr().String())
	}
}
