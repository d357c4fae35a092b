package placement

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// krakeWorld has the metrics of the reference's examples: ec 0.9, ge 0.1, one out of range, one with another range, and
// one for each other way to fail.
func krakeWorld() *enginetest.World {
	w := enginetest.NewWorld()
	w.Gauge("ec", 0, 1, 0.9)
	w.Gauge("ge", 0, 1, 0.1)
	w.Gauge("bad", 0, 1, 1.5)
	w.Gauge("load", 0, 10, 5)
	w.Gauge("nop", 0, 1, 0.5).Spec.MetricsProvider.Name = "nowhere"
	down := w.Gauge("down", 0, 1, 0.5)
	down.Status.Value = nil
	down.Status.Conditions = []api.Condition{{
		Type: api.ConditionAvailable, Status: api.ConditionFalse,
		Reason: api.ReasonUnreachableMetricsProvider, Message: "connection refused",
	}}
	return w
}

// TestKrakeSelection runs Krake's selection, case by case, on fleets of two or three clusters.
func TestKrakeSelection(t *testing.T) {
	type weights = map[string]float64
	for _, tt := range []struct {
		name     string
		clusters map[string]weights
		labels   map[string]string // value of "location" by cluster
		states   map[string]api.ClusterState
		current  string
		age      time.Duration
		require  []string // the placement's label constraints
		want     string   // "" = none
		scores   map[string]float64
		reasons  map[string]string // reasons of the failing metrics of c1
	}{
		{
			name:     "weights decide",
			clusters: map[string]weights{"c1": {"ec": 10, "ge": 1}, "c2": {"ec": 1, "ge": 10}},
			want:     "c1", scores: map[string]float64{"c1": 0.827273, "c2": 0.172727},
		}, {
			name:     "mirrored weights decide for the other",
			clusters: map[string]weights{"c1": {"ec": 1, "ge": 10}, "c2": {"ec": 10, "ge": 1}},
			want:     "c2", scores: map[string]float64{"c1": 0.172727, "c2": 0.827273},
		}, {
			name:     "after reschedule_after a better cluster takes over",
			clusters: map[string]weights{"c1": {"ec": 10, "ge": 1}, "c2": {"ec": 1, "ge": 10}},
			current:  "c2", age: 60 * time.Second,
			want: "c1", scores: map[string]float64{"c1": 0.827273, "c2": 0.18018},
		}, {
			name:     "before that it does not",
			clusters: map[string]weights{"c1": {"ec": 10, "ge": 1}, "c2": {"ec": 1, "ge": 10}},
			current:  "c2", age: 60*time.Second - 1, want: "c2",
		}, {
			name:     "a young decision for a cluster that went offline moves at once",
			clusters: map[string]weights{"c1": {"ec": 10, "ge": 1}, "c2": {"ec": 1, "ge": 10}},
			current:  "c1", age: time.Second, states: map[string]api.ClusterState{"c1": api.StateOffline}, want: "c2",
		}, {
			name:     "the better current cluster stays",
			clusters: map[string]weights{"c1": {"ec": 10, "ge": 1}, "c2": {"ec": 1, "ge": 10}},
			current:  "c1", age: time.Hour, want: "c1", scores: map[string]float64{"c1": 9.2 / 11.1, "c2": 0.172727},
		}, {
			name:     "a current cluster without metrics loses to any with",
			clusters: map[string]weights{"c1": {}, "c2": {"ge": 1}},
			current:  "c1", age: time.Hour, want: "c2", scores: map[string]float64{"c1": 0.1, "c2": 0.1},
		}, {
			name:     "without metrics the current cluster stays",
			clusters: map[string]weights{"c1": {}, "c2": {}, "c3": {}},
			current:  "c3", age: time.Hour, want: "c3", scores: map[string]float64{"c1": 0, "c2": 0, "c3": 0.1},
		}, {
			name:     "equal scores keep the current cluster",
			clusters: map[string]weights{"c1": {"ec": 1}, "c2": {"ec": 7}},
			current:  "c2", age: time.Hour, want: "c2",
		}, {
			name:     "another range is mapped to 0 to 1",
			clusters: map[string]weights{"c1": {"load": 1}, "c2": {"ge": 1}},
			want:     "c1", scores: map[string]float64{"c1": 0.5, "c2": 0.1},
		}, {
			name:     "one failing metric excludes the cluster whatever the others say",
			clusters: map[string]weights{"c1": {"ec": 10, "bad": 1}, "c2": {"ge": 1}},
			want:     "c2", reasons: map[string]string{"bad": api.ReasonInvalidMetric},
		}, {
			name:     "a provider that does not exist",
			clusters: map[string]weights{"c1": {"nop": 1}, "c2": {}},
			want:     "c2", reasons: map[string]string{"nop": api.ReasonUnknownMetricsProvider},
		}, {
			name:     "a metric that does not exist",
			clusters: map[string]weights{"c1": {"ghost": 1}, "c2": {}},
			want:     "c2", reasons: map[string]string{"ghost": api.ReasonUnknownMetric},
		}, {
			name:     "a provider that cannot be reached",
			clusters: map[string]weights{"c1": {"down": 1}, "c2": {}},
			want:     "c2", reasons: map[string]string{"down": api.ReasonUnreachableMetricsProvider},
		}, {
			name:     "every failing metric has its own reason, the good one none",
			clusters: map[string]weights{"c1": {"bad": 1, "ghost": 1, "nop": 1, "down": 1, "ec": 1}},
			reasons: map[string]string{
				"bad": api.ReasonInvalidMetric, "ghost": api.ReasonUnknownMetric,
				"nop": api.ReasonUnknownMetricsProvider, "down": api.ReasonUnreachableMetricsProvider,
			},
		}, {
			name:     "the label filter comes before the score",
			clusters: map[string]weights{"c1": {"ec": 1}, "c2": {"ge": 1}},
			labels:   map[string]string{"c1": "DE", "c2": "SK"}, require: []string{"location is SK"}, want: "c2",
		}, {
			name:     "labels that no cluster has",
			clusters: map[string]weights{"c1": {}, "c2": {}},
			labels:   map[string]string{"c1": "DE", "c2": "SK"}, require: []string{"location is FR"},
		}, {
			name:     "an absent label does not satisfy a negation",
			clusters: map[string]weights{"c1": {}, "c2": {}},
			labels:   map[string]string{"c2": "SK"}, require: []string{"location is not DE"}, want: "c2",
		}, {
			name:     "a current cluster that matches no longer is left at once",
			clusters: map[string]weights{"c1": {"ec": 1}, "c2": {"ge": 1}},
			labels:   map[string]string{"c1": "DE", "c2": "SK"}, require: []string{"location is SK"},
			current: "c1", age: time.Second, want: "c2",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := krakeWorld()
			for name, metrics := range tt.clusters {
				c := w.Cluster(name, metrics)
				if value, ok := tt.labels[name]; ok {
					c.Metadata.Labels = map[string]string{"location": value}
				}
				c.Status.State = tt.states[name]
			}
			p := enginetest.NewPlacement("web")
			p.Spec.LabelConstraints = tt.require
			present := Present{}
			if tt.current != "" {
				present = on(w, tt.age, tt.current)
			}
			names, _ := decide(t, w, p, present)
			if tt.want == "" && len(names) > 0 || tt.want != "" && !slices.Equal(names, []string{tt.want}) {
				t.Errorf("chosen %q, want %q", names, tt.want)
			}
			f := w.Fleet()
			for _, c := range Explain(f, enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, present, w.Now).Render().Candidates {
				if want, ok := tt.scores[c.Cluster]; ok && (c.Score == nil || !near(*c.Score, want)) {
					t.Errorf("%s scores %v, want %v", c.Cluster, c.Score, want)
				}
			}
			for _, m := range Observe(f, nil, w.Clusters["c1"]).Status.Metrics {
				if m.Reason != tt.reasons[m.Name] {
					t.Errorf("metric %s has reason %q, want %q", m.Name, m.Reason, tt.reasons[m.Name])
				}
			}
		})
	}
}

