package ledger_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"pgregory.net/rapid"
)

// TestLoad checks a count while clusters are added, removed and change rows.
func TestLoad(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := enginetest.NewWorld()
		f, load, counts := &columns.Fleet{}, ledger.NewLoad(), map[string]int32{}
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			name := fmt.Sprintf("c%d", rapid.IntRange(0, 6).Draw(t, "cluster"))
			switch rapid.IntRange(0, 3).Draw(t, "what") {
			case 0:
				load.Add(f, name)
				counts[name]++
			case 1:
				if counts[name] > 0 {
					load.Drop(f, name)
					counts[name]--
				}
			case 2:
				c := &api.Cluster{Metadata: api.Metadata{Name: name}}
				w.Clusters[name] = c
				next, delta := f.With(columns.Changes{Clusters: map[string]*api.Cluster{name: c}}, enginetest.Epoch)
				f = next
				load.Sync(f, delta)
			default:
				delete(w.Clusters, name)
				next, delta := f.With(columns.Changes{Clusters: map[string]*api.Cluster{name: nil}}, enginetest.Epoch)
				f = next
				load.Sync(f, delta)
			}
			var own []int
			mine := map[string]bool{}
			for name := range w.Clusters {
				if counts[name] > 0 && rapid.Bool().Draw(t, "own "+name) {
					row, _ := f.Row(name)
					own, mine[name] = append(own, row), true
				}
			}
			seen := load.Without(own, f.Slots())
			var high int32
			low := int32(-1)
			for name := range w.Clusters {
				want := counts[name]
				if mine[name] {
					want--
				}
				row, _ := f.Row(name)
				if got := seen.At(row); got != want {
					t.Fatalf("load of %s is %d, want %d", name, got, want)
				}
				high = max(high, want)
				if low < 0 || want < low {
					low = want
				}
			}
			if seen.High != high || (low >= 0 && seen.Low > low) {
				t.Fatalf("bounds are %d to %d, want %d to %d", seen.Low, seen.High, low, high)
			}
		}
	})
}

// TestLoadIsAsLargeAsCountsDiffer checks that a load does not grow with the decisions that it
// counts: it is copied for every write that adds some.
func TestLoadIsAsLargeAsCountsDiffer(t *testing.T) {
	clusters := map[string]*api.Cluster{}
	for _, name := range []string{"busy", "idle"} {
		clusters[name] = &api.Cluster{Metadata: api.Metadata{Name: name}}
	}
	f, delta := (&columns.Fleet{}).With(columns.Changes{Clusters: clusters}, enginetest.Epoch)
	load := ledger.NewLoad()
	load.Sync(f, delta)
	for range 10_000 {
		load.Add(f, "busy")
	}
	if got := load.Counts(); got != 2 {
		t.Errorf("%d distinct counts, want 2: 0 and 10,000", got)
	}
}

// A shift lists each row once, by its count at the last one, and says when others' highest count may be another.
func TestShift(t *testing.T) {
	clusters := map[string]*api.Cluster{}
	for _, name := range []string{"a", "b", "c"} {
		clusters[name] = &api.Cluster{Metadata: api.Metadata{Name: name}}
	}
	f, delta := (&columns.Fleet{}).With(columns.Changes{Clusters: clusters}, enginetest.Epoch)
	l := ledger.NewLoad()
	l.Sync(f, delta)
	row := func(name string) int { at, _ := f.Row(name); return at }
	l.Add(f, "a")
	l.Add(f, "a")
	l.Add(f, "b")
	if s := l.Shift(); !slices.Equal(s.More, []int{row("a"), row("b")}) || len(s.Fewer) != 0 || !s.RescalesFor(0) {
		t.Errorf("after three decisions: %+v", s)
	}
	if s := l.Shift(); !s.Empty() {
		t.Errorf("without a change: %+v", s)
	}
	l.Drop(f, "b")
	l.Add(f, "c")
	l.Add(f, "b")
	if s := l.Shift(); !slices.Equal(s.More, []int{row("c")}) || len(s.Fewer) != 0 || s.Rescales() {
		t.Errorf("b as before, c chosen by one: %+v", s)
	}
	l.Drop(f, "a")
	l.Add(f, "b") // b has the highest count now, and the same number of clusters has it
	if s := l.Shift(); !slices.Equal(s.More, []int{row("b")}) || !slices.Equal(s.Fewer, []int{row("a")}) || !s.RescalesFor(1) || s.RescalesFor(0) {
		t.Errorf("the highest count moved from a to b: %+v", s)
	}
	l.Add(f, "c")
	l.Forget()
	if s := l.Shift(); !s.Empty() {
		t.Errorf("after Forget: %+v", s)
	}
}
