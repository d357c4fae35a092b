//go:build faults

package faults

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// mountTmpfs mounts an in-memory file system with options such as size=300m.
func mountTmpfs(t testing.TB, options string) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, options); err != nil {
		t.Fatalf("mount a tmpfs: %v", err)
	}
	unmountWith(t, dir)
	return dir
}

// ballast fills a file system until leave bytes are left, and returns a function that frees them.
func ballast(t testing.TB, dir string, leave int64) (free func()) {
	t.Helper()
	file, err := os.CreateTemp(dir, "ballast-*")
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for {
		var stat syscall.Statfs_t
		if err := syscall.Statfs(dir, &stat); err != nil {
			t.Fatal(err)
		}
		left := int64(stat.Bavail)*stat.Bsize - leave
		if left <= 0 {
			break
		}
		if _, err := file.Write(block[:min(left, int64(len(block)))]); err != nil {
			break // full to the last byte
		}
	}
	if err := file.Close(); err != nil && !errors.Is(err, syscall.ENOSPC) {
		t.Fatal(err)
	}
	return func() {
		if err := os.Remove(file.Name()); err != nil {
			t.Fatal(err)
		}
	}
}

// extra writes a new placement that does not belong to the writers.
func extra(w *world, name string) error {
	object := placement(name, "g0", 1, 0)
	object.Metadata.Labels["extra"] = fmt.Sprint(w.number.Add(1))
	_, err := put(w.p(), object)
	return err
}

// readsWork fails the test if an acknowledged object cannot be read.
func (w *world) readsWork() {
	w.t.Helper()
	there, err := objects(w.p())
	if err != nil {
		w.t.Fatalf("reads fail: %v", err)
	}
	if err := oracleAcknowledged(w.ledger, there); err != nil {
		w.t.Errorf("reads return wrong data: %v", err)
	}
}

// TestFaultDiskFull fills the disk beyond the store's reserve, and then to the last byte.
func TestFaultDiskFull(t *testing.T) {
	f := begin(t, 4)
	mount := mountTmpfs(t, "size=400m")
	w := newWorld(t, f, embedded(filepath.Join(mount, "data"), "--min-free-space", "96Mi")...)
	if err := extra(w, "spare"); err != nil {
		t.Fatal(err)
	}
	for range rounds(1, 10) {
		w.startWriting()
		w.awaitWrites(20)
		free := ballast(t, mount, 80<<20)
		eventually.True(t, "writes are rejected with 507", func() bool { return client.StatusOf(extra(w, "more")) == 507 })
		f.happened()
		w.stopWriting()
		w.readsWork()
		eventually.True(t, "/readyz says that writes do not work", func() bool { return w.p().readiness().status == 503 })
		// To the last byte: the server still reads, or exits with the reason.
		freeToo := ballast(t, mount, 0)
		for range 30 {
			if err := extra(w, "more"); err == nil {
				t.Error("a write on a full disk was acknowledged")
			}
			time.Sleep(20 * time.Millisecond) //nolint:forbidigo // spread the writes over a second, in which etcd commits
		}
		if w.p().alive() {
			w.readsWork()
		} else if code := w.p().awaitExit(eventually.Limit); code != 70 || !w.p().stderr.Contains("STORE FAILED: ") {
			t.Errorf("the server exited with %d, want 70 with the reason", code)
		}
		f.happened()
		w.p().kill()
		full := launch(t, nil, serverBinary, w.args...)
		select {
		case <-full.ready:
		case <-time.After(eventually.Limit):
			t.Error("a start on a full disk neither succeeds nor fails")
		}
		if full.url == "" && !full.stderr.Contains("free") {
			t.Errorf("a start on a full disk does not report the reason:\n%s", full.stderr)
		}
		full.kill()

		freeToo()
		free()
		w.start()
		eventually.True(t, "writes are accepted again", func() bool { return extra(w, "more") == nil })
		w.judgeQuickly()
	}
	w.judge()
}

// TestFaultInodes uses up the inodes: new files cannot be created, existing ones can be written.
func TestFaultInodes(t *testing.T) {
	f := begin(t, 5)
	mount := mountTmpfs(t, "size=600m,nr_inodes=64")
	w := newWorld(t, f, embedded(filepath.Join(mount, "data"))...)
	var files []string
	for {
		name := filepath.Join(mount, fmt.Sprintf("file-%d", len(files)))
		if err := os.WriteFile(name, nil, 0o600); errors.Is(err, syscall.ENOSPC) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		files = append(files, name)
	}
	f.happened()
	// The store creates a new file every thousand writes.
	w.startWriting()
	want := w.ledger.count() + 1500
	eventually.True(t, "1500 writes, or the end of the server", func() bool { return w.ledger.count() > want || !w.p().alive() })
	w.stopWriting()
	if !w.p().alive() {
		if code := w.p().awaitExit(eventually.Limit); code != 70 || !w.p().stderr.Contains("STORE FAILED: ") {
			t.Errorf("the server exited with %d, want 70 with the reason", code)
		}
	}
	w.p().kill()
	full := launch(t, nil, serverBinary, w.args...)
	select {
	case <-full.ready:
	case <-time.After(eventually.Limit):
		t.Error("a start without inodes neither succeeds nor fails")
	}
	if full.url == "" && !full.stderr.Contains("no space left on device") {
		t.Errorf("a start without inodes does not report the reason:\n%s", full.stderr)
	}
	full.kill()
	for _, name := range files {
		if err := os.Remove(name); err != nil {
			t.Fatal(err)
		}
	}
	w.start()
	w.judge()
}