// TestOnlyOnlineIsEligible checks that a cluster in any other state, known or unknown, in upper or lower case, gets no
// placements.
func TestOnlyOnlineIsEligible(t *testing.T) {
	for _, state := range []api.ClusterState{
		"PENDING", "CONNECTING", "OFFLINE", "UNHEALTHY", "NOTREADY", "FAILING_METRICS", "CREATING", "RECONCILING",
		"DELETING", "FAILING_RECONCILIATION", "FAILED", "DEGRADED", "failed", "Whatever",
	} {
		w := krakeWorld()
		w.Cluster("c1", map[string]float64{"ec": 1}).Status.State = state
		w.Cluster("c2", nil).Status.State = "Online"
		for _, c := range w.Clusters {
			c.SetDefaults()
		}
		if names, _ := decide(t, w, enginetest.NewPlacement("web"), Present{}); !slices.Equal(names, []string{"c2"}) {
			t.Errorf("%s: chosen %q, want c2", state, names)
		}
	}
}

// TestStickinessMargin checks that a decision moves from m1 to m2 if m2 > (W·m1+s)/(W+s).
func TestStickinessMargin(t *testing.T) {
	for _, tt := range []struct {
		weight, here, there, stickiness float64
		moves                           bool
	}{
		{1, 0.5, 0.545, 0.1, false},
		{1, 0.5, 0.546, 0.1, true},
		{11, 0.5, 0.5045, 0.1, false},
		{11, 0.5, 0.5046, 0.1, true},
		{1, 0, 0.09, 0.1, false},
		{1, 0, 0.091, 0.1, true},
		{1, 0.5, 0.75, 1, false},
		{1, 1, 1, 0.1, false},
		{1, 0.5, 0.5, 0, false},
		{1, 0.5, 0.5000001, 0, true},
	} {
		w := enginetest.NewWorld()
		w.Gauge("here", 0, 1, tt.here)
		w.Gauge("there", 0, 1, tt.there)
		w.Cluster("current", map[string]float64{"here": tt.weight})
		w.Cluster("other", map[string]float64{"there": tt.weight})
		p := enginetest.NewPlacement("web")
		p.Spec.Metrics.Stickiness = &tt.stickiness
		if names, _ := decide(t, w, p, on(w, time.Hour, "current")); (names[0] == "other") != tt.moves {
			t.Errorf("%+v: chosen %q", tt, names)
		}
	}
}

