package expression

import (
	"slices"
	"testing"
)

// TestReads checks what an expression reads according to its text, so that callers know which changes may affect its
// result.
func TestReads(t *testing.T) {
	for _, tt := range []struct {
		text            string
		labels, claims  []string
		only            bool
		scores, metrics bool
	}{
		{`true`, nil, nil, true, false, false},
		{`cluster.metadata.labels["b"] == "x" && managedCluster.metadata.labels.a != "y" || "c" in cluster.metadata.labels && has(cluster.metadata.labels.a)`, []string{"a", "b", "c"}, nil, true, false, false},
		{`cluster.spec.claims["k"] == cluster.metadata.labels["l"]`, []string{"l"}, []string{"k"}, true, false, false},
		{`cluster.metadata.labels["a"].split(",").exists(x, x == "b")`, []string{"a"}, nil, true, false, false},
		{`semver(managedCluster.metadata.labels["v"]).isLessThan(semver("1.0.0"))`, []string{"v"}, nil, true, false, false},
		{`cluster.metadata.labels[cluster.metadata.labels["a"]] == "x"`, nil, nil, false, false, false},
		{`cluster.metadata.labels.all(k, k != "x")`, nil, nil, false, false, false},
		{`cluster.metadata.labels.size() == 0`, nil, nil, false, false, false},
		{`managedCluster.metadata.labels[?"a"].orValue("") == "x"`, nil, nil, false, false, false},
		{`cluster.metadata.name == "x"`, nil, nil, false, false, false},
		{`managedCluster.status.clusterClaims.exists(c, c.name == "x")`, nil, nil, false, false, false},
		{`["x"].exists(x, cluster.scores(x).size() > 0)`, nil, nil, false, true, false},
		{`{"a": managedCluster.metric("m")}["a"] > 1.0`, nil, nil, false, false, true},
	} {
		t.Run(tt.text, func(t *testing.T) {
			e := mustCompile(t, tt.text)
			labels, claims, only := e.Keys()
			if !slices.Equal(labels, tt.labels) || !slices.Equal(claims, tt.claims) || only != tt.only {
				t.Errorf("Keys = %q, %q, %t, want %q, %q, %t", labels, claims, only, tt.labels, tt.claims, tt.only)
			}
			if e.UsesScores() != tt.scores || e.UsesMetrics() != tt.metrics {
				t.Errorf("scores %t, metrics %t, want %t, %t", e.UsesScores(), e.UsesMetrics(), tt.scores, tt.metrics)
			}
		})
	}
}
