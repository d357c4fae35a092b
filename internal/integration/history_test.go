//go:build integration

package integration

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// TestHistorySurvivesKills moves placements and kills the server, each time at another moment: afterwards the
// history has every decision once, in order.
func TestHistorySurvivesKills(t *testing.T) {
	dir := t.TempDir()
	p := startServer(t, dir)
	const placements = 5
	for _, name := range []string{"a", "b"} {
		put(p, &api.Cluster{Metadata: api.Metadata{Name: name}})
	}
	web := func(n int, cluster string) *api.Placement {
		return &api.Placement{
			Metadata: api.Metadata{Namespace: "shop", Name: fmt.Sprint("web-", n)},
			Spec:     api.PlacementSpec{ClusterNames: []string{cluster}},
		}
	}
	for round := range 10 {
		for move := range 20 + round {
			put(p, web(move%placements, []string{"a", "b"}[(move/placements)%2]))
		}
		p.kill()
		p = startServer(t, dir)
	}
	for n := range placements {
		want := get[*api.Placement](p, api.KeyOf(web(n, ""))).Status
		var entries []api.HistoryEntry
		eventually.True(t, fmt.Sprintf("the history has the %d decisions of web-%d", want.DecisionRevision, n), func() bool {
			entries = nil
			for page, err := range p.client.History(context.Background(), client.HistoryOptions{Namespace: "shop", Name: fmt.Sprint("web-", n), Limit: 7}) {
				if err != nil {
					t.Fatal(err)
				}
				if page.Gaps != nil {
					t.Fatalf("gaps %+v", page.Gaps)
				}
				entries = append(entries, page.Items...)
			}
			return len(entries) >= int(want.DecisionRevision)
		})
		slices.Reverse(entries)
		if len(entries) != int(want.DecisionRevision) {
			t.Errorf("%d entries of %d decisions", len(entries), want.DecisionRevision)
		}
		var before *api.Where
		var revision int64
		for _, e := range entries {
			if !reflect.DeepEqual(e.Before, before) || e.Revision <= revision {
				t.Errorf("revision %d: %+v follows %+v of revision %d", e.Revision, e.Before, before, revision)
			}
			before, revision = e.After, e.Revision
		}
		if !slices.Equal(before.Clusters, want.Clusters) {
			t.Errorf("the last entry is %v, the placement is on %v", before.Clusters, want.Clusters)
		}
	}
}