func TestNormalize(t *testing.T) {
	spec := func(low, high float64, allowed ...float64) api.MetricSpec {
		return api.MetricSpec{Min: &low, Max: &high, AllowedValues: allowed}
	}
	down := spec(0, 20)
	down.Direction = api.Descending
	for _, tt := range []struct {
		spec  api.MetricSpec
		raw   float64
		want  float64
		valid bool
	}{
		{spec(0, 5), 2.5, 0.5, true},
		{spec(-5, 5), -5, 0, true},
		{spec(-5, 5), 0, 0.5, true},
		{spec(0, 20), 5, 0.25, true},
		{down, 5, 0.75, true},
		{down, 0, 1, true},
		{down, 20, 0, true},
		{spec(0, 5, 0, 1, 4), 4.0, 0.8, true},
		{spec(0, 5, 0, 1, 4), 4.5, 0, false},
		{spec(0, 1), math.Inf(1), 0, false},
		{spec(0, 1), math.Inf(-1), 0, false},
		{spec(0, 1), math.NaN(), 0, false},
		{spec(0, 1), math.Nextafter(1, 2), 0, false},
		{spec(1, 1), 1, 0, false},
		{spec(2, 1), 1.5, 0, false},
		{api.MetricSpec{}, 1, 0, false},
	} {
		got, err := columns.Normalize(tt.spec, tt.raw)
		if (err == nil) != tt.valid || got != tt.want {
			t.Errorf("%v: %v, %v; want %v", tt.raw, got, err, tt.want)
		}
		if err != nil && err.Error() == "" {
			t.Errorf("%v: empty error message", tt.raw)
		}
	}
}