// TestFaultReadOnly makes the kernel remount the file system read-only under a running server, as it does after a disk
// error.
func TestFaultReadOnly(t *testing.T) {
	f := begin(t, 5)
	image := filepath.Join(t.TempDir(), "disk")
	mount := mountImage(t, image, true)
	dir := filepath.Join(mount, "data")
	w := newWorld(t, f, embedded(dir, "--min-free-space", "64Mi")...)
	w.startWriting()
	w.awaitWrites(40)
	if out, err := exec.Command("mount", "-o", "remount,abort", mount).CombinedOutput(); err != nil {
		t.Logf("mount returned %v: %s", err, out) // only the effect counts
	}
	if err := os.WriteFile(filepath.Join(mount, "probe"), nil, 0o600); !errors.Is(err, syscall.EROFS) {
		t.Fatalf("the file system is not read-only: %v", err)
	}
	f.happened()
	if code := w.p().awaitExit(eventually.Limit); code != 70 || !w.p().stderr.Contains("STORE FAILED: ") {
		t.Errorf("the server exited with %d, want 70 with the reason", code)
	}
	w.stopWriting()
	again := launch(t, nil, serverBinary, w.args...)
	if code := again.awaitExit(eventually.Limit); code == 0 || !again.stderr.Contains("read-only file system") {
		t.Errorf("a start on a read-only file system exited with %d:\n%s", code, again.stderr)
	}
	if err := syscall.Unmount(mount, 0); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("mount", "-o", "loop", image, mount).CombinedOutput(); err != nil {
		t.Fatalf("mount again: %v: %s", err, out)
	}
	w.start()
	w.judge()
	w.p().kill()
}

// tracer is an strace that changes the results of a server's system calls.
type tracer struct {
	t   testing.TB
	cmd *exec.Cmd
	out string
	log logtest.Buffer
}

// inject attaches to a running server: call is the system call, what is the rest of -e inject=, such as
// "error=EIO:when=50".
func inject(t testing.TB, p *process, call, what string) *tracer {
	t.Helper()
	x := &tracer{t: t, out: filepath.Join(t.TempDir(), "strace")}
	x.cmd = exec.Command("strace", "-f", "-p", fmt.Sprint(p.cmd.Process.Pid), "-o", x.out, "-e", "trace="+call, "-e", "inject="+call+":"+what)
	x.cmd.Stderr = &x.log
	if err := x.cmd.Start(); err != nil {
		t.Fatalf("strace is required: %v", err)
	}
	t.Cleanup(x.stop)
	eventually.True(t, "strace is attached", func() bool { return x.log.Contains("attached") })
	return x
}

func (x *tracer) stop() {
	if x.cmd.ProcessState == nil {
		_ = x.cmd.Process.Signal(syscall.SIGTERM) // it may have ended with the server
		_ = x.cmd.Wait()
	}
}

// count returns the number of changed calls so far.
func (x *tracer) count() int {
	text, err := os.ReadFile(x.out)
	if err != nil {
		return 0
	}
	return strings.Count(string(text), "INJECTED") + strings.Count(string(text), "DELAYED")
}

// TestFaultSyncFails makes fdatasync fail once: the contents of the disk are then unknown, so the sync must not be
// repeated.
func TestFaultSyncFails(t *testing.T) {
	f := begin(t, 5)
	w := newWorld(t, f, embedded(dataDir(t))...)
	for range rounds(1, 20) {
		w.startWriting()
		x := inject(t, w.p(), "fdatasync", fmt.Sprintf("error=EIO:when=%d", 10+w.random.IntN(60)))
		code := w.p().awaitExit(eventually.Limit)
		w.stopWriting()
		x.stop()
		if x.count() != 1 {
			t.Fatalf("%d calls failed, want 1", x.count())
		}
		f.happened()
		if code != 70 || !w.p().stderr.Contains("STORE FAILED: ") || !w.p().stderr.Contains("input/output error") {
			t.Errorf("the server exited with %d, want 70 with the reason:\n%s", code, w.p().stderr.Tail())
		}
		w.start()
		w.judgeQuickly()
	}
	w.judge()
}

