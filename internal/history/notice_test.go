package history

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func conditions(list ...api.Condition) []api.Condition { return list }

// Each state is told of when it begins and when it is over, and not while it lasts.
func TestNotices(t *testing.T) {
	undecided := api.Condition{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: api.ReasonNoSuitableClusters, Message: "0 of 3 clusters fit"}
	stillUndecided := undecided
	stillUndecided.Message = "0 of 4 clusters fit"
	decided := api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: api.ReasonScheduled}
	held := api.Condition{Type: api.ConditionMoveHeld, Status: api.ConditionTrue, Reason: api.ReasonHeldByFreeze, Message: "incident"}
	brake := api.Condition{Type: api.ConditionFailoverHeld, Status: api.ConditionTrue, Reason: api.ReasonManyClustersLost}
	noBrake := api.Condition{Type: api.ConditionFailoverHeld, Status: api.ConditionFalse, Reason: api.ReasonNotHeld}
	staged := func(reason string) api.Condition {
		return api.Condition{Type: api.ConditionRollingOut, Status: api.ConditionTrue, Reason: reason}
	}
	placement := func(list ...api.Condition) api.Object {
		return &api.Placement{Status: api.PlacementStatus{Conditions: list}}
	}
	workload := func(evicted []string, list ...api.Condition) api.Object {
		w := &api.Workload{Status: api.WorkloadStatus{Conditions: list}}
		for _, cluster := range evicted {
			w.Status.Evictions = append(w.Status.Evictions, api.Eviction{Cluster: cluster, Reason: api.EvictedClusterLost})
		}
		return w
	}
	for name, c := range map[string]struct {
		before, after api.Object
		want          []string
	}{
		"first":              {placement(), placement(undecided), []string{"undecided NoSuitableClusters"}},
		"lasts":              {placement(undecided), placement(stillUndecided), nil},
		"decided":            {placement(undecided), placement(decided), []string{"recovered undecided NoSuitableClusters"}},
		"held":               {placement(decided), placement(decided, held), []string{"held HeldByFreeze"}},
		"no longer held":     {placement(decided, held), placement(decided), []string{"recovered held HeldByFreeze"}},
		"from one to other":  {placement(held), placement(undecided), []string{"recovered held HeldByFreeze", "undecided NoSuitableClusters"}},
		"brake":              {workload(nil, noBrake), workload(nil, brake), []string{"brake ManyClustersLost"}},
		"no brake":           {workload(nil, brake), workload(nil, noBrake), []string{"recovered brake ManyClustersLost"}},
		"rollout":            {placement(), placement(staged(api.ReasonWaitingForHealth)), []string{"staged WaitingForHealth"}},
		"rollout goes on":    {placement(staged(api.ReasonWaitingForHealth)), placement(staged(api.ReasonWaitingForSuccessTime)), nil},
		"rollout asks":       {placement(staged(api.ReasonWaitingForHealth)), placement(staged(api.ReasonWaitingForApproval)), []string{"staged WaitingForApproval"}},
		"rollout is over":    {placement(staged(api.ReasonWaitingForHealth)), placement(), []string{"recovered staged WaitingForHealth"}},
		"evictions":          {workload([]string{"a"}), workload([]string{"a", "b"}), []string{"evicting ClusterLost b"}},
		"an eviction ends":   {workload([]string{"a", "b"}), workload([]string{"b"}), []string{"recovered evicting ClusterLost a"}},
		"deleted":            {placement(undecided, held), nil, []string{"recovered undecided NoSuitableClusters", "recovered held HeldByFreeze"}},
		"a cluster is gone":  {&api.Cluster{Status: api.ClusterStatus{State: api.StateOffline}}, nil, []string{"recovered cluster_offline offline"}},
		"not what is hosted": {&api.Cluster{}, &api.Cluster{Status: api.ClusterStatus{State: api.StateOffline}}, nil}, // it was not observed here
	} {
		t.Run(name, func(t *testing.T) {
			record, _, err := Encode(c.before, c.after, Move{Time: time.Now(), Cause: &api.Cause{Type: api.CauseSpec}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			if got := told(t, record, false); !slices.Equal(got, c.want) {
				t.Errorf("got %q, want %q", got, c.want)
			}
			if record != nil && (&Query{}).selects(record) || record != nil && !(&Query{Notices: true}).selects(record) {
				t.Error("what is no decision must be selected for notifications only")
			}
		})
	}
}

func told(t *testing.T, record []byte, decided bool) (texts []string) {
	t.Helper()
	if record == nil {
		return nil
	}
	e, err := DecodeEvent(Item{Record: record})
	if err != nil || e.Decided != decided {
		t.Fatalf("got %+v, %v", e, err)
	}
	for _, n := range e.Notices {
		text := string(n.Event)
		if n.Recovered != "" {
			text += " " + string(n.Recovered)
		}
		text += " " + n.Reason
		if n.Cluster != "" {
			text += " " + n.Cluster
		}
		texts = append(texts, text)
	}
	return texts
}

// A change of a decision, and what is told besides, are one record.
func TestNoticesOfADecision(t *testing.T) {
	before := &api.Placement{Status: api.PlacementStatus{Clusters: []string{"a"}, DecisionRevision: 1}}
	after := &api.Placement{Status: api.PlacementStatus{Clusters: []string{}, DecisionRevision: 2, Conditions: conditions(api.Condition{Type: api.ConditionScheduled, Status: api.ConditionFalse, Reason: "X"})}}
	record, _, err := Encode(before, after, Move{Time: time.Now(), Cause: &api.Cause{Type: api.CauseMetric}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := told(t, record, true); !slices.Equal(got, []string{"undecided X"}) || !(&Query{}).selects(record) {
		t.Errorf("got %q", got)
	}
}

// What was observed of clusters and metrics providers is told as well.
func TestObservedNotices(t *testing.T) {
	cluster := func(state api.ClusterState) api.Object {
		return &api.Cluster{Metadata: api.Metadata{Name: "berlin"}, Status: api.ClusterStatus{State: state}}
	}
	provider := func(status api.ConditionStatus) api.Object {
		return &api.MetricsProvider{Status: api.MetricsProviderStatus{Conditions: conditions(api.Condition{Type: api.ConditionAvailable, Status: status, Reason: "R"})}}
	}
	for i, c := range []struct {
		before, after api.Object
		want          []string
	}{
		{cluster(api.StatePending), cluster(api.StateOnline), nil},
		{cluster(api.StateOnline), cluster(api.StateOffline), []string{"cluster_offline offline berlin"}},
		{cluster(api.StateOffline), cluster(api.StateConnecting), nil},
		{cluster(api.StateConnecting), cluster(api.StateOnline), []string{"recovered cluster_offline connecting berlin"}},
		{cluster(api.StateOnline), cluster(api.StateNotReady), []string{"cluster_offline notready berlin"}},
		{provider(api.ConditionUnknown), provider(api.ConditionFalse), []string{"provider_failing R"}},
		{provider(api.ConditionFalse), provider(api.ConditionFalse), nil},
		{provider(api.ConditionFalse), provider(api.ConditionTrue), []string{"recovered provider_failing R"}},
	} {
		record, err := EncodeObserved(c.before, c.after, time.Now())
		if err != nil {
			t.Fatal(err)
		}
		if got := told(t, record, false); !slices.Equal(got, c.want) {
			t.Errorf("%s: got %q, want %q", fmt.Sprint(i), got, c.want)
		}
	}
}
