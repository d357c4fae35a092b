//go:build faults

package faults

import (
	"errors"
	"flag"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// The environment of a run. Make sets the round; the seed is printed and can be
// given again.
const (
	roundVariable  = "FAULTS_ROUND"
	seedVariable   = "FAULTS_SEED"
	insideVariable = "FAULTS_INSIDE"
	etcdVariable   = "FAULTS_ETCD"
)

var (
	// serverBinary is the server as it is released: SCHEDULER_TEST_SERVER names one
	// that has been built, by make.
	serverBinary = os.Getenv("SCHEDULER_TEST_SERVER")
	// buildDir is where binaries are built; it goes with the run.
	buildDir string
	seed     uint64
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

// enclose runs the tests in a process of their own that is the first one of a
// process namespace and has mounts of its own: whatever way it ends, the kernel
// ends every process that it started, and undoes every mount.
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
	fmt.Printf("round %s; to repeat: %s=%d\n", map[bool]string{false: "short", true: "long"}[long], seedVariable, seed)
	return m.Run()
}

func prepare() error {
	// What the developer has set for a server of their own.
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "SCHEDULER_") && !strings.HasPrefix(name, "SCHEDULER_TESTBED") {
			_ = os.Unsetenv(name) // the name is a valid one
		}
	}
	switch round := os.Getenv(roundVariable); round {
	case "", "short":
	case "long":
		long = true
	default:
		return fmt.Errorf("%s: %q is neither short nor long", roundVariable, round)
	}
	seed = rand.Uint64()
	if text := os.Getenv(seedVariable); text != "" {
		var err error
		if seed, err = strconv.ParseUint(text, 10, 64); err != nil {
			return fmt.Errorf("%s: %w", seedVariable, err)
		}
	}
	// Nothing that is mounted here may be seen outside, and /proc must show the
	// processes of this namespace.
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
		serverBinary, err = build("scheduler-server", "../server", nil)
	}
	return err
}

// build builds a program; overlay are the source files that are others than
// those in the repository, by their path.
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

// random gives every test numbers of its own, which depend on nothing but the
// seed.
func random(t testing.TB) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(t.Name()))
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

// rounds is how often something is repeated.
func rounds(short, inLong int) int {
	if long {
		return inLong
	}
	return short
}
