package reconcile

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// stored is a world as it is in the store after every decision has been written.
type stored map[api.Key]api.Object

func (w stored) object(key api.Key) api.Object { return w[key] }
func (w stored) lost() []api.Key               { return nil }

// afterPass returns everything as it is stored after a pass of a planner.
func (w *world) afterPass(p *planner) stored {
	all := stored{}
	for key, object := range w.objects {
		all[key] = object
		// An object that is no longer decided may show an earlier version.
		if d := p.known(key); d != nil && d.result() != nil && d.result().Meta().Generation == object.Meta().Generation {
			all[key] = d.result()
		}
	}
	return all
}

// replay creates a planner, gives it every object of a world, and decides each. Forks are compared with it. If
// replaying changes a status, nothing can be compared, and rests is false: a restart may forget why a workload has no
// policy.
func replay(all stored, started, now time.Time) (p *planner, rests bool) {
	p = newPlanner(discard())
	p.started = started
	for _, key := range slices.SortedFunc(maps.Keys(all), api.Key.Compare) {
		p.put(all[key], 1)
	}
	return p, len(p.pass(now)) == 0
}

// shown is a snapshot for readers of a planner, with the index that is kept up to date with it.
type shown struct {
	forks
	current atomic.Pointer[snapshot]
}

// forked forks a planner, as Reconciler.fork does. The updated index must equal a new one.
func (x *shown) forked(t *rapid.T, now time.Time) *planner {
	s, index := x.latest(&x.current)
	got, want := index.lines(), newForkIndex(s).lines()
	if !slices.Equal(got, want) {
		t.Fatalf("the updated index has\n%s\nand a new one\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	f := s.fork(index, discard())
	f.lose(nil)
	f.pass(now)
	return f
}

// lines returns the contents of an index.
func (ix *forkIndex) lines() (all []string) {
	ix.relations.Ascend(func(r relation) bool {
		all = append(all, fmt.Sprintf("%d %q %s", r.kind, r.to, r.key))
		return true
	})
	ix.resting.Ascend(func(c restingClass) bool {
		all = append(all, fmt.Sprintf("%q: %d, %d unsated, %d movable, %+v, %+v", c.class, c.n, c.unsated, c.movable, c.floor, c.floorTotal))
		return true
	})
	return all
}

// drawRequest draws a simulation of objects that exist or existed, of deletions, and of another time.
func drawRequest(t *rapid.T, w *world, all stored, now time.Time) api.Simulation {
	at := now.Add(time.Duration(rapid.SampledFrom([]int{0, 0, 0, 1, 30, 61, 400, -1, -40}).Draw(t, "later")) * time.Second)
	request := api.Simulation{Now: &at}
	keys := slices.SortedFunc(maps.Keys(all), api.Key.Compare)
	given := map[api.Key]bool{}
	for range rapid.IntRange(0, 3).Draw(t, "given") {
		object := rapid.SampledFrom(w.history).Draw(t, "of history")
		if rapid.IntRange(0, 3).Draw(t, "as it is") == 0 && len(keys) > 0 {
			object = all[rapid.SampledFrom(keys).Draw(t, "present")]
		}
		key := api.KeyOf(object)
		if given[key] {
			continue
		}
		given[key] = true
		text, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		fields := map[string]json.RawMessage{}
		if err := json.Unmarshal(text, &fields); err != nil {
			t.Fatal(err)
		}
		if rapid.Bool().Draw(t, "without status") {
			delete(fields, "status")
		}
		if text, err = json.Marshal(fields); err != nil {
			t.Fatal(err)
		}
		request.Objects = append(request.Objects, text)
	}
	for range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "gone") {
		if len(keys) == 0 {
			break
		}
		if key := rapid.SampledFrom(keys).Draw(t, "key"); !given[key] {
			given[key] = true
			request.Delete = append(request.Delete, key)
		}
	}
	return request
}

// checkFork checks that a simulation on a fork of a planner gives the same result, field by field, as one that replays
// every object, and that it does not affect the planner.
func checkFork(t *rapid.T, w *world, p *planner, now time.Time) {
	w.shown.show(&w.shown.current, p.snapshot(nil), p.records.differing.take())
	if rapid.IntRange(0, 5).Draw(t, "simulate") > 0 {
		return
	}
	all := w.afterPass(p)
	request := drawRequest(t, w, all, now)
	before := p.snapshot(nil)
	live := now.Add(time.Duration(rapid.IntRange(0, 1).Draw(t, "after the pass")) * time.Second)
	ask := func(p *planner) (*api.SimulationResult, string) {
		result, err := newSimulation(readTable, all).run(t.Context(), p, request, *request.Now)
		if err != nil {
			return nil, err.Error()
		}
		return result, ""
	}
	replayed, rests := replay(all, p.started, live)
	if !rests {
		return
	}
	want, wantErr := ask(replayed)
	got, gotErr := ask(w.shown.forked(t, live))
	if gotErr != wantErr {
		t.Fatalf("the fork answers with error %q, the replay with %q", gotErr, wantErr)
	}
	if !reflect.DeepEqual(got, want) {
		r, _ := json.Marshal(request)
		x, y := lines(got), lines(want)
		at := 0
		for at < min(len(x), len(y))-1 && x[at] == y[at] {
			at++
		}
		t.Fatalf("at %v the fork and the replay answer %s differently:\n%s\nwant\n%s", live, r,
			strings.Join(x[max(at-20, 0):min(at+10, len(x))], "\n"), strings.Join(y[max(at-20, 0):min(at+10, len(y))], "\n"))
	}
	after := p.snapshot(before)
	before.records.Ascend(func(r *record) bool {
		if now, _ := after.get(*r.key); !reflect.DeepEqual(now.decided(), r.decided()) || !reflect.DeepEqual(now.placed, r.placed) || !reflect.DeepEqual(now.binding, r.binding) {
			t.Fatalf("a fork changed %s", r.key)
		}
		return true
	})
	if before.records.Len() != after.records.Len() || !reflect.DeepEqual(before.reserved.Column("cpu"), after.reserved.Column("cpu")) || before.fleet != after.fleet {
		t.Fatal("a fork changed the planner")
	}
}

// lines is a value as a document, line by line.
func lines(value any) []string {
	text, _ := json.MarshalIndent(value, "", " ")
	return strings.Split(string(text), "\n")
}

// BenchmarkSimulate changes one cluster of 10,000 in a simulation over 10,000 placements: on a fork of the planner and,
// for comparison, on a planner that replays every object.
func BenchmarkSimulate(b *testing.B) {
	w, p := benchWorld(b, 10_000, 10_000, 200)
	p.pass(epoch)
	all := w.afterPass(p)
	for _, object := range all {
		p.put(object, w.specs[api.KeyOf(object)])
	}
	p.pass(epoch)
	random := rand.New(rand.NewPCG(5, 6))
	s := p.snapshot(nil)
	index := newForkIndex(s)
	for name, begin := range map[string]func() *planner{
		"fork": func() *planner {
			f := s.fork(index, discard())
			f.lose(nil)
			f.pass(epoch)
			return f
		},
		"replay": func() *planner {
			f, _ := replay(all, p.started, epoch)
			return f
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			before := cputime.Used(b)
			for b.Loop() {
				name := fmt.Sprintf("c%05d", random.IntN(10_000))
				c, _ := all[api.Key{Kind: api.KindCluster, Name: name}].Copy().(*api.Cluster)
				c.Spec.Paused = true
				text, err := json.Marshal(c)
				if err != nil {
					b.Fatal(err)
				}
				request := api.Simulation{Now: &epoch, Objects: []json.RawMessage{text}}
				if _, err := newSimulation(nil, all).run(b.Context(), begin(), request, epoch); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cputime.Used(b)-before)/float64(b.N), "cpu-ns/op")
		})
	}
}

// A fork decides the clusters that await a cloud when a cloud changes, even if they were not indexed before.
func TestForksDecideClustersThatAwaitACloud(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, wishing("edge", "location is NO"))
	w.write(p, cluster("plain", nil))
	w.stored(p, p.pass(epoch))
	s := p.snapshot(nil)
	f := s.fork(newForkIndex(s), discard())
	f.pass(epoch)
	north := cloud("north", "", map[string]string{"location": "NO"})
	north.SetDefaults()
	f.put(north, laid)
	if got := written(f.pass(epoch.Add(time.Minute)), api.KindCluster); !slices.Equal(got, []string{"edge", "plain"}) {
		t.Errorf("a cloud that fits two clusters was assigned to %v", got)
	}
}
