//go:build integration

package integration

import (
	"bufio"
	"context"
	"errors"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

func TestMain(m *testing.M) {
	servertest.ForgetSettings()
	os.Exit(servertest.Run(m))
}

// process is a server in a separate process.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	url    string
	client *client.Client
	stderr *logtest.Buffer
	exited chan struct{} // closed when the process has exited
}

// startServer starts a server on a data directory and waits until it is ready.
func startServer(t testing.TB, dataDir string, args ...string) *process {
	t.Helper()
	return startCommand(t, append([]string{servertest.Binary(t), "serve", "--data-dir", dataDir, "--listen", "127.0.0.1:0"}, args...)...)
}

// startCommand starts a server with a command and waits until it is ready.
func startCommand(t testing.TB, command ...string) *process {
	t.Helper()
	p := &process{t: t, stderr: &logtest.Buffer{}, exited: make(chan struct{})}
	p.cmd = exec.Command(command[0], command[1:]...)
	p.cmd.Stderr = p.stderr
	// Variables, because a test whose store does not respond sets flags, which take precedence.
	p.cmd.Env = append(os.Environ(), "SCHEDULER_STORE_TIMEOUT="+storetest.Patience.String(), "SCHEDULER_STORE_PATIENCE="+storetest.Patience.String())
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(stdout).ReadString('\n')
	go func() {
		_ = p.cmd.Wait() // its exit code is in ProcessState
		close(p.exited)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of the server's log:\n%s", p.stderr.Tail())
		}
	})
	var found bool
	if p.url, found = strings.CutPrefix(strings.TrimSpace(line), "scheduler-server ready at "); !found {
		t.Fatalf("the server did not become ready (%q, %v):\n%s", line, err, p.stderr.Tail())
	}
	if p.client, err = client.New(client.Options{Endpoint: p.url, MaxRetries: -1}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.client.Close)
	return p
}

// kill ends the process like a power cut.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	<-p.exited
}

// stop ends the process as an operator would.
func (p *process) stop() {
	p.t.Helper()
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	select {
	case <-p.exited:
	case <-time.After(eventually.Limit):
		p.t.Fatalf("the server did not stop within %s", eventually.Limit)
	}
	if code := p.cmd.ProcessState.ExitCode(); code != 0 {
		p.t.Fatalf("the server exited with %d:\n%s", code, p.stderr.Tail())
	}
}

// put writes an object, and repeats the write when the server asks for it: on a busy machine its store may be slow.
func put[T api.Object](p *process, object T) T {
	p.t.Helper()
	object.SetDefaults()
	var stored api.Object
	var err error
	eventually.True(p.t, "a write is answered", func() bool {
		stored, err = p.client.Put(context.Background(), object, client.PutOptions{})
		return client.StatusOf(err) != http.StatusServiceUnavailable
	})
	if err != nil {
		p.t.Fatalf("put %s: %v", api.KeyOf(object), err)
	}
	return stored.(T)
}

func get[T api.Object](p *process, key api.Key) T {
	p.t.Helper()
	object, err := p.client.Get(context.Background(), key)
	if err != nil {
		p.t.Fatalf("get %s: %v", key, err)
	}
	return object.(T)
}

// objects returns all objects by key.
func (p *process) objects() map[api.Key]api.Object {
	p.t.Helper()
	out := map[api.Key]api.Object{}
	for _, info := range api.Kinds {
		for object, err := range p.client.List(context.Background(), info.Kind, client.ListOptions{}) {
			if err != nil {
				p.t.Fatal(err)
			}
			out[api.KeyOf(object)] = object
		}
	}
	return out
}
