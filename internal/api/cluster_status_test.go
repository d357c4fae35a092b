package api

import (
	"reflect"
	"slices"
	"testing"
)

// Each field of a cluster's status belongs either to the decided or to the observed part. Merging the two parts, in
// either order, keeps both.
func TestPartsOfAClusterStatus(t *testing.T) {
	decided := []string{"Cloud", "CloudScore", "ObservedZone"}
	both := []string{"ObservedGeneration", "Conditions"}
	fields := reflect.TypeFor[ClusterStatus]()
	for i := range fields.NumField() {
		name := fields.Field(i).Name
		if slices.Contains(both, name) {
			continue
		}
		var from ClusterStatus
		field := reflect.ValueOf(&from).Elem().Field(i)
		field.Set(someValue(field.Type()))
		var decision, observation ClusterStatus
		decision.TakeDecided(&from)
		observation.TakeObserved(&from)
		isDecided := !reflect.DeepEqual(decision, ClusterStatus{})
		isObserved := !reflect.DeepEqual(observation, ClusterStatus{})
		if isDecided != slices.Contains(decided, name) || isObserved == isDecided {
			t.Errorf("%s: decided %t, observed %t", name, isDecided, isObserved)
		}
		kept := from
		kept.TakeDecided(&ClusterStatus{})
		if (reflect.DeepEqual(kept, from)) == isDecided {
			t.Errorf("%s: a decision overwrites what was observed, or keeps what was decided", name)
		}
		kept = from
		kept.TakeObserved(&ClusterStatus{})
		if (reflect.DeepEqual(kept, from)) == isObserved {
			t.Errorf("%s: an observation overwrites what was decided, or keeps what was observed", name)
		}
	}
	stored := ClusterStatus{ObservedGeneration: 3, Conditions: []Condition{{Type: ConditionReady, Status: ConditionTrue}, {Type: ConditionBound, Status: ConditionFalse}}}
	before := slices.Clone(stored.Conditions)
	s := stored
	s.TakeDecided(&ClusterStatus{ObservedGeneration: 2, Conditions: []Condition{{Type: ConditionBound, Status: ConditionTrue}, {Type: ConditionReady, Status: ConditionFalse}}})
	if s.ObservedGeneration != 3 || FindCondition(s.Conditions, ConditionReady).Status != ConditionTrue || FindCondition(s.Conditions, ConditionBound).Status != ConditionTrue {
		t.Errorf("after a decision: %+v", s)
	}
	s = stored
	s.TakeObserved(&ClusterStatus{ObservedGeneration: 4, Conditions: []Condition{{Type: ConditionBound, Status: ConditionTrue}, {Type: ConditionReady, Status: ConditionFalse}}})
	if s.ObservedGeneration != 4 || FindCondition(s.Conditions, ConditionReady).Status != ConditionFalse || FindCondition(s.Conditions, ConditionBound).Status != ConditionFalse {
		t.Errorf("after an observation: %+v", s)
	}
	if !slices.EqualFunc(stored.Conditions, before, func(a, b Condition) bool { return a == b }) {
		t.Errorf("the shared conditions were modified: %+v", stored.Conditions)
	}
}

// someValue returns a value of a type that is not its zero value.
func someValue(t reflect.Type) reflect.Value {
	v := reflect.New(t).Elem()
	switch t.Kind() { //nolint:exhaustive // the status has no other kinds
	case reflect.String:
		v.SetString("x")
	case reflect.Int64:
		v.SetInt(7)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(t.Elem()))
	case reflect.Slice:
		v.Set(reflect.MakeSlice(t, 1, 1))
	case reflect.Map:
		v.Set(reflect.MakeMap(t))
		v.SetMapIndex(reflect.Zero(t.Key()), reflect.Zero(t.Elem()))
	}
	return v
}
