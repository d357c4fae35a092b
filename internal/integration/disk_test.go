//go:build integration

package integration

import (
	"context"
	"fmt"
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

// mountTmpfs mounts a file system with a size in MiB. It needs root.
func mountTmpfs(t *testing.T, size int) string {
	t.Helper()
	dir := t.TempDir()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", 0, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Fatalf("mount a tmpfs (this test needs root): %v", err)
	}
	t.Cleanup(func() {
		if err := syscall.Unmount(dir, syscall.MNT_DETACH); err != nil {
			t.Errorf("unmount: %v", err)
		}
	})
	return dir
}

func resize(t *testing.T, dir string, size int) {
	t.Helper()
	if err := syscall.Mount("tmpfs", dir, "tmpfs", syscall.MS_REMOUNT, fmt.Sprintf("size=%dm", size)); err != nil {
		t.Fatal(err)
	}
}

// bulky returns a provider of about half a MiB.
func bulky(n int) *api.MetricsProvider {
	values := map[string]float64{}
	for i := range 4000 {
		values[fmt.Sprintf("%s-%d", strings.Repeat("x", 100), i)] = float64(n)
	}
	return staticProvider(fmt.Sprintf("bulky-%d", n), values)
}

func TestFullDisk(t *testing.T) {
	t.Parallel()
	mount := mountTmpfs(t, 320)
	dir := filepath.Join(mount, "data")
	p := startServer(t, dir, "--min-free-space", "96Mi")
	staticFleet(p, 2)
	put(p, placement("web", "static"))
	written := 0
	var err error
	for ; err == nil && written < 2000; written++ {
		object := bulky(written)
		object.SetDefaults()
		_, err = p.client.Put(t.Context(), object, client.PutOptions{})
	}
	written-- // the last one was rejected
	if client.StatusOf(err) != 507 || !strings.Contains(err.Error(), "the store is full") {
		t.Fatalf("after %d writes: %v", written, err)
	}
	eventually.True(t, "the log reports that the disk is full", func() bool {
		return p.stderr.Contains("the disk of the store is almost full")
	})
	t.Logf("507 after %d writes of half a MiB", written)

	// Reads still work.
	check := func(p *process) {
		t.Helper()
		for i := range written {
			want := bulky(i)
			got := get[*api.MetricsProvider](p, api.KeyOf(want))
			if len(got.Spec.Static.Metrics) != len(want.Spec.Static.Metrics) {
				t.Fatalf("%s was acknowledged, but is incomplete", api.KeyOf(want))
			}
		}
		if clusters := get[*api.Placement](p, placementKey("web")).Status.Clusters; len(clusters) != 1 {
			t.Fatalf("clusters %v, want one", clusters)
		}
		if _, err := p.client.Explain(t.Context(), placementKey("web")); err != nil {
			t.Fatal(err)
		}
	}
	check(p)

	// With a disk that is full to the last byte, the server still reads, or exits with the reason.
	ballast, err := os.Create(filepath.Join(mount, "ballast"))
	if err != nil {
		t.Fatal(err)
	}
	block := make([]byte, 1<<20)
	for err == nil {
		_, err = ballast.Write(block)
	}
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
	for range 50 {
		object := placement("more", "static")
		object.SetDefaults()
		if _, err := p.client.Put(t.Context(), object, client.PutOptions{}); client.StatusOf(err) != 507 && p.alive() {
			t.Fatalf("write on the full disk: %v", err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // spread the writes over a second, in which etcd commits
	}
	if p.alive() {
		check(p)
		p.kill()
	} else if code := p.cmd.ProcessState.ExitCode(); code != 70 || !p.stderr.Contains("STORE FAILED: ") {
		t.Fatalf("the server exited with %d, want 70 with the reason", code)
	}

	// With free space again, all acknowledged writes exist, and new writes succeed.
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	resize(t, mount, 700)
	p = startServer(t, dir, "--min-free-space", "96Mi")
	check(p)
	eventually.True(t, "writes are accepted again", func() bool {
		object := placement("more", "static")
		object.SetDefaults()
		_, err := p.client.Put(context.Background(), object, client.PutOptions{})
		return err == nil
	})
	p.stop()
}

func (p *process) alive() bool {
	select {
	case <-p.exited:
		return false
	default:
		return true
	}
}

// fillUp writes until the disk is full.
func fillUp(t *testing.T, path string) {
	t.Helper()
	ballast, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	for block := make([]byte, 1<<20); len(block) > 0; {
		if _, err := ballast.Write(block); err != nil {
			block = block[:len(block)/2]
		}
	}
	if err := ballast.Close(); err != nil {
		t.Fatal(err)
	}
}

// committed waits until etcd has written all acknowledged data to its database, which it does a tenth of a second
// later. If the disk is taken away during that, etcd exits.
func committed(t *testing.T, database string) {
	t.Helper()
	var last time.Time
	eventually.True(t, "the database is written", func() bool {
		info, err := os.Stat(database)
		if err != nil {
			t.Fatal(err)
		}
		before := last
		last = info.ModTime()
		return last.Equal(before) && time.Since(last) > time.Second
	})
}

// Deleting enough objects makes writes possible again, even if the disk does not grow and is full to the last byte.
func TestDeletionsOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		size    int
		args    []string
		ballast bool
	}{
		{"filled by the server", 500, nil, false},
		{"filled to the last byte by other processes", 500, nil, true},
		{"small disk", 320, []string{"--min-free-space", "96Mi"}, false},
		{"small disk, filled to the last byte by other processes", 360, []string{"--min-free-space", "96Mi"}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mount := mountTmpfs(t, c.size)
			dir := filepath.Join(mount, "data")
			p := startServer(t, dir, c.args...)
			staticFleet(p, 2)
			put(p, placement("web", "static"))
			write := func(object api.Object) error {
				object.SetDefaults()
				_, err := p.client.Put(t.Context(), object, client.PutOptions{})
				return err
			}
			written := 0
			for write(bulky(written)) == nil {
				if written++; written > 4000 {
					t.Fatal("the disk does not become full")
				}
			}
			t.Logf("507 after %d writes of half a MiB", written)
			ballast := filepath.Join(mount, "ballast")
			if c.ballast {
				committed(t, filepath.Join(dir, "etcd", "member", "snap", "db"))
				fillUp(t, ballast)
			}
			slowest := time.Duration(0)
			remove := func(key api.Key) {
				t.Helper()
				began := time.Now()
				if err := p.client.Delete(t.Context(), key); err != nil {
					t.Fatalf("delete %s on the full disk: %v\n%s", key, err, p.stderr.Tail())
				}
				slowest = max(slowest, time.Since(began))
			}
			// The resulting decision cannot be written, and the request does not wait for it.
			where := get[*api.Placement](p, placementKey("web")).Status.Clusters
			remove(api.Key{Kind: api.KindCluster, Name: where[0]})
			if slowest > 8*time.Second { // by default, a request waits 10 s for decisions
				t.Errorf("deleting a cluster took %s", slowest)
			}
			remove(placementKey("web"))
			for n := range written {
				remove(api.KeyOf(bulky(n)))
			}
			t.Logf("the slowest deletion took %s", slowest)
			if c.ballast { // the disk has free space again, but not more than before
				if err := os.Remove(ballast); err != nil {
					t.Fatal(err)
				}
			}
			eventually.True(t, "writes are accepted again", func() bool { return write(placement("again", "static")) == nil })
			for n := range written / 2 {
				if err := write(bulky(10_000 + n)); err != nil {
					t.Fatalf("write %d after the deletions: %v", n, err)
				}
			}
			// Acknowledged writes survive a kill.
			p.kill()
			p = startServer(t, dir, c.args...)
			if got := get[*api.Placement](p, placementKey("again")); len(got.Status.Clusters) != 1 {
				t.Errorf("clusters %v, want one", got.Status.Clusters)
			}
			if got := len(p.objects()); got < written/2 {
				t.Errorf("only %d objects left", got)
			}
			p.stop()
		})
	}
}
