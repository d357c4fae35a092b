//go:build integration

package integration

import (
	"errors"
	"fmt"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

func TestSecondServerExitsAndNamesTheOwner(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := startServer(t, dir)
	began := time.Now()
	out, err := exec.Command(servertest.Binary(t), "serve", "--data-dir", dir, "--listen", "127.0.0.1:0").CombinedOutput()
	took := time.Since(began)
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 1 {
		t.Fatalf("the second server ended with %v:\n%s", err, out)
	}
	if want := fmt.Sprintf("the data directory %s is in use by process %d", dir, first.cmd.Process.Pid); !strings.Contains(string(out), want) {
		t.Fatalf("got:\n%s\nwant: %s", out, want)
	}
	if took > eventually.Limit {
		t.Fatalf("the exit took %s", took)
	}
	t.Logf("exited after %s", took)
	first.stop()
	startServer(t, dir).stop()
}
