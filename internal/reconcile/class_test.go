package reconcile

import (
	"reflect"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Placements with the same requirements in the same words share one request. Others of the class keep their own words.
func TestClassSharesRequests(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	asking := func(name, constraint string, wanted int64) *placementDecision {
		object := newPlacement(name, wanted, func(s *api.PlacementSpec) { s.LabelConstraints = []string{constraint} })
		w.write(p, object)
		return p.placer.placements[api.KeyOf(object)]
	}
	first, alike, worded, other := asking("a", "tier is gold", 1), asking("b", "tier is gold", 2), asking("c", "tier == gold", 1), asking("d", "tier is silver", 1)
	if first.class != worded.class || first.class == other.class {
		t.Fatal("the classes are not those that the test needs")
	}
	shares := func(x *placementDecision) bool { return &x.query.Checks.All[0] == &first.query.Checks.All[0] }
	if !shares(alike) || alike.query.Wanted != 2 || alike.query.Key.Name != "b" {
		t.Errorf("%+v does not share its checks, or shares more than them", alike.query)
	}
	if shares(worded) || worded.query.Wording() == first.query.Wording() {
		t.Error("a different wording is lost")
	}
}

// Equal decisions of a class are stored once. A decision that differs, or was made at another time, is stored on its
// own.
func TestClassSharesDecisions(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cluster("c1", nil))
	w.write(p, cluster("c2", nil))
	decided := func(name string, wanted int64, now time.Time) *api.Condition {
		object := newPlacement(name, wanted)
		w.write(p, object)
		p.pass(now)
		return &p.placer.placements[api.KeyOf(object)].status.Conditions[0]
	}
	first, alike := decided("a", 1, epoch), decided("b", 1, epoch)
	later, short := decided("c", 1, epoch.Add(time.Second)), decided("d", 3, epoch.Add(time.Second))
	if first != alike {
		t.Error("equal decisions do not share their conditions")
	}
	if later == first || !later.LastTransitionAt.Equal(epoch.Add(time.Second)) {
		t.Errorf("condition of a later decision %+v, want its own, with a later time", later)
	}
	missing := api.FindCondition(p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "d"}].status.Conditions, api.ConditionSatisfied)
	if short == later || missing == nil || missing.Status != api.ConditionFalse {
		t.Errorf("condition of an unsatisfied placement %+v, want False", missing)
	}
}

// Whatever differs in what a decision says keeps it from being shared.
func TestClassSharesOnlyEqualStatuses(t *testing.T) {
	said := func() api.PlacementStatus {
		at := epoch
		return api.PlacementStatus{
			Clusters: []string{"c1"}, Decisions: []api.Decision{{Cluster: "c1", GroupIndex: new(int64), Since: &at}},
			DecisionGroups: []api.ChosenGroup{{Clusters: []string{"c1"}}}, ScheduledAt: &at,
			Conditions: []api.Condition{{Type: api.ConditionScheduled, LastTransitionAt: &at}},
			Moves:      []api.Moves{{At: at, Moves: 1}},
			Demand: &api.Demand{
				Resources: api.Quantities{"cpu": "1"}, Labels: map[string]string{"tier": "gold"}, Claims: map[string]string{"gpu": "yes"},
				Names: []string{"c2"}, CustomResources: []string{"crd"}, APIResources: []string{"v1"},
				Spread: []api.DemandSpread{{By: "region"}}, Choices: []api.DemandChoice{{Values: []string{"a"}}},
				Requirements: []string{"that"}, Obstacles: []string{"this"},
			},
		}
	}
	first := said()
	if c := (&class{}); c.says(first) != c.says(said()) {
		t.Error("equal statuses are stored twice")
	}
	// What only a rollout has is never shared.
	unshared := map[string]any{"status.Rollout": &api.RolloutStatus{}, "status.Health": []api.ClusterHealth{{}}}
	// change calls try with every field below v changed, one after the other.
	var change func(at string, v reflect.Value, try func(at string))
	change = func(at string, v reflect.Value, try func(at string)) {
		if set, ok := unshared[at]; ok {
			v.Set(reflect.ValueOf(set))
			try(at)
			v.SetZero()
			return
		}
		if instant, ok := v.Interface().(time.Time); ok {
			v.Set(reflect.ValueOf(instant.Add(time.Nanosecond)))
			try(at)
			v.Set(reflect.ValueOf(instant))
			return
		}
		switch v.Kind() {
		case reflect.Pointer:
			if v.IsNil() {
				t.Fatalf("%s is nil", at)
			}
			old := reflect.ValueOf(v.Interface())
			v.SetZero()
			try(at)
			if v.Set(old); v.Type() == reflect.TypeFor[*api.Demand]() {
				change(at, v.Elem(), try)
				return
			}
			other := reflect.New(v.Type().Elem())
			if instant, ok := other.Interface().(*time.Time); ok {
				*instant = epoch.Add(time.Nanosecond)
			} else {
				other.Elem().SetInt(1)
			}
			v.Set(other)
			try(at)
			v.Set(old)
		case reflect.Slice:
			if v.Len() != 1 {
				t.Fatalf("%s does not have one element", at)
			}
			old := reflect.ValueOf(v.Interface())
			v.SetZero()
			try(at)
			v.Set(old)
			change(at, v.Index(0), try)
		case reflect.Map:
			if v.Len() != 1 {
				t.Fatalf("%s does not have one element", at)
			}
			old := reflect.ValueOf(v.Interface())
			other := reflect.MakeMap(v.Type())
			for _, name := range old.MapKeys() {
				other.SetMapIndex(name, reflect.Zero(v.Type().Elem()))
			}
			v.SetZero()
			try(at)
			v.Set(other)
			try(at)
			v.Set(old)
		case reflect.Struct:
			for i := range v.NumField() {
				change(at+"."+v.Type().Field(i).Name, v.Field(i), try)
			}
		case reflect.String:
			old := v.String()
			v.SetString(old + "x")
			try(at)
			v.SetString(old)
		case reflect.Int64:
			v.SetInt(v.Int() + 1)
			try(at)
			v.SetInt(v.Int() - 1)
		case reflect.Float64:
			v.SetFloat(1)
			try(at)
			v.SetFloat(0)
		default:
			t.Fatalf("%s has the type %s, which the test does not change", at, v.Type())
		}
	}
	tried, other := 0, said()
	change("status", reflect.ValueOf(&other).Elem(), func(at string) {
		tried++
		c := &class{}
		if kept := c.says(said()); c.says(other) == kept {
			t.Errorf("a status with another %s is not stored", at)
		}
	})
	if tried < 20 {
		t.Errorf("only %d differences, want at least 20", tried)
	}
}
