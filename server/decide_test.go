package main

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// fillFleet creates two clusters, each rated by its own static metric, and one placement.
func fillFleet(s *runningServer, berlin, paris float64) *api.Placement {
	put(s, staticProvider("rates", map[string]float64{"berlin": berlin, "paris": paris}))
	for _, name := range []string{"berlin", "paris"} {
		put(s, metric("rate-"+name, "rates", name))
		put(s, cluster(name, "rate-"+name))
	}
	return put(s, placement("shop", "web"))
}

func TestDecisionIsInTheAnswerAndFollowsTheMetric(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	web := fillFleet(s, 90, 10)
	if !slices.Equal(web.Status.Clusters, []string{"berlin"}) {
		t.Fatalf("clusters %v in the answer to PUT, want berlin", web.Status.Clusters)
	}
	if web.Status.Decisions[0].Score != 0.9 || web.Status.DecisionRevision != 1 || web.Status.ObservedGeneration != 1 {
		t.Fatalf("unexpected status %+v", web.Status)
	}
	other := put(s, placement("shop", "other"))
	other.Spec.LabelConstraints = []string{"location is not DE"}
	other = put(s, other)
	if len(other.Status.Clusters) != 0 {
		t.Fatalf("clusters %v of a placement that fits nowhere, want none", other.Status.Clusters)
	}
	before := s.versions()

	put(s, staticProvider("rates", map[string]float64{"berlin": 10, "paris": 90}))
	moved := get[*api.Placement](s, placementKey("shop", "web"))
	if !slices.Equal(moved.Status.Clusters, []string{"paris"}) || moved.Status.DecisionRevision != 2 {
		t.Fatalf("clusters %v after the change, revision %d", moved.Status.Clusters, moved.Status.DecisionRevision)
	}
	explanation, err := s.client.Explain(context.Background(), placementKey("shop", "web"))
	if err != nil {
		t.Fatal(err)
	}
	if len(explanation.Candidates) != 2 || explanation.Candidates[0].Cluster != "paris" || !explanation.Candidates[0].Selected {
		t.Fatalf("unexpected explanation %+v", explanation)
	}
	// Nothing else is written again.
	after := s.versions()
	changed := map[string]bool{}
	for key, version := range after {
		if before[key] != version {
			changed[string(key.Kind)+" "+key.Name] = true
		}
	}
	want := map[string]bool{"placement web": true, "metric rate-berlin": true, "metric rate-paris": true, "metrics_provider rates": true}
	if !maps.Equal(changed, want) {
		t.Fatalf("changed %v, want %v", changed, want)
	}
}

func TestRestartKeepsEverythingAndRewritesNothing(t *testing.T) {
	dir := t.TempDir()
	s := start(t, testConfig(dir))
	fillFleet(s, 90, 10)
	put(s, placement("shop", "second"))
	secret := staticProvider("sealed", nil)
	secret.Spec = api.MetricsProviderSpec{Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: "http://127.0.0.1:1"}, BearerToken: api.NewSecret("hush"), Interval: "1h"}
	put(s, secret)
	before := s.objects()
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	if text := s.logs.String(); text == "" {
		t.Fatal("no log")
	}

	s = start(t, testConfig(dir))
	// Long enough for the readings that follow a start.
	time.Sleep(2500 * time.Millisecond) //nolint:forbidigo // nothing shows that no reading follows
	after := s.objects()
	if len(before) != len(after) || len(after) != 8 {
		t.Fatalf("%d objects before, %d afterwards", len(before), len(after))
	}
	for i := range before {
		was, is := toJSON(t, before[i]), toJSON(t, after[i])
		if was != is {
			t.Errorf("changed by the restart from\n%s\nto\n%s", was, is)
		}
	}
}

func TestDecisionIsMadeAtTheMomentTimeAloneChangesIt(t *testing.T) {
	s := start(t, testConfig(t.TempDir()))
	put(s, staticProvider("rates", map[string]float64{"berlin": 90, "paris": 10}))
	for _, name := range []string{"berlin", "paris"} {
		put(s, metric("rate-"+name, "rates", name))
		put(s, cluster(name, "rate-"+name))
	}
	p := placement("shop", "web")
	p.Spec.RescheduleAfter = "3s"
	first := put(s, p)
	put(s, staticProvider("rates", map[string]float64{"berlin": 10, "paris": 90}))
	held := get[*api.Placement](s, placementKey("shop", "web"))
	if gap := held.Status.ScheduledAt.Sub(*first.Status.ScheduledAt); !slices.Equal(held.Status.Clusters, []string{"berlin"}) && gap < 3*time.Second {
		t.Fatalf("moved within reschedule_after: %v after %s", held.Status.Clusters, gap)
	}
	eventually.True(t, "the placement moves", func() bool {
		return slices.Equal(get[*api.Placement](s, placementKey("shop", "web")).Status.Clusters, []string{"paris"})
	})
	moved := get[*api.Placement](s, placementKey("shop", "web"))
	if gap := moved.Status.ScheduledAt.Sub(*first.Status.ScheduledAt); gap < 3*time.Second {
		t.Fatalf("moved after %s, want at least 3s", gap)
	}
}

func toJSON(t rapid.TB, value any) string {
	t.Helper()
	data, err := json.Marshal(value)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}
