//go:build faults

package faults

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// TestFaultKill kills the server repeatedly during many writes, on the same growing directory.
func TestFaultKill(t *testing.T) {
	f := begin(t, 1)
	w := newWorld(t, f, embedded(dataDir(t))...)
	for range rounds(4, 25) {
		w.startWriting()
		w.awaitWrites(20)
		time.Sleep(time.Duration(50+w.random.IntN(1150)) * time.Millisecond) //nolint:forbidigo // the time of the kill is what varies
		w.p().kill()
		f.happened()
		w.stopWriting()
		w.start()
		w.judgeQuickly()
	}
	w.judge()
}

// TestFaultKillDuringFirstStart kills servers during their first start, at times spread over its duration, starting at
// once. Nothing was acknowledged, and the next start must succeed.
func TestFaultKillDuringFirstStart(t *testing.T) {
	f := begin(t, 1)
	r := seeded.Rand(t)
	begun := time.Now()
	whole := launch(t, nil, serverBinary, embedded(dataDir(t))...)
	whole.awaitReady()
	start := time.Since(begun)
	whole.kill()
	n := rounds(12, 200)
	for round := range n {
		dir := dataDir(t)
		p := launch(t, nil, serverBinary, embedded(dir)...)
		if round > 0 {
			time.Sleep(time.Duration((float64(round) + r.Float64()) / float64(n) * float64(start))) //nolint:forbidigo // the time of the kill is what varies
		}
		select {
		case <-p.ready:
			// The start was faster; killing it right afterwards counts, too.
		default:
			f.happened()
		}
		p.kill()
		began := time.Now()
		again := launch(t, nil, serverBinary, embedded(dir)...)
		again.awaitReady()
		if _, err := put(again, placement("first", "g0", 1, 1)); err != nil {
			t.Fatalf("round %d: %v", round, err)
		}
		again.kill()
		if long {
			_ = os.RemoveAll(dir)
		}
		t.Logf("round %d: the next start took %s", round, time.Since(began).Round(time.Millisecond))
	}
}

// TestFaultPowerCut takes the disk away at some time, without the data that the kernel had not written to it, and
// continues with its contents.
func TestFaultPowerCut(t *testing.T) {
	f := begin(t, 2)
	for range rounds(1, 10) {
		image := filepath.Join(t.TempDir(), "disk")
		mount := mountImage(t, image, true)
		w := newWorld(t, f, embedded(filepath.Join(mount, "data"), "--min-free-space", "64Mi")...)
		w.startWriting()
		w.awaitWrites(60)
		w.p().signal(syscall.SIGSTOP) // what is acknowledged now is all
		// What nobody has synced must be lost, or this was no power cut. The server is stopped, and syncs nothing else.
		unsynced := filepath.Join(mount, "unsynced")
		if err := os.WriteFile(unsynced, []byte(strings.Repeat("x", 1<<16)), 0o600); err != nil {
			t.Fatal(err)
		}
		cut := filepath.Join(t.TempDir(), "disk")
		if out, err := exec.Command("cp", "--sparse=always", image, cut).CombinedOutput(); err != nil {
			t.Fatalf("%v: %s", err, out)
		}
		w.p().kill()
		w.stopWriting()
		after := mountImage(t, cut, false)
		if content, err := os.ReadFile(filepath.Join(after, "unsynced")); err == nil && len(content) == 1<<16 {
			t.Error("the disk contains what was never synced: nothing was lost")
		} else {
			f.happened()
		}
		w.args = embedded(filepath.Join(after, "data"), "--min-free-space", "64Mi")
		w.start()
		w.judge()
		w.p().kill()
	}
}

// mountImage mounts a file as a disk, which format formats. Its journal is written rarely, so that unsynced data stays
// in memory.
func mountImage(t testing.TB, image string, format bool) string {
	t.Helper()
	if format {
		if err := exec.Command("truncate", "-s", "600M", image).Run(); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.Command("mkfs.ext4", "-q", "-F", image).CombinedOutput(); err != nil {
			t.Fatalf("create a file system: %v: %s", err, out)
		}
	}
	dir := t.TempDir()
	if out, err := exec.Command("mount", "-o", "loop,commit=600", image, dir).CombinedOutput(); err != nil {
		t.Fatalf("mount a disk: %v: %s", err, out)
	}
	unmountWith(t, dir)
	return dir
}

// unmountWith unmounts at the end of the test.
func unmountWith(t testing.TB, dir string) {
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount %s: %v", dir, err)
		}
	})
}

// TestFaultSecondServer starts a second server on the directory of a running one.
func TestFaultSecondServer(t *testing.T) {
	f := begin(t, 8)
	dir := dataDir(t)
	w := newWorld(t, f, embedded(dir)...)
	w.startWriting()
	for range rounds(3, 20) {
		began := time.Now()
		second := launch(t, nil, serverBinary, embedded(dir)...)
		if code := second.awaitExit(eventually.Limit); code != 1 {
			t.Errorf("the second server exited with %d, want 1", code)
		}
		if want := fmt.Sprintf("is in use by process %d", w.p().cmd.Process.Pid); !second.stderr.Contains(want) {
			t.Errorf("the log does not contain %q:\n%s", want, second.stderr)
		}
		f.happened()
		t.Logf("rejected after %s", time.Since(began).Round(time.Millisecond))
	}
	w.awaitWrites(20)
	w.stopWriting()
	w.judge()
}

// TestFaultTermination stops busy servers as operators do.
func TestFaultTermination(t *testing.T) {
	f := begin(t, 28)
	config := filepath.Join(t.TempDir(), "config.yaml")
	write := func(text string) {
		if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write("log_level: info\n")
	w := newWorld(t, f, embedded(dataDir(t), "--config", config)...)
	for range rounds(2, 20) {
		w.startWriting()
		w.awaitWrites(20)

		// An invalid configuration changes nothing.
		write("log_level: loud\n")
		w.p().signal(syscall.SIGHUP)
		eventually.True(t, "the invalid configuration is rejected", func() bool { return w.p().stderr.Contains("the configuration was not reloaded") })
		f.happened()
		write("log_level: info\n")
		w.awaitWrites(5)

		began := time.Now()
		w.p().signal(syscall.SIGTERM)
		f.happened()
		if code := w.p().awaitExit(eventually.Limit); code != 0 {
			t.Errorf("the server exited with %d", code)
		}
		t.Logf("stopping took %s", time.Since(began).Round(time.Millisecond))
		w.stopWriting()
		w.start()
		w.judgeQuickly()
	}
	// The second signal stops it at once, and loses nothing either.
	w.startWriting()
	w.awaitWrites(10)
	w.p().signal(syscall.SIGTERM)
	w.p().signal(syscall.SIGTERM)
	w.p().awaitExit(eventually.Limit)
	f.happened()
	w.stopWriting()
	w.start()
	w.judge()
}
