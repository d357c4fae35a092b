package placement

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// rankedBy returns a placement with one prioritizer.
func rankedBy(c api.PrioritizerConfig) *api.Placement {
	p := enginetest.NewPlacement("web")
	p.Spec.Strategy, p.Spec.Metrics = api.StrategyPrioritizers, nil
	p.Spec.PrioritizerPolicy = &api.PrioritizerPolicy{Mode: api.ModeExact, Configurations: []api.PrioritizerConfig{c}}
	p.SetDefaults()
	return p
}

func byLoad() *api.Placement {
	return rankedBy(api.PrioritizerConfig{Type: api.PrioritizerAddon, ResourceName: "load", ScoreName: "cpu"})
}

// explanationOf explains a placement that is currently on some clusters.
func explanationOf(t *testing.T, w *enginetest.World, p *api.Placement, present ...string) *api.Explanation {
	t.Helper()
	was := Present{Answered: true, ScheduledAt: enginetest.Epoch.Add(-time.Hour)}
	for _, name := range present {
		was.Decisions = append(was.Decisions, api.Decision{Cluster: name})
	}
	return Explain(w.Fleet(), enginetest.Compile(t, NewQuery, p), nil, ledger.Others{}, was, w.Now).Render()
}

// TestExplanationTellsExpiredFromAbsentFromZero checks that the explanation distinguishes expired, absent and zero
// scores, which all count as 0. For an expired score it gives the value and since when it no longer counts.
func TestExplanationTellsExpiredFromAbsentFromZero(t *testing.T) {
	w := enginetest.NewWorld()
	for _, name := range []string{"expired", "zero", "none", "other", "valid"} {
		w.Cluster(name, nil)
	}
	w.Scores[enginetest.ScoreKey("expired", "load")] = enginetest.Score("expired", 70, time.Minute)
	w.Scores[enginetest.ScoreKey("zero", "load")] = enginetest.Score("zero", 0, 0)
	other := enginetest.Score("other", 0, 0)
	other.Spec.Scores = map[string]int64{"memory": 3}
	w.Scores[enginetest.ScoreKey("other", "load")] = other
	w.Scores[enginetest.ScoreKey("valid", "load")] = enginetest.Score("valid", 40, time.Hour)
	w.Now = enginetest.Epoch.Add(2 * time.Minute)
	want := map[string]string{
		"expired": `{"name":"load/cpu","raw":70,"value":0,"weight":1,"share":0,"expired_at":"2026-03-01T12:01:00Z","reason":"expired since 2026-03-01T12:01:00Z; counts as 0"}`,
		"zero":    `{"name":"load/cpu","raw":0,"value":0,"weight":1,"share":0}`,
		"none":    `{"name":"load/cpu","value":0,"weight":1,"share":0,"reason":"absent: the cluster has no placement score \"load\"; counts as 0"}`,
		"other":   `{"name":"load/cpu","value":0,"weight":1,"share":0,"reason":"absent: the placement score \"load\" has no score \"cpu\"; counts as 0"}`,
		"valid":   `{"name":"load/cpu","raw":40,"value":40,"weight":1,"share":40}`,
	}
	for _, c := range explanationOf(t, w, byLoad()).Candidates {
		got, err := json.Marshal(c.Scores[0])
		if err != nil || string(got) != want[c.Cluster] {
			t.Errorf("%s: got %s, want %s (error %v)", c.Cluster, got, want[c.Cluster], err)
		}
		delete(want, c.Cluster)
	}
	if len(want) > 0 {
		t.Errorf("candidates missing: %v", want)
	}
}

// TestExplanationOfHeldClusterTellsExpired covers clusters that only the present decision may keep.
func TestExplanationOfHeldClusterTellsExpired(t *testing.T) {
	w := enginetest.NewWorld()
	w.Cluster("held", nil).Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelectIfNew}}
	w.Scores[enginetest.ScoreKey("held", "load")] = enginetest.Score("held", 70, time.Minute)
	x := explanationOf(t, w, byLoad(), "held")
	if end := enginetest.Epoch.Add(time.Minute + 1); x.NextAt == nil || !x.NextAt.Equal(end) {
		t.Errorf("next_at %v, want %v", x.NextAt, end)
	}
	w.Now = enginetest.Epoch.Add(time.Hour)
	x = explanationOf(t, w, byLoad(), "held")
	if c := x.Candidates[0]; !c.Selected || c.Scores[0].ExpiredAt == nil || *c.Scores[0].Raw != 70 {
		t.Errorf("candidate %+v, want it selected, with its raw score and when that expired", c)
	}
}

// TestExplanationTellsWhyAFigureIsMissing covers the other prioritizers that count unknown values as 0.
func TestExplanationTellsWhyAFigureIsMissing(t *testing.T) {
	for _, tt := range []struct {
		name   string
		config api.PrioritizerConfig
		change func(w *enginetest.World, c *api.Cluster)
		reason string
	}{
		{"no such metric listed", api.PrioritizerConfig{Type: api.PrioritizerMetric, Name: "load"}, func(*enginetest.World, *api.Cluster) {},
			`absent: the cluster lists no metric "load"; counts as 0`},
		{"metric without a value", api.PrioritizerConfig{Type: api.PrioritizerMetric, Name: "load"}, func(w *enginetest.World, c *api.Cluster) {
			c.Spec.Metrics = []api.MetricRef{{Name: "load"}}
			m := w.Gauge("load", 0, 1, 0)
			m.Spec.OnFailure, m.Status.Value = api.FailureIgnore, nil
		}, `metric "load" is not available: Pending (the metric has not been read yet); counts as 0`},
		{"no allocatable amount", api.PrioritizerConfig{Name: api.PrioritizerAllocatableCPU}, func(*enginetest.World, *api.Cluster) {},
			`absent: the cluster's allocatable cpu or its capacity is not known; counts as 0`},
		{"no available amount", api.PrioritizerConfig{Name: api.PrioritizerAvailableMemory}, func(*enginetest.World, *api.Cluster) {},
			`absent: the cluster's allocatable memory is not known; counts as 0`},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.NewWorld()
			tt.change(w, w.Cluster("c1", nil))
			part := explanationOf(t, w, rankedBy(tt.config)).Candidates[0].Scores[0]
			if part.Reason != tt.reason || part.Raw != nil || part.Value != 0 {
				t.Errorf("got %+v, want the reason %q", part, tt.reason)
			}
		})
	}
}

