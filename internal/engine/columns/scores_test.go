package columns_test

import (
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
)

// A score counts up to and including valid_until, and as 0 afterwards, whether or not it is read in between.
func TestScoreExpires(t *testing.T) {
	f, _ := (&columns.Fleet{}).With(enginetest.Clusters(&api.Cluster{Metadata: api.Metadata{Name: "c1"}}), enginetest.Epoch)
	f, delta := f.With(enginetest.Scores(enginetest.Score("c1", 40, time.Minute)), enginetest.Epoch)
	if !slices.Equal(delta.Rows, []int{0}) || delta.ConcernsRow(0, ^(columns.MetricValues|columns.ScoreValues)) {
		t.Errorf("delta %+v, want row 0 with other values and the same facts", delta)
	}
	end := enginetest.Epoch.Add(time.Minute)
	if at := f.NextAt(); !at.Equal(end.Add(1)) {
		t.Errorf("NextAt %v, want the nanosecond after %v", at, end)
	}
	for _, tt := range []struct {
		after time.Duration
		want  int8
		rows  []int
	}{{0, 40, nil}, {time.Minute, 40, nil}, {time.Minute + 1, 0, []int{0}}, {time.Hour, 0, nil}, {time.Second, 40, []int{0}}} {
		f, delta = f.With(columns.Changes{}, enginetest.Epoch.Add(tt.after))
		if got := f.ScoreColumn("load", "cpu")[0]; got != tt.want || !slices.Equal(delta.Rows, tt.rows) {
			t.Errorf("after %v: score %d, delta %v, want %d, %v", tt.after, got, delta.Rows, tt.want, tt.rows)
		}
		value, has, expired := f.ScoreState("load", "cpu", 0)
		if value != 40 || !has || expired != (tt.want == 0) || f.Expired("load").Has(0) != expired {
			t.Errorf("after %v: value %d, exists %t, expired %t", tt.after, value, has, expired)
		}
		if expired != f.NextAt().IsZero() {
			t.Errorf("after %v: NextAt %v", tt.after, f.NextAt())
		}
	}
}

// Scores may be added before their cluster, and may outlive it.
func TestScoreWaitsForItsCluster(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1"}}
	gone := columns.Changes{Clusters: map[string]*api.Cluster{"c1": nil}}
	f, delta := (&columns.Fleet{}).With(enginetest.Scores(enginetest.Score("c1", 40, 0)), enginetest.Epoch)
	if !delta.Empty() || f.ScoreColumn("load", "cpu") != nil {
		t.Errorf("delta %+v, want an empty one: no cluster has the score yet", delta)
	}
	counts := func(want int8) {
		t.Helper()
		row, ok := f.Row("c1")
		column := f.ScoreColumn("load", "cpu")
		if !ok || row >= len(column) && want != 0 || row < len(column) && column[row] != want {
			t.Errorf("column %v, want %d", column, want)
		}
	}
	f, _ = f.With(enginetest.Clusters(c), enginetest.Epoch)
	counts(40)
	f, _ = f.With(gone, enginetest.Epoch)
	f, _ = f.With(enginetest.Clusters(&api.Cluster{Metadata: api.Metadata{Name: "c0"}}), enginetest.Epoch) // reuses the row
	if column := f.ScoreColumn("load", "cpu"); column != nil {
		t.Errorf("a new cluster has the score of a deleted one: %v", column)
	}
	f, _ = f.With(enginetest.Clusters(c), enginetest.Epoch)
	counts(40)
	// In one change, the cluster is added again and its score is deleted.
	f, _ = f.With(gone, enginetest.Epoch)
	back := enginetest.Clusters(c)
	back.Scores = map[api.Key]*api.PlacementScore{enginetest.ScoreKey("c1", "load"): nil}
	f, _ = f.With(back, enginetest.Epoch)
	counts(0)
	if len(f.Waiting()) != 0 || len(f.PlacementScores()) != 0 {
		t.Errorf("%d waiting and %d kept scores, want none", len(f.Waiting()), len(f.PlacementScores()))
	}
}

// If a score is pushed again with another value or a later expiry, no set is copied, and only changes that affect a
// score are reported.
func TestScorePushedAgain(t *testing.T) {
	f, _ := (&columns.Fleet{}).With(enginetest.Clusters(&api.Cluster{Metadata: api.Metadata{Name: "c1"}}), enginetest.Epoch)
	f, _ = f.With(enginetest.Scores(enginetest.Score("c1", 40, time.Minute)), enginetest.Epoch)
	g, delta := f.With(enginetest.Scores(enginetest.Score("c1", 40, time.Hour)), enginetest.Epoch)
	if !delta.Empty() || g.PlacementScores()["load"].Rows() != f.PlacementScores()["load"].Rows() {
		t.Errorf("delta %+v, want an empty one: only the end of the score changed", delta)
	}
	if at := g.NextAt(); !at.Equal(enginetest.Epoch.Add(time.Hour + 1)) {
		t.Errorf("NextAt %v, want the new end of the score", at)
	}
	g, delta = g.With(enginetest.Scores(enginetest.Score("c1", 41, time.Hour)), enginetest.Epoch)
	if !slices.Equal(delta.Rows, []int{0}) || g.ScoreColumn("load", "cpu")[0] != 41 || f.ScoreColumn("load", "cpu")[0] != 40 {
		t.Errorf("delta %+v, want row 0 with score 41, and 40 in the previous fleet", delta)
	}
}
