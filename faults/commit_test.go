//go:build faults && upgrade

package faults

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// The commits whose servers are upgraded, set by make. The second one is for servers whose stores form the cluster.
const (
	baseVariable      = "FAULTS_BASE"
	peersBaseVariable = "FAULTS_BASE_PEERS"
)

// serverOf builds the server of an earlier commit, after a change to its sources.
func serverOf(t *testing.T, variable string, change func(dir string) error) (binary string) {
	t.Helper()
	commit := os.Getenv(variable)
	if commit == "" {
		t.Fatalf("%s must name the commit from which servers are upgraded: run make test-upgrade", variable)
	}
	run := func(dir, name string, args ...string) {
		t.Helper()
		cmd := exec.Command(name, args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", strings.Join(cmd.Args, " "), err, out)
		}
	}
	if err := exec.Command("git", "-C", "..", "cat-file", "-e", commit+"^{commit}").Run(); err != nil {
		t.Fatalf("commit %s, from which servers are upgraded, is not in the history of this checkout (%v). For a shallow clone, run \"git fetch --unshallow\"; or name another commit in BASE and BASE_PEERS", commit, err)
	}
	dir := t.TempDir()
	archive := filepath.Join(t.TempDir(), "base.tar")
	run("..", "git", "archive", "--output", archive, commit)
	run(dir, "tar", "-xf", archive)
	if err := change(dir); err != nil {
		t.Fatalf("change the sources of %s: %v", commit, err)
	}
	binary = filepath.Join(t.TempDir(), "scheduler-server")
	run(dir, "go", "build", "-trimpath", "-ldflags", "-X main.version="+commit, "-o", binary, "./server")
	return binary
}

// tapSources changes the sources in a directory so that the server reports its decisions.
func tapSources(dir string) error {
	path := filepath.Join(dir, "internal", "faulttap", "tap.go")
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	if err := os.WriteFile(path, []byte(tapSource), 0o600); err != nil {
		return err
	}
	path = filepath.Join(dir, tapPath)
	source, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	text := string(source)
	for from, to := range tapChanges {
		if strings.Count(text, from) != 1 {
			return fmt.Errorf("%s has %q %d times, not once", path, from, strings.Count(text, from))
		}
		text = strings.Replace(text, from, to, 1)
	}
	return os.WriteFile(path, []byte(text), 0o600)
}

// TestUpgradeOfServersOnEtcd replaces three servers of an earlier commit by those of this one.
func TestUpgradeOfServersOnEtcd(t *testing.T) {
	t.Parallel() // it mostly waits
	old := serverOf(t, baseVariable, func(string) error { return nil })
	upgrade(t, old, serverBinary, onEtcd)
}

// TestUpgradeOfServersThatAreTheCluster does so with servers whose stores form the cluster.
func TestUpgradeOfServersThatAreTheCluster(t *testing.T) {
	t.Parallel() // it mostly waits
	current, err := tapped()
	if err != nil {
		t.Fatal(err)
	}
	upgrade(t, serverOf(t, peersBaseVariable, tapSources), current, onThemselves)
}

// kept is how many placements nothing moves: they stay where they are for a day, whatever
// becomes of the metrics.
const kept = 10

// upgrade replaces servers one after the other during writes, goes back, replaces them again, and finishes the upgrade.
// Nothing is lost, nothing moves, and nothing is decided twice.
func upgrade(t *testing.T, old, current string, on func(*ensemble)) {
	t.Helper()
	f := &fault{t: t}
	e := newEnsemble(t, f, old, on, unwrapped)
	where := map[api.Key]*api.Placement{}
	for n := range kept {
		p := placement(fmt.Sprint("kept-", n), groupName(n%groups), 2, 0)
		p.Spec.RescheduleAfter = "24h"
		stored := e.mustPut(p).(*api.Placement)
		where[api.KeyOf(stored)] = stored
	}
	moved := 0
	look := func(r *replica) {
		t.Helper()
		for key, before := range where {
			object, err := r.client.Get(context.Background(), key)
			if err != nil {
				t.Errorf("%s: %v", key, err)
				continue
			}
			if now := object.(*api.Placement); !reflect.DeepEqual(now.Status.Clusters, before.Status.Clusters) || now.Status.DecisionRevision != before.Status.DecisionRevision {
				moved++
				t.Errorf("%s was on %v (%d), but is on %v (%d)", key, before.Status.Clusters, before.Status.DecisionRevision, now.Status.Clusters, now.Status.DecisionRevision)
			}
		}
	}
	exchange := func(name, binary string) {
		t.Helper()
		e.round(name, func() {
			for n, r := range e.replicas {
				e.awaitWrites(20)
				if n == 0 {
					r.kill()
				} else {
					r.stop()
				}
				r.binary = binary
				e.launch(r)
				f.happened()
				eventually.True(t, "the server is ready", func() bool { return r.readiness().status == 200 })
				look(r)
			}
			e.awaitWrites(20)
		})
	}
	for range rounds(1, 20) {
		exchange("upgrade", current)
		exchange("back", old)
	}
	exchange("upgrade for good", current)
	written := func(newest bool) bool {
		return !slices.ContainsFunc(e.replicas, func(r *replica) bool {
			info, err := r.client.Server(t.Context())
			return err != nil || (info.Store.Format == info.Store.NewestFormat) != newest
		})
	}
	e.round("the upgrade is finished", func() {
		e.awaitWrites(20)
		before := written(false)
		if out, code, err := command("upgrade", "finish", "--endpoint", "http://"+e.replicas[2].address); err != nil || code != 0 {
			t.Fatalf("finish the upgrade: exit code %d, %v: %s", code, err, out)
		}
		if !before {
			t.Log("the earlier commit already writes the current format")
		}
		eventually.True(t, "every server writes the newest format", func() bool { return written(true) })
		e.awaitWrites(20)
	})
	for _, r := range e.replicas {
		look(r)
	}
	for key := range where {
		// A fresh server would decide them by the present metrics.
		if err := e.p().client.Delete(t.Context(), key); err != nil {
			t.Fatal(err)
		}
	}
	e.judge()
	t.Logf("%d servers exchanged: %d writes acknowledged, %d decisions moved", f.fired.Load(), e.ledger.count(), moved)
}