// TestExplanationNextAt checks that next_at, the time at which the decision may change with time alone, includes the
// expiry of scores and of metric values.
func TestExplanationNextAt(t *testing.T) {
	soon, late := time.Minute, time.Hour
	for _, tt := range []struct {
		name   string
		spec   func() *api.Placement
		change func(w *enginetest.World)
		want   time.Duration // 0 = never
	}{
		{"score in use", byLoad, func(*enginetest.World) {}, soon + 1},
		{"other score", func() *api.Placement {
			return rankedBy(api.PrioritizerConfig{Type: api.PrioritizerAddon, ResourceName: "load", ScoreName: "memory"})
		}, func(*enginetest.World) {}, 0},
		{"no score in use", func() *api.Placement { return rankedBy(api.PrioritizerConfig{Name: api.PrioritizerBalance}) }, func(*enginetest.World) {}, 0},
		{"score of a cluster that does not fit", byLoad, func(w *enginetest.World) { w.Clusters["c1"].Status.State = api.StateOffline }, late + 1},
		{"expired score", byLoad, func(w *enginetest.World) { w.Now = enginetest.Epoch.Add(2 * soon) }, late + 1},
		{"all scores expired", byLoad, func(w *enginetest.World) { w.Now = enginetest.Epoch.Add(2 * late) }, 0},
		{"an expression reads scores", func() *api.Placement {
			return withCEL(`managedCluster.scores("load").all(s, s.value > 0)`)
		}, func(*enginetest.World) {}, soon + 1},
		{"a reading ends", func() *api.Placement { return enginetest.NewPlacement("web") }, func(w *enginetest.World) {
			w.Clusters["c1"].Spec.Metrics = []api.MetricRef{{Name: "load"}}
			unreachable(w, "load", soon/2)
		}, soon / 2},
		{"a reading ends that no candidate lists", func() *api.Placement { return enginetest.NewPlacement("web") }, func(w *enginetest.World) { unreachable(w, "load", soon/2) }, 0},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.NewWorld()
			w.Cluster("c1", nil)
			w.Cluster("c2", nil)
			w.Scores[enginetest.ScoreKey("c1", "load")] = enginetest.Score("c1", 50, soon)
			w.Scores[enginetest.ScoreKey("c2", "load")] = enginetest.Score("c2", 40, late)
			tt.change(w)
			next := explanationOf(t, w, tt.spec()).NextAt
			switch {
			case tt.want == 0 && next != nil, tt.want != 0 && (next == nil || !next.Equal(enginetest.Epoch.Add(tt.want))):
				t.Errorf("next_at %v, want %v after %v", next, tt.want, enginetest.Epoch)
			}
		})
	}
}

// unreachable adds a metric whose provider cannot be reached, and whose last value remains valid for some time.
func unreachable(w *enginetest.World, name string, left time.Duration) {
	m := w.Gauge(name, 0, 1, 0.5)
	m.Spec.MaxAge = "10m"
	m.Status.ObservedAt = new(enginetest.Epoch.Add(left - 10*time.Minute))
	m.Status.Conditions = []api.Condition{{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: api.ReasonUnreachableMetricsProvider}}
}

// TestScoresValidMessageIsTrue checks that the explanation lists the expired scores, as the condition promises.
func TestScoresValidMessageIsTrue(t *testing.T) {
	w := enginetest.NewWorld()
	w.Cluster("c1", nil)
	w.Scores[enginetest.ScoreKey("c1", "load")] = enginetest.Score("c1", 50, time.Minute)
	w.Now = enginetest.Epoch.Add(time.Hour)
	f, p := w.Fleet(), byLoad()
	q := enginetest.Compile(t, NewQuery, p)
	view := NewView(f, q, ledger.Others{}, nil)
	status, _ := NewStatus(f, q, view, &p.Metadata, &p.Status, Decide(f, q, view, ledger.Others{}, Present{}, w.Now), w.Now, func() string { return "" })
	c := api.FindCondition(status.Conditions, api.ConditionScoresValid)
	if c == nil || c.Status != api.ConditionFalse || !strings.HasSuffix(c.Message, "the explanation says which") {
		t.Fatalf("condition %+v, want False, with a reference to the explanation", c)
	}
	if x := explanationOf(t, w, p); !strings.HasPrefix(x.Candidates[0].Scores[0].Reason, "expired since 2026-03-01T12:01:00Z") {
		t.Errorf("candidates %+v do not say which score expired", x.Candidates)
	}
}

func withCEL(text string) *api.Placement {
	p := enginetest.NewPlacement("web")
	p.Spec.Predicates = []api.Predicate{{CEL: []string{text}}}
	p.Spec.Tolerations = []api.Toleration{{Operator: api.TolerationExists}}
	return p
}
