package main

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// The tests install and start what is built in file systems of their own, and need root for that.

// patience is how long a test waits for a server.
const patience = 2 * time.Minute

// testRelease is the release that the tests look at, built once.
var testRelease struct {
	once sync.Once
	release
	out string
	err error
}

func TestMain(m *testing.M) {
	for _, variable := range os.Environ() {
		if name, _, _ := strings.Cut(variable, "="); strings.HasPrefix(name, "SCHEDULER_") {
			_ = os.Unsetenv(name) // the name is valid
		}
	}
	code := m.Run()
	if testRelease.binaries != "" {
		_ = os.RemoveAll(filepath.Dir(testRelease.binaries)) // a temporary directory
	}
	os.Exit(code)
}

// built returns the release and the directory of its packages and image.
func built(t *testing.T) (r release, out string) {
	t.Helper()
	testRelease.once.Do(func() {
		dir, err := os.MkdirTemp("", "scheduler-build-test-") //nolint:usetesting // it is used after the first test
		if err != nil {
			testRelease.err = err
			return
		}
		testRelease.release = release{root: "../..", version: "1.2.3", epoch: time.Unix(1_700_000_000, 0).UTC(), binaries: filepath.Join(dir, "binaries")}
		testRelease.out = filepath.Join(dir, "out")
		testRelease.err = errors.Join(os.Mkdir(testRelease.out, 0o755), testRelease.buildBinaries(),
			testRelease.writePackages(testRelease.out), testRelease.writeImage(testRelease.out))
	})
	if testRelease.err != nil {
		t.Fatal(testRelease.err)
	}
	return testRelease.release, testRelease.out
}

// digests returns the SHA-256 of every file in a directory.
func digests(t *testing.T, dir string) map[string]string {
	t.Helper()
	sums := map[string]string{}
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, entry := range entries {
		data, err := os.ReadFile(filepath.Join(dir, entry.Name()))
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.Sum256(data)
		sums[entry.Name()] = hex.EncodeToString(sum[:])
	}
	return sums
}

// Another checkout, somewhere else and at another time, gives the same bytes.
func TestBuildsAreReproducible(t *testing.T) {
	first, out := built(t)
	elsewhere := filepath.Join(t.TempDir(), "another", "checkout")
	copySources(t, first.root, elsewhere)
	second := first
	second.root, second.binaries = elsewhere, filepath.Join(t.TempDir(), "binaries")
	again := t.TempDir()
	if err := errors.Join(second.buildBinaries(), second.writePackages(again), second.writeImage(again)); err != nil {
		t.Fatal(err)
	}
	want, got := digests(t, out), digests(t, again)
	// Two packages and two SBOMs for each architecture, the image and its digest.
	if n := len(architectures)*(len(programs)*len(packageFormats)+1) + 2; len(want) != n || len(got) != n {
		t.Errorf("%d and %d files, want %d", len(want), len(got), n)
	}
	for name, sum := range want {
		if got[name] != sum {
			t.Errorf("%s differs between two builds", name)
		}
	}
}

// copySources copies what is built from.
func copySources(t *testing.T, from, to string) {
	t.Helper()
	err := filepath.WalkDir(from, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		name, err := filepath.Rel(from, path)
		if err != nil {
			return err
		}
		if entry.IsDir() {
			switch name {
			case ".git", "bin", "dist", "data", "ui/node_modules":
				return filepath.SkipDir
			}
			return os.MkdirAll(filepath.Join(to, name), 0o755)
		}
		if !entry.Type().IsRegular() {
			return nil
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		return os.WriteFile(filepath.Join(to, name), data, 0o644)
	})
	if err != nil {
		t.Fatal(err)
	}
}

// address is the address in the line that the server prints when it is ready.
var address = regexp.MustCompile(`http://127\.0\.0\.1:[0-9]+`)

// checkReady starts a server with a script that ends with exec, waits until it answers /readyz, and stops it.
func checkReady(t *testing.T, script string, environment ...string) {
	t.Helper()
	if os.Getuid() != 0 {
		t.Fatal("this test needs root: it starts the server in a file system of its own")
	}
	var log bytes.Buffer
	// In a mount namespace, so that nothing remains mounted. The port is free, not the default.
	server := exec.Command("unshare", "--mount", "--", "sh", "-euc", script)
	server.Env = append(slices.Clone(environment), "PATH="+os.Getenv("PATH"), "SCHEDULER_LISTEN=127.0.0.1:0")
	server.Stderr = &log
	stdout, err := server.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := server.Start(); err != nil {
		t.Fatal(err)
	}
	late := time.AfterFunc(patience, func() { _ = server.Process.Kill() }) // nothing is left to do if it has ended
	defer late.Stop()
	line, _ := bufio.NewReader(stdout).ReadString('\n') // without a line, the server has ended: see below
	endpoint := address.FindString(line)
	if endpoint != "" {
		response, err := http.Get(endpoint + "/readyz")
		if err != nil {
			t.Error(err)
		} else {
			body, _ := io.ReadAll(response.Body) // for the message only
			response.Body.Close()
			if response.StatusCode != http.StatusOK {
				t.Errorf("/readyz: %s: %s", response.Status, body)
			}
		}
		if err := server.Process.Signal(syscall.SIGTERM); err != nil {
			t.Error(err)
		}
	}
	if err := server.Wait(); err != nil || endpoint == "" {
		t.Errorf("the server printed %q and ended with %v:\n%s", line, err, log.String())
	}
}

// shell runs a script and returns its output.
func shell(t *testing.T, script string, args ...string) string {
	t.Helper()
	out, err := exec.Command("sh", append([]string{"-euc", script, "sh"}, args...)...).CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

func TestUnknownArgumentsAreErrors(t *testing.T) {
	for want, args := range map[string][]string{
		"what to build is missing":   nil,
		`unexpected argument "more"`: {"image", "more"},
		"sbom takes a binary":        {"sbom"},
		`"cake" is not one of`:       {"cake"},
	} {
		if err := run(args); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

func thisArchitecture(t *testing.T) string {
	t.Helper()
	for _, arch := range architectures {
		if arch == runtime.GOARCH {
			return arch
		}
	}
	t.Fatalf("nothing is built for %s", runtime.GOARCH)
	return ""
}

// packageFile returns the path of a package.
func packageFile(t *testing.T, out, pattern string) string {
	t.Helper()
	found, err := filepath.Glob(filepath.Join(out, pattern))
	if err != nil || len(found) != 1 {
		t.Fatal(fmt.Sprint("packages ", pattern, ": ", found, err))
	}
	return found[0]
}
