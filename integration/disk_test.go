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
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// mountTmpfs makes a file system of a size in MiB. It needs root.
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

// bulky is a provider of about half a MiB.
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
	written-- // the last one was refused
	if client.StatusOf(err) != 507 || !strings.Contains(err.Error(), "the store is full") {
		t.Fatalf("after %d writes: %v", written, err)
	}
	eventually.True(t, "the log says that the disk is full", func() bool {
		return p.stderr.Contains("the disk of the store is almost full")
	})
	t.Logf("507 after %d writes of half a MiB", written)

	// Reads go on.
	check := func(p *process) {
		t.Helper()
		for i := range written {
			want := bulky(i)
			got := get[*api.MetricsProvider](p, api.KeyOf(want))
			if len(got.Spec.Static.Metrics) != len(want.Spec.Static.Metrics) {
				t.Fatalf("%s was acknowledged and is incomplete", api.KeyOf(want))
			}
		}
		if clusters := get[*api.Placement](p, placementKey("web")).Status.Clusters; len(clusters) != 1 {
			t.Fatalf("the decision is %v", clusters)
		}
		if _, err := p.client.Explain(t.Context(), placementKey("web")); err != nil {
			t.Fatal(err)
		}
	}
	check(p)

	// A disk that is full to the last byte: the server goes on reading, or its
	// exit says why.
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
			t.Fatalf("a write on the full disk: %v", err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // the writes are spread over a second, in which etcd commits
	}
	if p.alive() {
		check(p)
		p.kill()
	} else if code := p.cmd.ProcessState.ExitCode(); code != 70 || !p.stderr.Contains("STORE FAILED: ") {
		t.Fatalf("the server exited with %d and did not say why", code)
	}

	// With room again everything acknowledged is there, and writes are taken.
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	resize(t, mount, 700)
	p = startServer(t, dir, "--min-free-space", "96Mi")
	check(p)
	eventually.True(t, "writes are taken again", func() bool {
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

// fillUp writes until nothing more fits.
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

// committed waits until etcd has written what it was told to its database, which it
// does a tenth of a second after it has acknowledged it. It dies where the disk is
// taken from it in the middle of that.
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

// Whoever deletes enough can write again, although nobody makes the disk larger,
// and although the disk is full to the last byte.
func TestDeletionsOnAFullDisk(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name    string
		size    int
		args    []string
		ballast bool
	}{
		{"filled by the server", 500, nil, false},
		{"filled to the last byte by others", 500, nil, true},
		{"on a small disk", 320, []string{"--min-free-space", "96Mi"}, false},
		{"on a small disk, filled to the last byte by others", 360, []string{"--min-free-space", "96Mi"}, true},
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
					t.Fatal("the disk does not get full")
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
			// The decision that follows cannot be written; nobody waits for that.
			where := get[*api.Placement](p, placementKey("web")).Status.Clusters
			remove(api.Key{Kind: api.KindCluster, Name: where[0]})
			if slowest > 8*time.Second { // a request waits for decisions for 10 s by default
				t.Errorf("deleting a cluster took %s", slowest)
			}
			remove(placementKey("web"))
			for n := range written {
				remove(api.KeyOf(bulky(n)))
			}
			t.Logf("the slowest deletion took %s", slowest)
			if c.ballast { // the disk has room again, but not more than there was
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
			// What was acknowledged outlives a kill.
			p.kill()
			p = startServer(t, dir, c.args...)
			if got := get[*api.Placement](p, placementKey("again")); len(got.Status.Clusters) != 1 {
				t.Errorf("the decision is %v", got.Status.Clusters)
			}
			if got := len(p.objects()); got < written/2 {
				t.Errorf("%d objects are left", got)
			}
			p.stop()
		})
	}
}
