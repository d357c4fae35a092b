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
	eventually(t, time.Second, "the log says that the disk is full", func() bool {
		return p.stderr.contains("the disk of the store is almost full")
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
		time.Sleep(20 * time.Millisecond)
	}
	if p.alive() {
		check(p)
		p.kill()
	} else if code := p.cmd.ProcessState.ExitCode(); code != 70 || !p.stderr.contains("STORE FAILED: ") {
		t.Fatalf("the server exited with %d and did not say why", code)
	}

	// With room again everything acknowledged is there, and writes are taken.
	if err := os.Remove(ballast.Name()); err != nil {
		t.Fatal(err)
	}
	resize(t, mount, 700)
	p = startServer(t, dir, "--min-free-space", "96Mi")
	check(p)
	eventually(t, 10*time.Second, "writes are taken again", func() bool {
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
