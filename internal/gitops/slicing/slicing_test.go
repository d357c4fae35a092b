package slicing

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// world is the slices as somebody who watches them sees them.
type world struct {
	t      *rapid.T
	slices map[int]Slice
}

func (w *world) present() []Slice { return slices.Collect(maps.Values(w.slices)) }

// visible returns the clusters of all slices together.
func (w *world) visible() map[string]bool {
	all := map[string]bool{}
	for _, s := range w.slices {
		if s.Hidden {
			continue
		}
		for _, cluster := range s.Clusters {
			all[cluster] = true
		}
	}
	return all
}

// do makes one step. If it is interrupted, a slice that is being made stays hidden, and other steps do nothing.
func (w *world) do(step Step, interrupted bool) {
	w.t.Helper()
	_, there := w.slices[step.Number]
	if there != (step.Verb != Create) {
		w.t.Fatalf("%v of slice %d, which is there: %v", step.Verb, step.Number, there)
	}
	if len(step.Clusters) > most {
		w.t.Fatalf("slice %d gets %d clusters", step.Number, len(step.Clusters))
	}
	switch {
	case interrupted && step.Verb == Create:
		step.Hidden = true
		w.slices[step.Number] = step.Slice
	case interrupted:
	case step.Verb == Delete:
		delete(w.slices, step.Number)
	default:
		if there && w.slices[step.Number].Group != step.Group {
			w.t.Fatalf("slice %d changes its group", step.Number)
		}
		w.slices[step.Number] = step.Slice
	}
}

// decision draws clusters in groups.
func decision(t *rapid.T) []Part {
	groups := rapid.IntRange(0, 3).Draw(t, "groups")
	if groups == 0 {
		return nil
	}
	parts := make([]Part, groups)
	for i := range parts {
		// Groups are renamed, and numbered anew.
		parts[i].Group = Group{Index: int64(i), Name: rapid.SampledFrom([]string{"", "canary", "rest"}).Draw(t, "name")}
	}
	seed, count := rapid.IntRange(0, 1000).Draw(t, "seed"), rapid.SampledFrom([]int{0, 1, 3, 100, 101, 250, 450}).Draw(t, "clusters")
	for i := range count {
		part := (i*7 + seed*i/5) % groups
		parts[part].Clusters = append(parts[part].Clusters, fmt.Sprintf("c%d", (i*13+seed)%500))
	}
	return parts
}

func clustersOf(parts []Part) map[string]bool {
	all := map[string]bool{}
	for _, p := range parts {
		for _, cluster := range p.Clusters {
			all[cluster] = true
		}
	}
	return all
}

// TestStayingClustersAreNeverMissing changes decisions at random. Writes are interrupted, and then continued or
// replaced by those of another decision.
func TestStayingClustersAreNeverMissing(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := &world{t: t, slices: map[int]Slice{}}
		for range rapid.IntRange(0, 3).Draw(t, "foreign slices") { // somebody has changed them by hand
			s := Slice{Number: rapid.IntRange(1, 9).Draw(t, "number"), Group: Group{Name: rapid.SampledFrom([]string{"", "canary"}).Draw(t, "group")}, Hidden: rapid.Bool().Draw(t, "hidden")}
			for range rapid.SampledFrom([]int{0, 1, 100}).Draw(t, "size") {
				s.Clusters = append(s.Clusters, fmt.Sprintf("c%d", rapid.IntRange(0, 500).Draw(t, "cluster")))
			}
			w.slices[s.Number] = s
		}
		for range rapid.IntRange(1, 6).Draw(t, "decisions") {
			parts := decision(t)
			wanted, before := clustersOf(parts), w.visible()
			interrupted := w.follow(parts, wanted, before, rapid.IntRange(0, 30).Draw(t, "steps"))
			if interrupted && rapid.Bool().Draw(t, "another decision") {
				continue
			}
			if w.follow(parts, wanted, before, -1) {
				t.Fatal("it was interrupted although nothing interrupts it")
			}
			w.isExactly(parts)
		}
	})
}

// follow makes the steps to a decision, at most a number of them, and reports whether it was interrupted.
func (w *world) follow(parts []Part, wanted, before map[string]bool, limit int) (interrupted bool) {
	w.t.Helper()
	for rounds := 0; ; rounds++ {
		steps := Steps(w.present(), parts)
		if len(steps) == 0 {
			return false
		}
		if rounds > 4 {
			w.t.Fatalf("it does not end: %v", steps)
		}
		for _, step := range steps {
			had := len(w.visible())
			w.do(step, limit == 0)
			now := w.visible()
			for cluster := range before {
				if wanted[cluster] && !now[cluster] {
					w.t.Fatalf("%s is missing after %v of slice %d", cluster, step.Verb, step.Number)
				}
			}
			if len(now) < min(had, len(wanted)) {
				w.t.Fatalf("%d clusters after %v of slice %d, %d before, %d wanted", len(now), step.Verb, step.Number, had, len(wanted))
			}
			if limit == 0 {
				return true
			}
			limit--
		}
	}
}

