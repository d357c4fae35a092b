//go:build faults

package faults

import (
	"encoding/json"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// disk returns the data directory of a server.
func (r *replica) disk() string { return r.args[slices.Index(r.args, "--data-dir")+1] }

// highWater returns how far the log of a server had come, as it has noted beside its data directory.
func highWater(dir string) uint64 {
	text, err := os.ReadFile(dir + ".high-water-mark")
	var mark struct{ Index uint64 }
	if err != nil || json.Unmarshal(text, &mark) != nil {
		return 0
	}
	return mark.Index
}

// refuses starts a server that must exit, with words in its reason.
func (e *ensemble) refuses(r *replica, words ...string) {
	e.t.Helper()
	r.process = launch(e.t, r.wrap, r.binary, r.args...)
	if code := r.awaitExit(eventually.Limit); code == 0 {
		e.t.Errorf("%s ended without an error", r.name)
	}
	for _, word := range words {
		if !r.stderr.Contains(word) {
			e.t.Errorf("%s does not say %q:\n%s", r.name, word, r.stderr.Tail())
		}
	}
	e.fault.happened()
}

// TestFaultOlderDisks puts each disk of three servers, and each pair of disks, back to an older copy while the others
// run, and changes one that nobody else has changed.
func TestFaultOlderDisks(t *testing.T) {
	t.Parallel() // it mostly waits
	f := begin(t, 36)
	binary, err := tapped()
	if err != nil {
		t.Fatal(err)
	}
	e := newEnsemble(t, f, binary, onThemselves, unwrapped)
	older := map[*replica]string{}
	var marks []uint64
	for _, r := range e.replicas {
		r.stop()
		older[r] = copyDir(t, r.disk())
		marks = append(marks, highWater(r.disk()))
		e.launch(r)
	}
	e.startWriting()
	eventually.True(t, "every server has come further than the copy of its disk", func() bool {
		for i, r := range e.replicas {
			if highWater(r.disk()) < marks[i]+300 {
				return false
			}
		}
		return true
	})
	for _, back := range [][]int{{0}, {1}, {2}, {0, 1}, {0, 2}, {1, 2}} {
		if len(back) == 2 {
			e.stopWriting() // what is left is no majority
		}
		for _, i := range back {
			e.replicas[i].stop()
		}
		for _, i := range back {
			r := e.replicas[i]
			if err := errors.Join(os.Rename(r.disk(), r.disk()+".newer"), os.CopyFS(r.disk(), os.DirFS(older[r]))); err != nil {
				t.Fatal(err)
			}
			e.refuses(r, "the data directory was put back to an older copy", "members remove "+r.name, "members add "+r.name+"=")
			if err := errors.Join(os.RemoveAll(r.disk()), os.Rename(r.disk()+".newer", r.disk())); err != nil {
				t.Fatal(err)
			}
		}
		if len(back) == 1 {
			e.awaitWrites(20)
		}
		for _, i := range back {
			r := e.replicas[i]
			r.process = launch(t, r.wrap, r.binary, r.args...)
		}
		for _, i := range back {
			e.replicas[i].awaitReady()
			e.follow(e.replicas[i].process)
		}
	}
	e.recover()
	e.judge()
}
