package reconcile

import (
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A simulation in steps moves what the writes move one after another, each from where the one before left it.
func TestSimulateSteps(t *testing.T) {
	key := func(kind api.Kind, name string) api.Key { return api.Key{Kind: kind, Name: name} }
	// Clusters a, b and c, of which web is on the first that are "yes".
	is := func(name, in string) json.RawMessage {
		return json.RawMessage(`{"kind":"cluster","metadata":{"name":"` + name + `","labels":{"state":"` + in + `"}}}`)
	}
	placement := func(name, in string) json.RawMessage {
		return json.RawMessage(`{"kind":"placement","metadata":{"name":"` + name + `","namespace":"shop"},"spec":{"number_of_clusters":1,"label_constraints":["state is ` + in + `"]}}`)
	}
	y, _ := start(t)
	for _, raw := range []json.RawMessage{is("a", "yes"), is("b", "yes"), is("c", "out"), placement("web", "yes"), placement("none", "nothing")} {
		object, err := api.Decode(raw)
		if err != nil {
			t.Fatal(err)
		}
		y.put(object)
	}
	for _, test := range []struct {
		name    string
		objects []json.RawMessage
		deleted []api.Key
		moved   []string // "NAME: FROM > TO"
		objsAre int
	}{
		{name: "nothing changes", objects: []json.RawMessage{is("a", "yes")}, objsAre: 1},
		{name: "the other cluster", objects: []json.RawMessage{is("b", "out")}, objsAre: 1},
		{name: "its cluster", objects: []json.RawMessage{is("a", "out")}, moved: []string{"web: a > b"}, objsAre: 2},
		{
			name: "first another one joins", objects: []json.RawMessage{is("c", "yes"), is("b", "out"), is("a", "out")},
			moved: []string{"web: a > c"}, objsAre: 4,
		},
		{
			name: "there is none for a while", objects: []json.RawMessage{is("b", "out"), is("a", "out"), is("c", "yes")},
			moved: []string{"web: a > c"}, objsAre: 4,
		},
		{
			name: "it moves and is moved on", objects: []json.RawMessage{is("a", "out"), is("b", "out"), is("c", "yes")},
			moved: []string{"web: a > c"}, objsAre: 4,
		},
		{name: "deleted at the end", objects: []json.RawMessage{is("c", "yes")}, deleted: []api.Key{key(api.KindCluster, "a")}, moved: []string{"web: a > b"}, objsAre: 2},
		{name: "replaced", objects: []json.RawMessage{is("a", "yes")}, deleted: []api.Key{key(api.KindCluster, "a")}, objsAre: 1},
		{name: "a new placement", objects: []json.RawMessage{placement("new", "yes"), is("a", "out")}, moved: []string{"new:  > b", "web: a > b"}, objsAre: 3},
		{name: "another spec", objects: []json.RawMessage{is("a", "out"), placement("web", "out")}, moved: []string{"web: a > b"}, objsAre: 2},
	} {
		t.Run(test.name, func(t *testing.T) {
			result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Steps: true, Objects: test.objects, Delete: test.deleted})
			if err != nil {
				t.Fatal(err)
			}
			var moved []string
			for _, c := range result.Changes {
				moved = append(moved, c.Name+": "+strings.Join(c.From, " ")+" > "+strings.Join(c.To, " "))
			}
			if !slices.Equal(moved, test.moved) {
				t.Errorf("moved %q, want %q", moved, test.moved)
			}
			if len(result.Objects) != test.objsAre || len(result.Explanations) > 0 {
				t.Errorf("%d objects and %d explanations, want %d and none", len(result.Objects), len(result.Explanations), test.objsAre)
			}
		})
	}
	if got := y.placement("web").Status.Clusters; !slices.Equal(got, []string{"a"}) {
		t.Errorf("web is on %v after the simulations, want a", got)
	}
}

// Writes that do not depend on each other may be made in any order, so a decision that one of two orders moves, moves.
func TestSimulateStepsInBothOrders(t *testing.T) {
	cluster := func(name, state string) string {
		return `{"kind":"cluster","metadata":{"name":"` + name + `","labels":{"state":"` + state + `"}}}`
	}
	set := func(states string) string {
		return `{"kind":"cluster_set","metadata":{"name":"set"},"spec":{"namespaces":["shop"],"selector":{"match_expressions":[{"key":"state","operator":"In","values":[` + states + `]}]}}}`
	}
	y, _ := start(t)
	for _, text := range []string{
		cluster("a", "yes"), cluster("b", "yes"), set(`"yes"`),
		`{"kind":"placement","metadata":{"name":"web","namespace":"shop"},"spec":{"number_of_clusters":1,"cluster_sets":["set"]}}`,
	} {
		object, err := api.Decode([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		y.put(object)
	}
	widen, leave := set(`"yes","also"`), cluster("a", "also")
	for name, objects := range map[string][]json.RawMessage{
		"the cluster leaves the set before the set is wider": raw(leave, widen), "the set is wider before the cluster leaves it": raw(widen, leave),
	} {
		result, err := y.reconciler.Simulate(t.Context(), api.Simulation{Steps: true, Objects: objects})
		if err != nil {
			t.Fatal(err)
		}
		if len(result.Changes) != 1 || result.Changes[0].Name != "web" || !slices.Equal(result.Changes[0].To, []string{"b"}) || len(result.Objects) != 3 {
			t.Errorf("%s: %d objects, changes %+v, want web on b", name, len(result.Objects), result.Changes)
		}
	}
}

func TestSimulateStepsNamesTheWrongObject(t *testing.T) {
	request := api.Simulation{Base: "empty", Steps: true, Objects: raw(`{"kind":"cluster","metadata":{"name":"a"}}`, `{"kind":"cluster","metadata":{"name":"B"}}`)}
	_, err := SimulateFile(t.Context(), request, nil, epoch)
	var errs api.FieldErrors
	if !errors.As(err, &errs) || len(errs) != 1 || errs[0].Field != "objects[1].metadata.name" {
		t.Errorf("got %v, want an error about objects[1].metadata.name", err)
	}
}
