//go:build faults

package faults

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

// process is a server in a separate process.
type process struct {
	t      testing.TB
	cmd    *exec.Cmd
	url    string
	client *client.Client
	stderr *logtest.Buffer
	ready  chan struct{} // closed when it is ready or has exited
	exited chan struct{} // closed when it has exited
}

// launch starts a server without waiting for it. wrap is a command that runs it, such as strace with its arguments, and
// may be empty.
func launch(t testing.TB, wrap []string, binary string, args ...string) *process {
	t.Helper()
	p := &process{t: t, stderr: &logtest.Buffer{}, ready: make(chan struct{}), exited: make(chan struct{})}
	line := append(append([]string{}, wrap...), binary, "serve", "--listen", "127.0.0.1:0")
	line = append(line, args...)
	p.cmd = exec.Command(line[0], line[1:]...)
	p.cmd.Stderr = p.stderr
	p.cmd.WaitDelay = 5 * time.Second // its children may keep its output open
	stdout, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		line, _ := bufio.NewReader(stdout).ReadString('\n') // empty if it exited before
		p.url, _ = strings.CutPrefix(strings.TrimSpace(line), "scheduler-server ready at ")
		if p.url != "" {
			close(p.ready)
		}
		_ = p.cmd.Wait() // its exit code is in ProcessState
		close(p.exited)
		if p.url == "" {
			close(p.ready)
		}
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("the end of the log of %v:\n%s", args, p.stderr.Tail())
		}
	})
	return p
}

// awaitReady waits until the server is ready, and fails the test if it exits instead.
func (p *process) awaitReady() *process {
	p.t.Helper()
	select {
	case <-p.ready:
	case <-time.After(eventually.Limit):
		p.t.Fatalf("the server was not ready within %s:\n%s", eventually.Limit, p.stderr.Tail())
	}
	if p.url == "" {
		p.t.Fatalf("the server exited before it was ready (%v):\n%s", p.cmd.ProcessState, p.stderr.Tail())
	}
	if !strings.HasPrefix(p.url, "http://") {
		return p // the test creates its own client
	}
	var err error
	if p.client, err = client.New(client.Options{Endpoint: p.url, MaxRetries: -1, RequestTimeout: eventually.Limit}); err != nil {
		p.t.Fatal(err)
	}
	p.t.Cleanup(p.client.Close)
	return p
}

// awaitExit waits for the end of the process and returns its exit code.
func (p *process) awaitExit(within time.Duration) int {
	p.t.Helper()
	select {
	case <-p.exited:
	case <-time.After(within):
		p.t.Fatalf("the server did not exit within %s:\n%s", within, p.stderr.Tail())
	}
	return p.cmd.ProcessState.ExitCode()
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// kill ends the process like a power cut.
func (p *process) kill() {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		p.t.Error(err)
	}
	<-p.exited
}

func (p *process) signal(s syscall.Signal) {
	p.t.Helper()
	if err := p.cmd.Process.Signal(s); err != nil {
		p.t.Fatal(err)
	}
}

// pause stops the process until SIGCONT. It returns when every thread has stopped, which takes a
// moment.
func (p *process) pause() {
	p.t.Helper()
	p.signal(syscall.SIGSTOP)
	eventually.True(p.t, "every thread has stopped", func() bool {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", p.cmd.Process.Pid))
		if err != nil || len(threads) == 0 {
			return false
		}
		for _, thread := range threads {
			stat, err := os.ReadFile(thread)
			_, state, _ := strings.Cut(string(stat), ") ") // after the name
			if err != nil || !strings.HasPrefix(state, "T") {
				return false
			}
		}
		return true
	})
}

// stop ends the process as an operator would.
func (p *process) stop() {
	p.t.Helper()
	p.signal(syscall.SIGTERM)
	if code := p.awaitExit(eventually.Limit); code != 0 {
		p.t.Fatalf("the server exited with %d:\n%s", code, p.stderr.Tail())
	}
}

// answer is the response to a plain request.
type answer struct {
	status int
	header http.Header
	body   string
}

// ask sends a request without the client.
func (p *process) ask(method, path, body string) (answer, error) {
	ctx, cancel := context.WithTimeout(context.Background(), eventually.Limit)
	defer cancel()
	r, err := http.NewRequestWithContext(ctx, method, p.url+path, strings.NewReader(body))
	if err != nil {
		return answer{}, err
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Close = true
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer resp.Body.Close()
	text, err := io.ReadAll(resp.Body)
	return answer{resp.StatusCode, resp.Header, string(text)}, err
}

// readiness returns the response of /readyz with its details; the status is 0 if there is none.
func (p *process) readiness() answer {
	a, err := p.ask(http.MethodGet, "/readyz?verbose", "")
	if err != nil {
		return answer{body: err.Error()}
	}
	return a
}

// command runs a command of the server's binary.
func command(args ...string) (output string, code int, err error) {
	cmd := exec.Command(serverBinary, args...)
	out, err := cmd.CombinedOutput()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return string(out), exit.ExitCode(), nil
	}
	return string(out), 0, err
}

// figure returns a value in /metrics.
func (p *process) figure(name string) (float64, error) {
	a, err := p.ask(http.MethodGet, "/metrics", "")
	if err != nil {
		return 0, err
	}
	for line := range strings.Lines(a.body) {
		if rest, ok := strings.CutPrefix(line, name+" "); ok {
			return strconv.ParseFloat(strings.TrimSpace(rest), 64)
		}
	}
	return 0, fmt.Errorf("/metrics has no %s", name)
}
