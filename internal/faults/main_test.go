//go:build faults

package faults

import (
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

// The environment of a run. Make sets the round.
const (
	roundVariable  = "FAULTS_ROUND"
	insideVariable = "FAULTS_INSIDE"
	etcdVariable   = "FAULTS_ETCD"
)

var (
	// serverBinary is the released server: SCHEDULER_TEST_SERVER can name one that make has built.
	serverBinary = os.Getenv("SCHEDULER_TEST_SERVER")
	// buildDir is where binaries are built. It is removed at the end of the run.
	buildDir string
	long     bool
)

func TestMain(m *testing.M) {
	switch {
	case os.Getenv(etcdVariable) != "":
		os.Exit(etcdMain(os.Getenv(etcdVariable)))
	case os.Getenv(insideVariable) == "":
		os.Exit(enclose())
	}
	os.Exit(buildAndRun(m))
}

// enclose runs the tests in a separate process, which is the first one in its own process and mount namespaces. However
// it ends, the kernel ends all processes and mounts that it started.
func enclose() int {
	inside := exec.Command(os.Args[0], os.Args[1:]...)
	inside.Stdin, inside.Stdout, inside.Stderr = os.Stdin, os.Stdout, os.Stderr
	inside.Env = append(os.Environ(), insideVariable+"=1")
	inside.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWPID | syscall.CLONE_NEWNS, Pdeathsig: syscall.SIGKILL}
	err := inside.Run()
	var exit *exec.ExitError
	switch {
	case err == nil:
		return 0
	case errors.As(err, &exit) && exit.ExitCode() > 0:
		return exit.ExitCode()
	}
	fmt.Fprintln(os.Stderr, "the faults need root, to have mounts and processes of their own:", err)
	return 1
}

func buildAndRun(m *testing.M) int {
	flag.Parse()
	if err := prepare(); err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(buildDir)
	fmt.Printf("round %s\n", map[bool]string{false: "short", true: "long"}[long])
	return m.Run()
}

func prepare() error {
	servertest.ForgetSettings()
	switch round := os.Getenv(roundVariable); round {
	case "", "short":
	case "long":
		long = true
	default:
		return fmt.Errorf("%s: %q is neither short nor long", roundVariable, round)
	}
	// Mounts must not be visible outside, and /proc must show the processes of this namespace.
	if err := syscall.Mount("", "/", "", syscall.MS_REC|syscall.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("keep the mounts apart: %w", err)
	}
	if err := syscall.Mount("proc", "/proc", "proc", 0, ""); err != nil {
		return fmt.Errorf("mount /proc: %w", err)
	}
	var err error
	if buildDir, err = os.MkdirTemp("", "scheduler-faults-"); err != nil {
		return err
	}
	if serverBinary == "" {
		serverBinary, err = build("scheduler-server", "../../server", nil)
	}
	return err
}

// build builds a program. overlay replaces source files of the repository, by path.
func build(name, pkg string, overlay map[string]string, flags ...string) (string, error) {
	binary := filepath.Join(buildDir, name)
	args := append([]string{"build", "-trimpath", "-o", binary}, flags...)
	if overlay != nil {
		path, err := writeOverlay(name, overlay)
		if err != nil {
			return "", err
		}
		args = append(args, "-overlay", path)
	}
	if out, err := exec.Command("go", append(args, pkg)...).CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build %s: %w\n%s", pkg, err, out)
	}
	return binary, nil
}

// rounds returns the number of repetitions.
func rounds(short, inLong int) int {
	if long {
		return inLong
	}
	return short
}
