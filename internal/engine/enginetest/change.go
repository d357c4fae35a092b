package enginetest

import (
	"iter"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"pgregory.net/rapid"
)

// Compile is the query of a placement that is valid, by the function that compiles it.
func Compile[Query any](t rapid.TB, compile func(*api.Placement) (Query, error), p *api.Placement) Query {
	t.Helper()
	q, err := compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Clusters are changes by which clusters come to be as they are given.
func Clusters(list ...*api.Cluster) columns.Changes {
	c := columns.Changes{Clusters: map[string]*api.Cluster{}}
	for _, x := range list {
		c.Clusters[x.Metadata.Name] = x
	}
	return c
}

// Score is the score "cpu" in the placement score "load" of a cluster, which is valid for
// a time from Epoch on; 0 = for ever.
func Score(cluster string, value int64, valid time.Duration) *api.PlacementScore {
	s := &api.PlacementScore{Metadata: api.Metadata{Name: "load", Cluster: cluster}}
	s.Spec.Scores = map[string]int64{"cpu": value}
	if valid != 0 {
		s.Spec.ValidUntil = new(Epoch.Add(valid))
	}
	return s
}

// Scores are changes by which placement scores come to be as they are given.
func Scores(list ...*api.PlacementScore) columns.Changes {
	c := columns.Changes{Scores: map[api.Key]*api.PlacementScore{}}
	for _, s := range list {
		c.Scores[api.KeyOf(s)] = s
	}
	return c
}

// EachAspect are the single aspects of several.
func EachAspect(aspects columns.Aspects) iter.Seq[columns.Aspects] {
	return func(yield func(columns.Aspects) bool) {
		for left := aspects; left != 0; left &= left - 1 {
			if !yield(left &^ (left - 1)) {
				return
			}
		}
	}
}