// isExactly checks that the slices are a decision: each cluster once, in its group, with no more slices than it needs.
func (w *world) isExactly(parts []Part) {
	w.t.Helper()
	got := map[Group][]string{}
	for _, number := range slices.Sorted(maps.Keys(w.slices)) {
		s := w.slices[number]
		if s.Hidden {
			w.t.Fatalf("slice %d is hidden", number)
		}
		got[s.Group] = append(got[s.Group], s.Clusters...)
	}
	needed := 0
	for _, p := range parts {
		needed += max(1, (len(p.Clusters)+most-1)/most)
		one, want := slices.Sorted(slices.Values(got[p.Group])), slices.Sorted(slices.Values(p.Clusters))
		if !slices.Equal(one, want) {
			w.t.Fatalf("group %v has %v, want %v", p.Group, one, want)
		}
	}
	if len(w.slices) != needed || len(got) != len(parts) {
		w.t.Fatalf("%d slices of %d groups, want %d of %d", len(w.slices), len(got), needed, len(parts))
	}
	if len(parts) == 1 {
		for number := range needed {
			if _, ok := w.slices[number+1]; !ok {
				w.t.Fatalf("there is no slice %d of %d", number+1, needed)
			}
		}
	}
	if len(parts) == 1 && needed == 1 && !slices.Equal(got[parts[0].Group], parts[0].Clusters) {
		w.t.Fatalf("got %v, want the best first: %v", got, parts[0].Clusters)
	}
}

func TestSteps(t *testing.T) {
	numbered := func(from, to int) (names []string) {
		for i := from; i < to; i++ {
			names = append(names, fmt.Sprintf("c%03d", i))
		}
		return names
	}
	canary := Group{0, "canary"}
	for _, c := range []struct {
		name    string
		present []Slice
		parts   []Part
		want    string
	}{
		{name: "first decision", parts: []Part{{Clusters: []string{"b", "a"}}}, want: "[create 1 [b a]]"},
		{name: "first decision without clusters", parts: []Part{{}}, want: "[create 1 []]"},
		{name: "nothing to do", present: []Slice{{Number: 1, Clusters: []string{"a"}}}, parts: []Part{{Clusters: []string{"a"}}}, want: "[]"},
		{name: "a move is one write", present: []Slice{{Number: 1, Clusters: []string{"a", "b"}}}, parts: []Part{{Clusters: []string{"c", "b"}}}, want: "[write 1 [c b]]"},
		{name: "another order", present: []Slice{{Number: 1, Clusters: []string{"a", "b"}}}, parts: []Part{{Clusters: []string{"b", "a"}}}, want: "[write 1 [b a]]"},
		{name: "to nowhere", present: []Slice{{Number: 1, Clusters: []string{"a"}}}, parts: []Part{{}}, want: "[write 1 []]"},
		{name: "deleted", present: []Slice{{Number: 1, Clusters: []string{"a"}}, {Number: 2}}, want: "[delete 1 delete 2]"},
		{name: "an incomplete slice is completed", present: []Slice{{Number: 1, Hidden: true, Clusters: []string{"x"}}}, parts: []Part{{Clusters: []string{"a"}}}, want: "[write 1 [a]]"},
		{
			name: "a cluster changes its group", present: []Slice{{Number: 1, Group: canary, Clusters: []string{"a", "b"}}, {Number: 2, Group: Group{1, ""}, Clusters: []string{"c"}}},
			parts: []Part{{canary, []string{"b"}}, {Group{1, ""}, []string{"a", "c"}}}, want: "[write 2 [a c] write 1 [b]]",
		},
		{
			name: "the last cluster of a slice moves down", present: []Slice{{Number: 1, Clusters: numbered(0, 100)}, {Number: 2, Clusters: []string{"z"}}},
			parts: []Part{{Clusters: append(numbered(1, 100), "z")}}, want: fmt.Sprintf("[write 1 %v delete 2]", append(numbered(1, 100), "z")),
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := []string{}
			for _, s := range Steps(c.present, c.parts) {
				switch s.Verb {
				case Delete:
					text = append(text, fmt.Sprintf("delete %d", s.Number))
				case Create:
					text = append(text, fmt.Sprintf("create %d %v", s.Number, s.Clusters))
				case Write:
					text = append(text, fmt.Sprintf("write %d %v", s.Number, s.Clusters))
				}
			}
			if got := fmt.Sprint(text); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}
