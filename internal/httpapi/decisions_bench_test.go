package httpapi

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// BenchmarkDecisions lists a page of 100,000 decisions, as the page for people does. Target: 20 ms of CPU.
func BenchmarkDecisions(b *testing.B) {
	s := startEndToEnd(b, store.Options{DataDir: b.TempDir(), NoFsync: true})
	loadPlacements(b, s, 100_000)
	list := func(query string) {
		if a := s.do(http.MethodGet, "/v1/decisions?"+query, ""); a.StatusCode != http.StatusOK {
			b.Fatal(a.StatusCode)
		}
	}
	for _, query := range []string{
		"", "sort=-scheduled_at", "sort=satisfied&offset=50000", "sort=-name&offset=99000", "search=p77", "satisfied=True&offset=50000", "cluster=c3",
		"count_by=namespace", "count_by=cluster", "label_selector=team=t7", "label_selector=app=a77",
	} {
		b.Run(fmt.Sprint("query=", query), func(b *testing.B) {
			cputime.Measure(b, func() { list(query) })
		})
	}
	// With one that has changed since the list before.
	b.Run("changed", func(b *testing.B) {
		i := 0
		cputime.Measure(b, func() {
			i++
			s.mustPut("/v1/clusters/c0", fmt.Sprintf(`{"metadata":{"labels":{"group":"g0","i":"%d"}},"spec":{}}`, i))
			list("")
		})
	})
}
