package expression

import (
	"maps"
	"testing"
)

// versionedCluster is a cluster of which results are remembered; its version is its address.
type versionedCluster struct{ *testCluster }

// Version implements Versioned.
func (c versionedCluster) Version() any { return c.testCluster }

// TestAfford checks that a budget limits what is evaluated, that another attempt continues where the last one ended,
// and that a result is not remembered for another version, metric or score.
func TestAfford(t *testing.T) {
	e, err := compile(`cluster.metadata.labels.exists(l, l == "env") && cluster.metric("latency") < 20.0 && cluster.scores("demo").exists(s, s.value == 90)`)
	if err != nil {
		t.Fatal(err)
	}
	first, second := versionedCluster{full()}, versionedCluster{full()}
	second.name = "eu-2"
	budget := 0
	if _, known := e.Afford(first, &budget); known {
		t.Fatal("something was evaluated without a budget")
	}
	e.Remember()
	budget = 1
	if match, known := e.Afford(first, &budget); !match || !known || budget > 0 {
		t.Fatalf("Afford() = %v, %v, left %d", match, known, budget)
	}
	if match, known := e.Afford(first, &budget); !match || !known {
		t.Fatal("the result was not remembered")
	}
	if _, known := e.Afford(second, &budget); known {
		t.Fatal("the result is that of another cluster")
	}
	first.metrics = map[string]float64{"latency": 30}
	if _, known := e.Afford(first, &budget); known || e.Match(first) {
		t.Fatal("the result is that of another value of the metric")
	}
	first.metrics = second.metrics
	first.scores = maps.Clone(second.scores)
	first.scores["demo"] = []Score{{"cpu", 80}}
	if _, known := e.Afford(first, &budget); known || e.Match(first) {
		t.Fatal("the result is that of other scores")
	}
	changed := versionedCluster{full()}
	changed.labels = nil
	if _, known := e.Afford(changed, &budget); known || e.Match(changed) {
		t.Fatal("the result is that of another version")
	}
}

// TestAffordEqualValues checks that the result of an expression that reads only some labels is remembered for all
// clusters with the same values.
func TestAffordEqualValues(t *testing.T) {
	e, err := compile(`[1, 2, 3].exists(n, string(n) == cluster.metadata.labels["rank"])`)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, only := e.Keys(); !only || e.Bounded() {
		t.Fatal("the expression does not test what it should")
	}
	e.Remember()
	ranked := func(name, rank string) *testCluster {
		return &testCluster{name: name, labels: map[string]string{"rank": rank, "name": name}}
	}
	for _, c := range []struct {
		cluster      *testCluster
		budget       int
		match, known bool
	}{
		{ranked("a", "2"), 0, false, false},
		{ranked("a", "2"), 1, true, true},
		{ranked("b", "2"), 0, true, true},
		{ranked("b", "4"), 0, false, false},
		{ranked("b", "4"), 1, false, true},
		{ranked("c", "4"), 0, false, true},
	} {
		if match, known := e.Afford(c.cluster, &c.budget); match != c.match || known != c.known {
			t.Errorf("%s with rank %s: Afford() = %v, %v, want %v, %v", c.cluster.name, c.cluster.labels["rank"], match, known, c.match, c.known)
		}
	}
}
