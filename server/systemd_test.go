package main

import (
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

func TestSystemdLearnsTheState(t *testing.T) {
	// The path of a socket must be short.
	dir, err := os.MkdirTemp("", "systemd") //nolint:usetesting // as above
	if err != nil {
		t.Fatal(err)
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "notify")
	socket, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: path, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer socket.Close()
	receive := func() string {
		t.Helper()
		if err := socket.SetReadDeadline(time.Now().Add(eventually.Limit)); err != nil {
			t.Fatal(err)
		}
		message := make([]byte, 1024)
		n, err := socket.Read(message)
		if err != nil {
			t.Fatalf("no message: %v", err)
		}
		return string(message[:n])
	}
	t.Setenv("NOTIFY_SOCKET", path)

	slow := beginStarting(slog.New(slog.DiscardHandler))
	slow.doing("loading the objects")
	slow.say()
	slow.end()
	const extended = "\nEXTEND_TIMEOUT_USEC=30000000"
	if got, want := receive(), "STATUS=loading the objects"+extended; got != want {
		t.Errorf("during a slow start: %q, want %q", got, want)
	}

	c := testConfig(t.TempDir())
	c.DrainTime = 5 * time.Minute
	s := start(t, c)
	got := receive()
	for strings.HasSuffix(got, extended) { // the machine is busy
		got = receive()
	}
	if want := "READY=1\nSTATUS=ready"; got != want {
		t.Errorf("when ready: %q, want %q", got, want)
	}
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if got, want := receive(), "STOPPING=1\nSTATUS=stopping\nEXTEND_TIMEOUT_USEC=330000000"; got != want {
		t.Errorf("when it stops: %q, want %q", got, want)
	}
}
