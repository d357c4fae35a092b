// Package servertest starts scheduling servers as processes, for tests of what talks to them.
package servertest

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// Variable names an existing server binary, which is used instead of building one.
const Variable = "SCHEDULER_TEST_SERVER"

// serverPackage is what is built.
const serverPackage = "github.com/scheduler/terraform-provider-scheduler/server"

// built is the server's binary, built once for all tests.
var built struct {
	once      sync.Once
	dir, path string
	err       error
}

// ForgetSettings removes the settings of a server on the developer's machine from the environment. What
// the tests need of it stays.
func ForgetSettings() {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "SCHEDULER_") && !strings.HasPrefix(name, "SCHEDULER_TESTBED") && name != Variable {
			_ = os.Unsetenv(name) // the name is valid
		}
	}
}

// Run runs the tests of a package and removes what was built for them. It returns the exit code.
func Run(m *testing.M) int {
	code := m.Run()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir) // a temporary directory; errors do not matter
	}
	return code
}

// Binary returns the path of the server's binary. Packages that call it end with Run.
func Binary(t testing.TB) string {
	t.Helper()
	built.once.Do(func() {
		if built.path = os.Getenv(Variable); built.path != "" {
			_, built.err = os.Stat(built.path) // so that go test repeats the tests when the file changes
			return
		}
		//nolint:usetesting // it is used after the end of the first test
		if built.dir, built.err = os.MkdirTemp("", "scheduler-servertest-"); built.err != nil {
			return
		}
		built.path = filepath.Join(built.dir, "scheduler-server")
		build := exec.Command("go", "build", "-o", built.path, serverPackage) //nolint:gosec,noctx // test code
		if out, err := build.CombinedOutput(); err != nil {
			built.err = fmt.Errorf("go build %s: %w\n%s", serverPackage, err, out)
		}
	})
	if built.err != nil {
		t.Fatal(built.err)
	}
	return built.path
}

var address = regexp.MustCompile(`https?://[^\s"]+`)

// Start starts a server with an empty store for one test, and returns its address. The test fails
// if the server does not stop cleanly.
func Start(t testing.TB, args ...string) string {
	t.Helper()
	args = append([]string{"serve", "--data-dir", t.TempDir(), "--listen", "127.0.0.1:0"}, args...)
	server := exec.Command(Binary(t), args...) //nolint:gosec,noctx // test code
	server.Env = append(os.Environ(), "SCHEDULER_STORE_TIMEOUT="+eventually.Limit.String(), "SCHEDULER_STORE_PATIENCE="+eventually.Limit.String())
	var log strings.Builder
	server.Stderr = &log
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	lines := make(chan string, 1)
	read := make(chan struct{})
	go func() {
		defer close(read)
		scanner := bufio.NewScanner(stdout)
		if scanner.Scan() {
			lines <- scanner.Text()
		}
		close(lines)
		for scanner.Scan() { //nolint:revive // discards the rest of the output
		}
	}()
	t.Cleanup(func() {
		if err := server.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
			t.Error(err)
		}
		<-read
		if err := server.Wait(); err != nil {
			t.Errorf("the server ended with %v; its log:\n%s", err, log.String())
		}
	})
	select {
	case line := <-lines:
		if endpoint := address.FindString(line); endpoint != "" {
			return endpoint
		}
		t.Fatalf("the server's first line %q has no address; its log:\n%s", line, log.String())
	case <-time.After(eventually.Limit):
		t.Fatalf("the server was not ready within %s; its log:\n%s", eventually.Limit, log.String())
	}
	return ""
}
