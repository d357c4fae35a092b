package proxytest

import (
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strconv"
	"syscall"
	"testing"
)

// FreeAddress returns an address of this machine on which nothing listens. Until the test ends nobody else gets it,
// however often what the test runs there stops and starts.
func FreeAddress(t testing.TB) string {
	t.Helper()
	return FreeAddressOn(t, net.IPv4(127, 0, 0, 1))
}

// FreeAddressOn is FreeAddress on one of the machine's IPv4 addresses.
//
// A socket that is bound to the address, and does not listen, keeps the kernel from handing out its port, to listeners
// and to connections alike. Who asks for this very port can still listen on it, because both sockets have SO_REUSEADDR.
func FreeAddressOn(t testing.TB, ip net.IP) string {
	t.Helper()
	fail := func(call string, err error) {
		t.Helper()
		if err != nil {
			t.Fatal(os.NewSyscallError(call, err))
		}
	}
	socket, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM|syscall.SOCK_CLOEXEC, 0)
	fail("socket", err)
	t.Cleanup(func() { _ = syscall.Close(socket) })
	fail("setsockopt", syscall.SetsockoptInt(socket, syscall.SOL_SOCKET, syscall.SO_REUSEADDR, 1))
	fail("bind", syscall.Bind(socket, &syscall.SockaddrInet4{Addr: [4]byte(ip.To4())}))
	bound, err := syscall.Getsockname(socket)
	fail("getsockname", err)
	given, ok := bound.(*syscall.SockaddrInet4)
	if !ok {
		t.Fatalf("the socket is bound to %#v, want an IPv4 address", bound)
	}
	return net.JoinHostPort(ip.String(), strconv.Itoa(given.Port))
}

// NewServer starts a server whose address stays its own after Close: nobody answers in its place.
func NewServer(t testing.TB, handler http.Handler) *httptest.Server {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", FreeAddress(t))
	if err != nil {
		t.Fatal(err)
	}
	server := httptest.NewUnstartedServer(handler)
	_ = server.Listener.Close()
	server.Listener = listener
	server.Start()
	t.Cleanup(server.Close)
	return server
}
