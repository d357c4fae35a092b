//go:build integration

package integration

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// TestStopIsOrderly stops a server with waiting requests and a write in progress.
func TestStopIsOrderly(t *testing.T) {
	t.Parallel()
	p := startServer(t, t.TempDir(), "--drain-time", "1h") // longer than stop waits
	staticFleet(p, 2)
	web := put(p, placement("web", "static"))
	ended := make(chan error, 2)
	requests := p.figure(t, "scheduler_http_requests_in_flight")
	go func() {
		_, err := p.client.GetNewer(context.Background(), placementKey("web"), web.Metadata.ResourceVersion, time.Minute)
		ended <- err
	}()
	eventually.True(t, "the long poll is waiting", func() bool { return p.figure(t, "scheduler_http_requests_in_flight") > requests })
	go func() {
		for _, err := range p.client.Watch(context.Background(), "", api.KindPlacement) {
			if err != nil {
				ended <- nil // the stream ended, as it should
				return
			}
		}
	}()
	eventually.True(t, "the watch is open", func() bool { return p.figure(t, "scheduler_http_watchers") > 0 })
	p.stop()
	for range 2 {
		var problem *api.Problem
		var unreachable *client.UnreachableError
		if err := <-ended; err != nil && !errors.As(err, &problem) && !errors.As(err, &unreachable) {
			t.Errorf("a waiting request got %v", err)
		}
	}
}

// TestSecondSignalEndsAtOnce stops a server that a slow client delays.
func TestSecondSignalEndsAtOnce(t *testing.T) {
	t.Parallel()
	p := startServer(t, t.TempDir(), "--drain-time", "1h")
	requests := p.figure(t, "scheduler_http_requests_in_flight")
	body, slow := io.Pipe()
	defer slow.Close()
	go func() {
		r, err := http.NewRequestWithContext(context.Background(), http.MethodPut, p.url+"/v1/clusters/x", body)
		if err != nil {
			return
		}
		if resp, err := http.DefaultClient.Do(r); err == nil {
			resp.Body.Close()
		}
	}()
	if _, err := slow.Write([]byte(`{"kind":`)); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the request is in progress", func() bool { return p.figure(t, "scheduler_http_requests_in_flight") > requests })
	signal := func() {
		if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Fatal(err)
		}
	}
	signal()
	eventually.True(t, "the server is stopping", func() bool {
		conn, err := net.Dial("tcp", strings.TrimPrefix(p.url, "http://"))
		if err == nil {
			_ = conn.Close()
		}
		return err != nil
	})
	if !p.alive() {
		t.Fatal("the server did not wait for the request")
	}
	// The listener is closed shortly before the next signal has its usual effect.
	eventually.True(t, "the server has exited", func() bool {
		signal()
		return !p.alive()
	})
	if p.cmd.ProcessState.ExitCode() == 0 {
		t.Error("exit code 0 after a second signal, want another one")
	}
}

func TestHangupReadsTheLogLevelAgain(t *testing.T) {
	t.Parallel()
	config := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log_level: info\n")
	p := startServer(t, t.TempDir(), "--config", config)
	hangup := func(answer string) {
		if err := p.cmd.Process.Signal(syscall.SIGHUP); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, answer, func() bool { return p.stderr.Contains(answer) })
	}
	write("log_level: loud\n")
	hangup("the configuration was not reloaded")
	write("log_level: debug\n")
	hangup("the configuration was reloaded")
	put(p, cluster("x", "static"))
	eventually.True(t, "requests are logged", func() bool { return p.stderr.Contains("level=DEBUG msg=request") })
	p.stop()
}
