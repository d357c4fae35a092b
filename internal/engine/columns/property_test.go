package columns_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"pgregory.net/rapid"
)

// TestFleetFollowsChanges checks that a fleet after any sequence of changes equals one built from scratch, that earlier
// versions do not change, and that rows that a delta does not list are unchanged.
func TestFleetFollowsChanges(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		large := rapid.IntRange(0, 4).Draw(t, "large") == 0
		d, n := enginetest.Rolling(t, large), 12
		if large {
			n = 400 // sets switch between lists and bitmaps
		}
		w := enginetest.NewWorld()
		f := &columns.Fleet{}
		type moment struct{ then, rebuilt *columns.Fleet }
		var past []moment
		for step := range 8 {
			changes, now := enginetest.RollChange(d, w, n)
			if large && step%3 == 0 {
				for range d(300) {
					name := fmt.Sprintf("c%03d", d(n))
					changes.Clusters[name] = nil
					if step%6 == 0 {
						changes.Clusters[name] = enginetest.RollCluster(d, name, true)
					}
				}
			}
			before := f
			w.Apply(changes, now)
			var delta columns.Delta
			f, delta = f.With(changes, now)
			rebuilt := w.Fleet()
			sameFacts(t, f, rebuilt)
			checkDelta(t, before, f, delta)
			if rows := slices.Sorted(slices.Values(f.ByName())); !slices.IsSortedFunc(f.Ranking(), f.CompareRank) || !slices.Equal(slices.Sorted(slices.Values(f.Ranking())), rows) {
				t.Fatalf("rows %v, but they are ranked %v", rows, f.Ranking())
			}
			past = append(past, moment{f, rebuilt})
		}
		for _, m := range past {
			sameFacts(t, m.then, m.rebuilt)
		}
	})
}

// TestFactsBuiltLate checks that the sets of a label or claim, and the amounts, are the same whether they were built
// early and then updated, or are built later from an old version of the fleet.
func TestFactsBuiltLate(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		large := rapid.IntRange(0, 4).Draw(t, "large") == 0
		d, n := enginetest.Rolling(t, large), 12
		if large {
			n = 400
		}
		w := enginetest.NewWorld()
		f := &columns.Fleet{}
		var past, rebuilt []*columns.Fleet
		for step := range 8 {
			changes, now := enginetest.RollChange(d, w, n)
			for i := 0; large && i < 60*(step%2); i++ {
				name := fmt.Sprintf("c%03d", d(n))
				changes.Clusters[name] = enginetest.RollCluster(d, name, step%4 == 1)
			}
			w.Apply(changes, now)
			f, _ = f.With(changes, now)
			past, rebuilt = append(past, f), append(rebuilt, w.Fleet())
			asked := past[d(len(past))]
			switch d(4) {
			case 0:
				asked.Labels().Of(enginetest.Pick(d, "host", "zone", "tier", "none"))
			case 1:
				asked.Claims().Of(enginetest.Pick(d, "version", "id", "none"))
			case 2:
				asked.Uncommitted()
			}
		}
		for len(past) > 0 {
			i := d(len(past))
			sameFacts(t, past[i], rebuilt[i])
			past, rebuilt = slices.Delete(past, i, i+1), slices.Delete(rebuilt, i, i+1)
		}
	})
}

// TestRowOrderDoesNotMatter checks that the facts are the same if clusters are added in another order, with other
// clusters added and removed in between.
func TestRowOrderDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		sameFacts(t, w.Shuffled(d), w.Fleet())
	})
}

