package filter_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// verdictOn returns the reason why a cluster does not fit a placement, "" if it fits, and the part of the summary that
// counts it.
func verdictOn(t *testing.T, w *enginetest.World, p *api.Placement, cluster string, current bool) (filter, reason, fits string) {
	t.Helper()
	present := placement.Present{}
	if current {
		present = placement.Present{Decisions: []api.Decision{{Cluster: cluster}}, Answered: true, ScheduledAt: w.Now.Add(-time.Hour)}
	}
	p.SetDefaults()
	e := placement.Explain(w.Fleet(), enginetest.Compile(t, placement.NewQuery, p), nil, ledger.Others{}, present, w.Now)
	for _, c := range e.Render().Candidates {
		if c.Cluster == cluster {
			return c.Filter, c.Reason, e.Sentence()
		}
	}
	t.Fatalf("%s is not a candidate", cluster)
	return "", "", ""
}

func TestTaints(t *testing.T) {
	ago := func(d time.Duration) *time.Time { return new(enginetest.Epoch.Add(-d)) }
	exists := api.Toleration{Operator: api.TolerationExists}
	forDisk := func(seconds int64) api.Toleration {
		return api.Toleration{Key: "disk", Value: "full", TolerationSeconds: &seconds}
	}
	for _, tt := range []struct {
		name        string
		effect      api.TaintEffect
		tolerations []api.Toleration
		current     bool
		reason      string // "" = fits
	}{
		{name: "no toleration", effect: "NoSelect", reason: "taint disk=full:NoSelect is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{name: "no toleration, Kubernetes' name of the effect", effect: "NoExecute", reason: "taint disk=full:NoExecute is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{name: "no toleration, present cluster", effect: "NoSelect", current: true, reason: "taint disk=full:NoSelect is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{name: "only for new clusters, new cluster", effect: "NoSelectIfNew", reason: "taint disk=full:NoSelectIfNew is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{name: "only for new clusters, present cluster", effect: "NoSchedule", current: true},
		{name: "only a preference", effect: "PreferNoSelect"},
		{name: "everything is tolerated", effect: "NoSelect", tolerations: []api.Toleration{exists}},
		{name: "effect tolerated by Kubernetes' name", effect: "NoSelect", tolerations: []api.Toleration{{Key: "disk", Value: "full", Effect: "NoExecute"}}},
		{name: "other value", effect: "NoSelect", tolerations: []api.Toleration{{Key: "disk"}}, reason: "taint disk=full:NoSelect is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{name: "other effect", effect: "NoSelect", tolerations: []api.Toleration{{Key: "disk", Value: "full", Effect: "NoSchedule"}}, reason: "taint disk=full:NoSelect is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{name: "toleration not yet expired", effect: "NoSelect", tolerations: []api.Toleration{forDisk(61)}},
		{name: "toleration expires now", effect: "NoSelect", tolerations: []api.Toleration{forDisk(60)},
			reason: "taint disk=full:NoSelect was tolerated until 2026-03-01T12:00:00Z (there since 2026-03-01T11:59:00Z, toleration disk=full for 60s)"},
		{name: "another toleration still applies", effect: "NoSelect", tolerations: []api.Toleration{forDisk(10), forDisk(90)}},
		{name: "tolerated for no time", effect: "NoSelect", tolerations: []api.Toleration{forDisk(0)}, reason: "taint disk=full:NoSelect is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{name: "tolerated for the longest possible time", effect: "NoSelect", tolerations: []api.Toleration{forDisk(1<<63 - 1)}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.NewWorld()
			c := w.Cluster("c1", nil)
			c.Spec.Taints = []api.Taint{{Key: "disk", Value: "full", Effect: tt.effect}}
			c.Status.Taints = []api.ClusterTaint{{Key: "disk", Value: "full", Effect: tt.effect, TimeAdded: ago(time.Minute)}}
			p := enginetest.NewPlacement("web")
			p.Spec.Tolerations = tt.tolerations
			filter, reason, fits := verdictOn(t, w, p, "c1", tt.current)
			if reason != tt.reason || (filter == "taints") != (tt.reason != "") {
				t.Errorf("filter %q, reason %q, want reason %q", filter, reason, tt.reason)
			}
			if want := `1 has a taint that is not tolerated ("disk=full:` + string(tt.effect.Canonical()) + `")`; tt.reason != "" && !strings.HasSuffix(fits, want) {
				t.Errorf("summary %q, want it to end with %q", fits, want)
			}
		})
	}
}

// TestTolerationsCountFromTimeAdded checks that toleration_seconds counts from time_added, even if that is in the
// future, and for 0 and negative values. Until it ends, the taint is tolerated, and the decision is made again when it
// ends.
func TestTolerationsCountFromTimeAdded(t *testing.T) {
	for _, tt := range []struct {
		name           string
		added, seconds int64 // added is in seconds from now
		until          int64 // in seconds from now; 0 = not tolerated now
		reason         string
	}{
		{"zero, taint in the future", 60, 0, 60, ""},
		{"negative, taint in the future", 60, -10, 50, ""},
		{"positive, taint in the future", 60, 10, 70, ""},
		{"negative beyond the taint's time", 60, -60, 0, "taint k:NoSelect is not tolerated (there since 2026-03-01T12:01:00Z)"},
		{"zero, taint now", 0, 0, 0, "taint k:NoSelect is not tolerated (there since 2026-03-01T12:00:00Z)"},
		{"zero, taint in the past", -60, 0, 0, "taint k:NoSelect is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{"negative, taint in the past", -60, -1, 0, "taint k:NoSelect is not tolerated (there since 2026-03-01T11:59:00Z)"},
		{"most negative", 60, math.MinInt64, 0, "taint k:NoSelect is not tolerated (there since 2026-03-01T12:01:00Z)"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := enginetest.NewWorld()
			c := w.Cluster("c1", nil)
			c.Spec.Taints = []api.Taint{{Key: "k", Effect: api.EffectNoSelect}}
			c.Status.Taints = []api.ClusterTaint{{Key: "k", Effect: api.EffectNoSelect, TimeAdded: new(enginetest.Epoch.Add(time.Duration(tt.added) * time.Second))}}
			p := enginetest.NewPlacement("web")
			p.Spec.Tolerations = []api.Toleration{{Key: "k", Operator: api.TolerationExists, TolerationSeconds: &tt.seconds}}
			_, reason, _ := verdictOn(t, w, p, "c1", true)
			if reason != tt.reason {
				t.Errorf("reason %q, want %q", reason, tt.reason)
			}
			end := enginetest.Epoch.Add(time.Duration(tt.until) * time.Second)
			q := enginetest.Compile(t, placement.NewQuery, p)
			view := placement.NewView(w.Fleet(), q, ledger.Others{}, nil)
			if tt.until == 0 {
				if view.Mask.Has(0) {
					t.Error("the taint is tolerated")
				}
				return
			}
			present := placement.Present{Decisions: []api.Decision{{Cluster: "c1"}}, Answered: true, ScheduledAt: enginetest.Epoch}
			if out := placement.Decide(w.Fleet(), q, view, ledger.Others{}, present, enginetest.Epoch); !out.Same || !out.NextAt.Equal(end) || !view.Until.Equal(end) {
				t.Errorf("same %t, next at %v, admitted until %v; want true and %v", out.Same, out.NextAt, view.Until, end)
			}
			w.Now = end
			if filter, _, _ := verdictOn(t, w, p, "c1", true); filter != "taints" {
				t.Errorf("rejected by %q after the toleration, want taints", filter)
			}
		})
	}
}

// An offline cluster is available to placements that tolerate the taint that the server gave it, for as long as they
// do.
func TestOfflineAndTolerated(t *testing.T) {
	w := enginetest.NewWorld()
	c := w.Cluster("c1", nil)
	c.Status.State = api.StateOffline
	c.Status.Conditions = []api.Condition{{Type: api.ConditionReady, Status: api.ConditionFalse, Message: "no heartbeat"}}
	c.Status.Taints = []api.ClusterTaint{{Key: api.TaintUnreachable, Effect: api.EffectNoSelect, TimeAdded: new(enginetest.Epoch)}}
	p := enginetest.NewPlacement("web")
	if filter, reason, _ := verdictOn(t, w, p, "c1", true); filter != "state" || reason != "is offline: no heartbeat" {
		t.Errorf("rejected by %q because it %q, want state", filter, reason)
	}
	p.Spec.Tolerations = []api.Toleration{{Key: api.TaintUnreachable, Operator: api.TolerationExists, TolerationSeconds: new(int64(300))}}
	end := enginetest.Epoch.Add(5 * time.Minute)
	for _, current := range []bool{false, true} {
		w.Now = end.Add(-1)
		if filter, reason, _ := verdictOn(t, w, p, "c1", current); filter != "" {
			t.Errorf("current %t: rejected by %q because it %q, want it admitted", current, filter, reason)
		}
		if at := placement.NewView(w.Fleet(), enginetest.Compile(t, placement.NewQuery, p), ledger.Others{}, nil).Until; !at.Equal(end) {
			t.Errorf("admitted until %v, want %v", at, end)
		}
		w.Now = end
		filter, reason, _ := verdictOn(t, w, p, "c1", current)
		want := "is offline: no heartbeat; taint scheduler/unreachable:NoSelect was tolerated until 2026-03-01T12:05:00Z"
		if filter != "state" || !strings.HasPrefix(reason, want) {
			t.Errorf("current %t: filter %q, reason %q, want reason %q", current, filter, reason, want)
		}
	}
	// Without the taint it is unknown for how long, so that only the state counts.
	c.Status.Taints = nil
	if filter, _, _ := verdictOn(t, w, p, "c1", true); filter != "state" {
		t.Errorf("rejected by %q, want state", filter)
	}
}

func TestClusterSets(t *testing.T) {
	w := enginetest.NewWorld()
	w.Cluster("c1", nil).Metadata.Labels = map[string]string{"cloud": "a"}
	set := func(name string, namespaces []string, clusters ...string) {
		w.Sets[name] = &api.ClusterSet{Metadata: api.Metadata{Name: name}, Spec: api.ClusterSetSpec{Clusters: clusters, Namespaces: namespaces}}
		w.Sets[name].SetDefaults()
	}
	set("mine", nil, "c1", "ghost")
	set("others", nil, "c2")
	set("foreign", []string{"bank"}, "c1")
	set("all", nil)
	w.Sets["all"].Spec.Clusters, w.Sets["all"].Spec.Selector = nil, &api.LabelSelector{}
	w.Sets["cloudless"] = &api.ClusterSet{Metadata: api.Metadata{Name: "cloudless"}}
	w.Sets["cloudless"].Spec.Selector = &api.LabelSelector{MatchExpressions: []api.SelectorRequirement{{Key: "cloud", Operator: api.SelectorDoesNotExist}}}
	w.Sets["cloudless"].SetDefaults()
	for _, tt := range []struct {
		sets   []string
		reason string
	}{
		{nil, ""},
		{[]string{"mine"}, ""},
		{[]string{"all"}, ""},
		{[]string{"others", "mine", "ghost"}, ""},
		{[]string{"others"}, "is not in cluster set others"},
		{[]string{"foreign"}, "is not in cluster set foreign"},
		{[]string{"others", "ghost"}, "is in none of the cluster sets ghost, others"},
		{[]string{"cloudless"}, "is not in cluster set cloudless"},
	} {
		p := enginetest.NewPlacement("web")
		p.Metadata.Namespace, p.Spec.ClusterSets = "shop", tt.sets
		if filter, reason, _ := verdictOn(t, w, p, "c1", true); reason != tt.reason || (filter == "cluster_sets") != (tt.reason != "") {
			t.Errorf("%q: filter %q, reason %q, want reason %q", tt.sets, filter, reason, tt.reason)
		}
	}
}

func TestPredicates(t *testing.T) {
	w := enginetest.NewWorld()
	c := w.Cluster("c1", nil)
	c.Metadata.Labels = map[string]string{"cloud": "Azure", "tier": "gold"}
	c.Spec.Claims = map[string]string{"version": "1.31"}
	w.Scores[enginetest.ScoreKey("c1", "load")] = &api.PlacementScore{
		Metadata: api.Metadata{Name: "load", Cluster: "c1"},
		Spec:     api.PlacementScoreSpec{Scores: map[string]int64{"cpu": 40}, ValidUntil: new(enginetest.Epoch.Add(time.Minute))},
	}
	amazon := &api.LabelSelector{MatchLabels: map[string]string{"cloud": "Amazon"}}
	absent := &api.LabelSelector{MatchExpressions: []api.SelectorRequirement{{Key: "gpu", Operator: api.SelectorNotIn, Values: []string{"x"}}, {Key: "gpu", Operator: api.SelectorDoesNotExist}}}
	old := &api.LabelSelector{MatchExpressions: []api.SelectorRequirement{{Key: "version", Operator: api.SelectorIn, Values: []string{"1.29", "1.30"}}}}
	loaded := `cluster.scores("load").exists(s, s.value > 10)`
	for _, tt := range []struct {
		name         string
		predicates   []api.Predicate
		after        time.Duration
		reason, fits string
	}{
		{"none", nil, 0, "", ""},
		{"empty", []api.Predicate{{}}, 0, "", ""},
		{"absent labels match negations", []api.Predicate{{LabelSelector: absent}}, 0, "", ""},
		{"one label", []api.Predicate{{LabelSelector: amazon}}, 0,
			`does not match predicate 1: label "cloud" is "Azure", wanted In (Amazon)`, `1 does not match predicate "label cloud In (Amazon)"`},
		{"one of two", []api.Predicate{{LabelSelector: amazon}, {CEL: []string{`cluster.metadata.labels["tier"] == "gold"`}}}, 0, "", ""},
		{"the closest", []api.Predicate{{LabelSelector: amazon, ClaimSelector: old}, {ClaimSelector: old}}, 0,
			`does not match predicate 2: claim "version" is "1.31", wanted In (1.29, 1.30)`, "1 matches no predicate"},
		{"an expression", []api.Predicate{{CEL: []string{`cluster.metadata.labels["tier"] == "silver"`}}}, 0,
			`does not match predicate 1: cluster.metadata.labels["tier"] == "silver" is false`, ""},
		{"a score", []api.Predicate{{CEL: []string{loaded}}}, 0, "", ""},
		{"an expired score", []api.Predicate{{CEL: []string{loaded}}}, time.Hour, "does not match predicate 1: " + loaded + `: fails at line 1, column 15 in scores(): the cluster's scores of "load" expired at 2026-03-01T12:01:00Z`, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w.Now = enginetest.Epoch.Add(tt.after)
			p := enginetest.NewPlacement("web")
			p.Spec.Predicates = tt.predicates
			filter, reason, fits := verdictOn(t, w, p, "c1", true)
			if !strings.HasPrefix(reason, tt.reason) || (reason == "") != (tt.reason == "") || (filter == "predicates") != (tt.reason != "") {
				t.Errorf("filter %q, reason %q, want reason %q", filter, reason, tt.reason)
			}
			if !strings.HasSuffix(fits, tt.fits) {
				t.Errorf("summary %q, want it to end with %q", fits, tt.fits)
			}
		})
	}
}

func TestBadPredicateIsNamed(t *testing.T) {
	p := enginetest.NewPlacement("web")
	p.Spec.Predicates = []api.Predicate{{}, {CEL: []string{"true", "1 +"}}}
	if _, err := placement.NewQuery(p); err == nil || !strings.Contains(err.Error(), "spec.predicates[1].cel[1]") {
		t.Errorf("error %v, want one that names the field", err)
	}
}
