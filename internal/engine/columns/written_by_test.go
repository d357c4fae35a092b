package columns

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestWrittenBy asks for the writers of objects of each kind that a fleet has, and of some that it has not.
func TestWrittenBy(t *testing.T) {
	by := func(token string) *api.Actor { return &api.Actor{Token: token} }
	load := api.Key{Kind: api.KindMetric, Namespace: "shop", Name: "load"}
	cost := api.Key{Kind: api.KindPlacementScore, Namespace: "a", Name: "cost"}
	f, _ := (&Fleet{}).With(Changes{
		Clusters: map[string]*api.Cluster{"a": {Metadata: api.Metadata{Name: "a", WrittenBy: by("cluster")}}, "b": {Metadata: api.Metadata{Name: "b"}}},
		Sets:     map[string]*api.ClusterSet{"eu": {Metadata: api.Metadata{Name: "eu", WrittenBy: by("set")}}},
		Metrics:  map[api.Key]*api.Metric{load: {Metadata: api.Metadata{Namespace: "shop", Name: "load", WrittenBy: by("metric")}}},
		Scores:   map[api.Key]*api.PlacementScore{cost: {Metadata: api.Metadata{Cluster: "a", Name: "cost", WrittenBy: by("score")}}},
	}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC))
	for key, want := range map[api.Key]string{
		{Kind: api.KindCluster, Name: "a"}:                      "cluster",
		{Kind: api.KindCluster, Name: "b"}:                      "",
		{Kind: api.KindCluster, Name: "c"}:                      "",
		{Kind: api.KindClusterSet, Name: "eu"}:                  "set",
		{Kind: api.KindClusterSet, Name: "us"}:                  "",
		load:                                                    "metric",
		{Kind: api.KindMetric, Namespace: "bank", Name: "load"}: "",
		cost: "score",
		{Kind: api.KindPlacementScore, Namespace: "b", Name: "cost"}:  "",
		{Kind: api.KindPlacementScore, Namespace: "c", Name: "cost"}:  "",
		{Kind: api.KindPlacementScore, Namespace: "a", Name: "speed"}: "",
		{Kind: api.KindWorkload, Namespace: "shop", Name: "a"}:        "",
	} {
		got := ""
		if actor := f.WrittenBy(key); actor != nil {
			got = actor.Token
		}
		if got != want {
			t.Errorf("%s was written by %q, want %q", key, got, want)
		}
	}
}
