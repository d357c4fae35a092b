package proxytest

import (
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"testing"
)

// given are the addresses that FreeAddress has returned.
var given sync.Map

// FreeAddress returns an address on which nothing listens, and which nobody else gets: its port is
// below the kernel's range of ephemeral ports.
func FreeAddress(t testing.TB) string {
	t.Helper()
	for range 1000 {
		address := fmt.Sprintf("127.0.0.1:%d", 12_000+rand.IntN(20_000))
		if _, taken := given.LoadOrStore(address, true); taken {
			continue
		}
		if l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", address); err == nil {
			_ = l.Close() // nothing was accepted
			return address
		}
	}
	t.Fatal("no port is free")
	return ""
}