// sameFacts compares the sets and columns that filters and scorers read.
func sameFacts(t *rapid.T, f, g *columns.Fleet) {
	t.Helper()
	facts := func(f *columns.Fleet) map[string][]string {
		out := map[string][]string{}
		note := func(rows *columns.RowSet, format string, args ...any) {
			rows.Each(func(row int) {
				out[f.Name(row)] = append(out[f.Name(row)], fmt.Sprintf(format, args...))
			})
		}
		noteAll := func(kind string, keys map[string]*columns.RowSet, values map[string]map[string]*columns.RowSet) {
			for key, rows := range keys {
				note(rows, "%s %s", kind, key)
			}
			for key, values := range values {
				for value, rows := range values {
					note(rows, "%s %s=%s", kind, key, value)
				}
			}
		}
		for kind, index := range map[string]columns.ValueIndex{"label": f.Labels(), "claim": f.Claims()} {
			for _, key := range index.Keys() {
				note(index.Of(key).Rows, "%s %s", kind, key)
				noteAll(kind, nil, map[string]map[string]*columns.RowSet{key: index.Of(key).Values})
			}
		}
		noteAll("place", nil, f.Places())
		noteAll("owner", f.Owners(), nil)
		noteAll("custom", f.CustomResources(), nil)
		noteAll("api", f.APIResources(), nil)
		for _, m := range f.Metrics() {
			if m != nil {
				note(m.Rows, "metric %s", m.Key)
			}
		}
		for taint, rows := range f.Taints() {
			note(rows, "taint %s", taint)
		}
		for name, set := range f.Sets() {
			note(set.Rows, "set %s %q", name, set.Set.Spec.Namespaces)
		}
		for name, s := range f.PlacementScores() {
			note(s.Rows(), "scores %s", name)
			note(s.Expired, "expired %s", name)
			f.Live().Each(func(row int) {
				for _, score := range enginetest.ScoreNames {
					value, has, expired := f.ScoreState(name, score, row)
					effective := int8(0)
					if column := f.ScoreColumn(name, score); row < len(column) {
						effective = column[row]
					}
					if wanted := value; expired && effective != 0 || !expired && effective != wanted {
						t.Fatalf("%s of %s: effective value %d, value %d, expired %t", score, f.Name(row), effective, wanted, expired)
					}
					out[f.Name(row)] = append(out[f.Name(row)], fmt.Sprint("score ", name, score, value, has, expired))
				}
			})
		}
		f.Live().Each(func(row int) {
			for _, resource := range []string{"cpu", "memory"} {
				usable := amount.Unreported
				if column := f.Allocatable(resource); row < column.Len() {
					usable = column.At(row)
				}
				out[f.Name(row)] = append(out[f.Name(row)], fmt.Sprint("usable ", resource, usable))
			}
			for resource, column := range f.Uncommitted() {
				if row < column.Len() && column.At(row).Reported() {
					out[f.Name(row)] = append(out[f.Name(row)], fmt.Sprint("left ", resource, column.At(row)))
				}
			}
			for _, x := range f.Rows()[row].Taints {
				out[f.Name(row)] = append(out[f.Name(row)], fmt.Sprint("taint ", x.Taint, x.Since))
			}
		})
		for name := range out {
			slices.Sort(out[name])
		}
		return out
	}
	x, y := facts(f), facts(g)
	for name := range y {
		if !slices.Equal(x[name], y[name]) {
			t.Fatalf("%s: facts %q, want %q", name, x[name], y[name])
		}
	}
	if len(x) != len(y) || !slices.Equal(slices.Sorted(maps.Keys(f.Sets())), slices.Sorted(maps.Keys(g.Sets()))) ||
		!slices.Equal(slices.Sorted(maps.Keys(f.PlacementScores())), slices.Sorted(maps.Keys(g.PlacementScores()))) ||
		!slices.Equal(slices.Sorted(maps.Keys(f.Waiting())), slices.Sorted(maps.Keys(g.Waiting()))) {
		t.Fatal("the fleets have different clusters, sets or scores")
	}
}

func checkDelta(t *rapid.T, before, after *columns.Fleet, delta columns.Delta) {
	t.Helper()
	if !slices.IsSorted(delta.Rows) || !slices.IsSorted(delta.Gone) {
		t.Fatalf("delta %+v is not sorted", delta)
	}
	for name, row := range before.Index() {
		at, ok := after.Index()[name]
		if !ok {
			if !slices.Contains(delta.Gone, name) || !slices.Contains(delta.Rows, row) {
				t.Fatalf("%s was deleted, but the delta does not say so: %+v", name, delta)
			}
			continue
		}
		if at != row {
			t.Fatalf("%s moved from row %d to %d", name, row, at)
		}
		if slices.Contains(delta.Rows, row) {
			continue
		}
		for _, resource := range enginetest.ScoreResources {
			for _, score := range enginetest.ScoreNames {
				v, has, gone := before.ScoreState(resource, score, row)
				w, had, went := after.ScoreState(resource, score, row)
				if gone != went || !gone && (has != had || v != w) {
					t.Fatalf("score %s of %s changed, but the delta does not say so: %+v", score, name, delta)
				}
			}
		}
	}
	for name, row := range after.Index() {
		if _, ok := before.Index()[name]; !ok && !slices.Contains(delta.Rows, row) {
			t.Fatalf("%s was added, but the delta does not say so: %+v", name, delta)
		}
	}
	for _, key := range enginetest.MetricKeys {
		if before.HasMetric(key.Name) != after.HasMetric(key.Name) && !delta.Fleet.Any(columns.MetricNames) {
			t.Fatalf("metric %s was added or deleted, but the delta does not say so", key.Name)
		}
	}
}
