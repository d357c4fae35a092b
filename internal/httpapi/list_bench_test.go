package httpapi

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// BenchmarkListPlacements lists 100,000 placements page by page. The reader discards the response, so that nearly all
// of the time is the server's.
func BenchmarkListPlacements(b *testing.B) {
	const placements = 100_000
	s := startEndToEnd(b, store.Options{DataDir: b.TempDir(), NoFsync: true})
	loadPlacements(b, s, placements)
	for _, list := range []struct{ name, encoding, selector string }{
		{"plain", "identity", ""}, {"gzip", "gzip", ""}, {"gzip-selected", "gzip", "team=t7"},
	} {
		b.Run(list.name, func(b *testing.B) {
			pages, objects := pagesOf(b, s, "/v1/placements?limit=5000&label_selector="+url.QueryEscape(list.selector))
			if list.selector == "" && objects != placements {
				b.Fatalf("%d placements, want %d", objects, placements)
			}
			var bytes int64
			runtime.GC()
			cpu := cputime.Used(b)
			b.ReportAllocs()
			for b.Loop() {
				bytes = 0
				for _, page := range pages {
					bytes += readPage(b, s, page, list.encoding)
				}
			}
			b.ReportMetric((cputime.Used(b)-cpu).Seconds()/float64(b.N), "cpu-s/op")
			b.ReportMetric(float64(bytes)/(1<<20), "MiB")
		})
	}
}

// loadPlacements stores decided placements with three clusters each.
func loadPlacements(b *testing.B, s *testServer, n int) {
	b.Helper()
	now, three := time.Now().UTC(), int64(3)
	for i := range 20 {
		s.mustPut(fmt.Sprintf("/v1/clusters/c%d", i), fmt.Sprintf(`{"metadata":{"labels":{"group":"g%d"}},"spec":{}}`, i%4))
	}
	var writes []store.Write
	var last int64
	for i := range n {
		p := &api.Placement{Metadata: api.Metadata{
			Name: fmt.Sprintf("p%d", i), Namespace: fmt.Sprintf("team-%d", i%100), Labels: map[string]string{"team": fmt.Sprintf("t%d", i%100), "app": fmt.Sprintf("a%d", i)},
			UID: fmt.Sprintf("%032x", i), Generation: 1, CreatedAt: &now, ModifiedAt: &now,
		}}
		p.Spec.NumberOfClusters, p.Spec.LabelConstraints = &three, []string{fmt.Sprintf("group is g%d", i%4)}
		p.SetDefaults()
		p.Status = api.PlacementStatus{ObservedGeneration: 1, ScheduledAt: &now, DecisionRevision: 1}
		for j := range 3 {
			name := fmt.Sprintf("c%d", i%4+4*((i+j)%5))
			p.Status.Clusters = append(p.Status.Clusters, name)
			p.Status.Decisions = append(p.Status.Decisions, api.Decision{Cluster: name, Score: 1 / float64(i%977+j+3), Rank: int64(j + 1), Since: &now})
		}
		api.SetCondition(&p.Status.Conditions, api.Condition{Type: api.ConditionScheduled, Status: api.ConditionTrue, Reason: "Scheduled", Message: "3 of 5 clusters that fit"}, now)
		api.SetCondition(&p.Status.Conditions, api.Condition{Type: api.ConditionSatisfied, Status: api.ConditionTrue, Reason: "Satisfied"}, now)
		spec, err := s.codec.EncodeSpec(p)
		if err != nil {
			b.Fatal(err)
		}
		status, err := s.codec.EncodeStatus(p)
		if err != nil {
			b.Fatal(err)
		}
		writes = append(writes, store.Write{Key: api.KeyOf(p), Part: store.Spec, Value: spec}, store.Write{Key: api.KeyOf(p), Part: store.Status, Value: status})
		if len(writes) == 100 || i == n-1 {
			if last, err = s.store.Commit(b.Context(), writes...); err != nil {
				b.Fatal(err)
			}
			writes = writes[:0]
		}
	}
	if _, err := s.fleet.WaitRevision(b.Context(), last); err != nil {
		b.Fatal(err)
	}
	if err := s.options.Decisions.Settle(b.Context(), last); err != nil {
		b.Fatal(err)
	}
}

// pagesOf returns the URLs of the pages of a list, and the number of objects.
func pagesOf(b *testing.B, s *testServer, path string) (pages []string, objects int) {
	b.Helper()
	for next := ""; ; {
		pages = append(pages, path+"&continue="+url.QueryEscape(next))
		var page struct {
			Items    []struct{}
			Continue string
		}
		if err := json.Unmarshal(s.do(http.MethodGet, pages[len(pages)-1], "").body, &page); err != nil {
			b.Fatal(err)
		}
		objects += len(page.Items)
		if next = page.Continue; next == "" {
			return pages, objects
		}
	}
}

// readPage reads a page and returns its size.
func readPage(b *testing.B, s *testServer, path, encoding string) int64 {
	b.Helper()
	r, err := http.NewRequestWithContext(b.Context(), http.MethodGet, s.url+path, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Accept-Encoding", encoding)
	resp, err := s.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer resp.Body.Close()
	n, err := io.Copy(io.Discard, resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		b.Fatal(resp.Status, err)
	}
	return n
}
