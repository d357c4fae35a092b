package httpapi

import (
	"cmp"
	"fmt"
	"net/http"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// TestSortPart compares a part with that of everything sorted, with many equal values and in orders that are bad for the
// choice of a pivot.
func TestSortPart(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		values := rapid.SampledFrom([]int{1, 3, 1000}).Draw(t, "values")
		rows := rapid.SliceOfN(rapid.IntRange(0, values), 0, 2000).Draw(t, "rows")
		switch rapid.IntRange(0, 3).Draw(t, "order") {
		case 0:
			slices.Sort(rows)
		case 1:
			slices.Sort(rows)
			slices.Reverse(rows)
		}
		from := rapid.IntRange(0, len(rows)).Draw(t, "from")
		to := rapid.IntRange(from, len(rows)).Draw(t, "to")
		want := slices.Sorted(slices.Values(rows))[from:to]
		if sortPart(rows, from, to, cmp.Compare[int]); !slices.Equal(rows[from:to], want) {
			t.Fatalf("rows %d to %d are %v, want %v", from, to, rows[from:to], want)
		}
	})
}

// BenchmarkDecisions lists a page of 100,000 decisions, as the page for people does. Target: 20 ms of CPU.
func BenchmarkDecisions(b *testing.B) {
	s := startEndToEnd(b, store.Options{DataDir: b.TempDir(), NoFsync: true})
	loadPlacements(b, s, 100_000)
	for _, query := range []string{
		"", "sort=-scheduled_at", "sort=satisfied&offset=50000", "sort=-name&offset=99000", "search=p77", "satisfied=True&offset=50000", "cluster=c3",
		"count_by=namespace", "count_by=cluster", "label_selector=team=t7",
	} {
		b.Run(fmt.Sprint("query=", query), func(b *testing.B) {
			cputime.Measure(b, func() {
				if a := s.do(http.MethodGet, "/v1/decisions?"+query, ""); a.StatusCode != http.StatusOK {
					b.Fatal(a.StatusCode)
				}
			})
		})
	}
}