// TestFaultErrorWhileStarting makes file system calls fail during a start, the first or a later one: the server exits
// with a message, and the next start succeeds.
func TestFaultErrorWhileStarting(t *testing.T) {
	f := begin(t, 5)
	r := seeded.Rand(t)
	used := dataDir(t)
	w := newWorld(t, f, embedded(used)...)
	w.p().kill()
	for round := range rounds(6, 60) {
		dir := dataDir(t)
		if round%2 == 1 {
			dir = used
		}
		call := []string{"fdatasync", "fsync", "pwrite64"}[r.IntN(3)]
		out := filepath.Join(t.TempDir(), "strace")
		began := time.Now()
		p := launch(t, []string{"strace", "-f", "-o", out, "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:error=EIO:when=%d", call, 1+r.IntN(4))}, serverBinary, embedded(dir)...)
		select {
		case <-p.ready:
		case <-time.After(eventually.Limit):
			t.Fatalf("round %d: after an error of %s, the start neither succeeds nor fails:\n%s", round, call, p.stderr.Tail())
		}
		text, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if strings.Contains(string(text), "INJECTED") {
			f.happened()
			if p.url == "" {
				said := p.stderr.String()
				// For the directory of its new log, etcd does not keep the cause.
				cause := strings.Contains(said, "input/output error") || strings.Contains(said, "failed to fsync the parent data directory")
				if !cause || strings.Contains(said, "goroutine ") {
					t.Errorf("round %d: after an error of %s, the start reported:\n%s", round, call, said)
				}
				t.Logf("round %d: %s failed, the start failed after %s", round, call, time.Since(began).Round(time.Millisecond))
			}
		}
		endTraced(p)
		again := launch(t, nil, serverBinary, embedded(dir)...).awaitReady()
		again.kill()
	}
	w.start()
	w.judge()
}

// endTraced stops a server that runs under strace: the process's child.
func endTraced(p *process) {
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/children", p.cmd.Process.Pid, p.cmd.Process.Pid))
	if err == nil {
		var pid int
		if _, err := fmt.Sscan(string(children), &pid); err == nil {
			_ = syscall.Kill(pid, syscall.SIGKILL) // it may have ended
		}
	}
	p.kill()
}

// TestFaultSlowDisk makes every sync slow, and then so slow that writes stall.
func TestFaultSlowDisk(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 6)
	w := newWorld(t, f, embedded(dataDir(t))...)
	w.startWriting()
	x := inject(t, w.p(), "fdatasync", "delay_enter=200000")
	w.awaitWrites(int64(rounds(30, 600)))
	eventually.True(t, "/readyz says that writes work on a slow disk", func() bool { return w.p().readiness().status == 200 })
	x.stop()
	if x.count() == 0 {
		t.Fatal("no call was slow")
	}
	f.happened()

	x = inject(t, w.p(), "fdatasync", "delay_enter=9000000")
	eventually.True(t, "/readyz reports that writes fail", func() bool { return w.p().readiness().status == 503 })
	w.readsWorkMeanwhile()
	eventually.True(t, "a call has stalled", func() bool { return x.count() > 0 })
	x.stop()
	f.happened()
	eventually.True(t, "writes succeed again", func() bool { return w.p().readiness().status == 200 })
	w.awaitWrites(20)
	w.stopWriting()
	w.judge()
}

// readsWorkMeanwhile checks that objects can be read while others are written.
func (w *world) readsWorkMeanwhile() {
	w.t.Helper()
	began := time.Now()
	if _, err := objects(w.p()); err != nil {
		w.t.Errorf("reads fail: %v", err)
	}
	w.t.Logf("reading everything took %s", time.Since(began).Round(time.Millisecond))
}

// bulky returns a provider of about half a MiB.
func bulky(n int) *api.MetricsProvider {
	values := map[string]float64{}
	for i := range 4000 {
		values[fmt.Sprintf("%s-%d", strings.Repeat("x", 100), i)] = float64(n)
	}
	return &api.MetricsProvider{
		Metadata: api.Metadata{Name: fmt.Sprintf("bulky-%d", n)},
		Spec:     api.MetricsProviderSpec{Type: api.ProviderStatic, Static: &api.StaticSpec{Metrics: values}},
	}
}

// TestFaultQuota exhausts the quota of the store. Deletions free space again.
func TestFaultQuota(t *testing.T) {
	f := begin(t, 7)
	w := newWorld(t, f, embedded(dataDir(t), "--quota", "32Mi", "--keep-revisions", "1s")...)
	for range rounds(1, 5) {
		w.startWriting()
		n := 0
		var err error
		for ; err == nil && n < 500; n++ {
			_, err = put(w.p(), bulky(n))
		}
		if client.StatusOf(err) != 507 {
			t.Fatalf("after %d writes of half a MiB: %v", n, err)
		}
		f.happened()
		w.stopWriting()
		w.readsWork()
		for i := range n {
			key := api.KeyOf(bulky(i))
			eventually.True(t, "deletes succeed, and free space", func() bool {
				err := w.p().client.Delete(t.Context(), key)
				return err == nil || client.IsNotFound(err)
			})
		}
		eventually.True(t, "writes are accepted again", func() bool { return extra(w, "more") == nil })
		w.judgeQuickly()
	}
	w.judge()
}
