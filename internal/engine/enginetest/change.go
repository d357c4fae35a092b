package enginetest

import (
	"iter"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"pgregory.net/rapid"
)

// Compile compiles a valid placement with the given function.
func Compile[Query any](t rapid.TB, compile func(*api.Placement) (Query, error), p *api.Placement) Query {
	t.Helper()
	q, err := compile(p)
	if err != nil {
		t.Fatal(err)
	}
	return q
}

// Clusters returns changes that put the given clusters.
func Clusters(list ...*api.Cluster) columns.Changes {
	c := columns.Changes{Clusters: map[string]*api.Cluster{}}
	for _, x := range list {
		c.Clusters[x.Metadata.Name] = x
	}
	return c
}

// Score returns the score "cpu" in the placement score "load" of a cluster. It is valid from Epoch
// for the given duration; 0 means forever.
func Score(cluster string, value int64, valid time.Duration) *api.PlacementScore {
	s := &api.PlacementScore{Metadata: api.Metadata{Name: "load", Cluster: cluster}}
	s.Spec.Scores = map[string]int64{"cpu": value}
	if valid != 0 {
		s.Spec.ValidUntil = new(Epoch.Add(valid))
	}
	return s
}

// Scores returns changes that put the given placement scores.
func Scores(list ...*api.PlacementScore) columns.Changes {
	c := columns.Changes{Scores: map[api.Key]*api.PlacementScore{}}
	for _, s := range list {
		c.Scores[api.KeyOf(s)] = s
	}
	return c
}

// EachAspect yields the single aspects of a set.
func EachAspect(aspects columns.Aspects) iter.Seq[columns.Aspects] {
	return func(yield func(columns.Aspects) bool) {
		for left := aspects; left != 0; left &= left - 1 {
			if !yield(left &^ (left - 1)) {
				return
			}
		}
	}
}
