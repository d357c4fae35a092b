package httpapi

import (
	"fmt"
	"math/rand/v2"
	"net/http"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// timeless returns an explanation without its time, without what follows from the age of the decision, and without why the
// policy was chosen, which is said only once: from then on, it holds the claim.
func timeless(x api.Explanation) string {
	x.At, x.NextAt, x.PolicyReason = time.Time{}, nil, ""
	return string(operation.EncodeJSON(x))
}

// TestPastExplanationsAreThoseOfThen changes a fleet at random, keeps what each decision is explained with, and asks for all
// of it again at the end.
func TestPastExplanationsAreThoseOfThen(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	draw := rand.New(rand.NewPCG(1, 2))
	const clusters = 4
	rates := func() string {
		text := ""
		for i := range clusters {
			text += fmt.Sprintf(`,"c%d":%.2f`, i, draw.Float64())
		}
		return `{"spec":{"type":"static","static":{"metrics":{` + text[1:] + `}}}}`
	}
	s.mustPut("/v1/metrics-providers/table", rates())
	for i := range clusters {
		s.mustPut(fmt.Sprintf("/v1/metrics/c%d", i), fmt.Sprintf(`{"spec":{"min":0,"max":1,"metrics_provider":{"name":"table","metric":"c%d"}}}`, i))
	}
	cluster := func(i int) {
		taints := []string{``, ``, `,"taints":[{"key":"down","effect":"NoSelect"}]`}[draw.IntN(3)]
		s.mustPut(fmt.Sprintf("/v1/clusters/c%d", i), fmt.Sprintf(
			`{"metadata":{"labels":{"tier":"%d"}},"spec":{"metrics":[{"name":"c%d"}],"allocatable":{"cpu":"%d"}%s}}`, draw.IntN(2), i, 2+draw.IntN(8), taints))
	}
	for i := range clusters {
		cluster(i)
	}
	s.mustPut("/v1/namespaces/shop/propagation-policies/p", `{"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],"placement":{"replica_scheduling":{"type":"Divided"}}}}`)
	paths := []string{"/v1/namespaces/shop/placements/web", "/v1/namespaces/shop/placements/db", "/v1/namespaces/shop/workloads/api"}
	steps := []func(){
		func() { s.mustPut("/v1/metrics-providers/table", rates()) },
		func() { cluster(draw.IntN(clusters)) },
		func() {
			s.mustPut(paths[0], fmt.Sprintf(`{"spec":{"number_of_clusters":%d,"reschedule_after":"0s"}}`, 1+draw.IntN(3)))
		},
		func() {
			s.mustPut(paths[1], fmt.Sprintf(`{"spec":{"label_constraints":["tier is %d"],"reschedule_after":"0s"}}`, draw.IntN(2)))
		},
		func() {
			s.mustPut(paths[2], fmt.Sprintf(`{"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":%d,"replica_requests":{"cpu":"1"}}}`, 1+draw.IntN(9)))
		},
		func() { s.do(http.MethodDelete, fmt.Sprintf("/v1/clusters/c%d", draw.IntN(clusters)), "") },
	}
	type known struct {
		path     string
		revision int64
		text     string
	}
	var all []known
	for i := range 40 {
		if i < len(steps)-1 {
			steps[i]()
		} else {
			steps[draw.IntN(len(steps))]()
		}
		for _, path := range paths {
			before := s.fleet.Snapshot().Revision()
			a := s.do(http.MethodGet, path+"/explanation", "")
			if a.StatusCode == http.StatusNotFound {
				continue
			}
			if after := s.fleet.Snapshot().Revision(); after != before {
				continue // something was still going on
			}
			all = append(all, known{path, before, timeless(decodeAs[api.Explanation](t, a))})
		}
	}
	if len(all) < 60 {
		t.Fatalf("%d explanations", len(all))
	}
	for _, k := range all {
		a := s.do(http.MethodGet, fmt.Sprintf("%s/explanation?at=%d", k.path, k.revision), "")
		if a.StatusCode != http.StatusOK {
			t.Fatalf("%s at %d: %d %s", k.path, k.revision, a.StatusCode, a.body)
		}
		if got := timeless(decodeAs[api.Explanation](t, a)); got != k.text {
			t.Errorf("%s at revision %d is explained with\n%s\nand was with\n%s", k.path, k.revision, got, k.text)
		}
	}
}

func TestPastExplanationsThatCannotBeGiven(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	kept := &keptHistory{}
	s := startServer(t, authenticated, func(o *Options) { o.History = kept })
	s.token = s.addToken(auth.RoleAdmin)
	before := s.fleet.Snapshot().Revision()
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	s.mustPut("/v1/namespaces/vault/placements/web", `{"spec":{}}`)
	s.mustPut("/v1/clusters/later", `{"spec":{}}`)
	now := s.fleet.Snapshot().Revision()
	kept.entries = []api.HistoryEntry{{Revision: now, Time: at}, {Revision: now - 1, Time: at.Add(-time.Hour)}}
	viewer := s.addToken(auth.RoleViewer, "shop")
	const web = "/v1/namespaces/shop/placements/web/explanation"
	for name, c := range map[string]struct {
		path, query string
		token       string
		status      int
		summary     string
	}{
		"now":                {path: web, query: "at=" + fmt.Sprint(now), status: 200, summary: fmt.Sprintf("as told at %d", now)},
		"before the last":    {path: web, query: "at=2026-03-01T11:59:00Z", status: 200, summary: fmt.Sprintf("as told at %d", now-1)},
		"its namespace":      {path: web, query: "at=" + fmt.Sprint(now), token: viewer, status: 200, summary: fmt.Sprintf("as told at %d", now)},
		"another namespace":  {path: "/v1/namespaces/vault/placements/web/explanation", query: "at=" + fmt.Sprint(now), token: viewer, status: 403},
		"before it was":      {path: web, query: "at=" + fmt.Sprint(before), status: 404},
		"not yet":            {path: web, query: "at=1000000", status: 422},
		"no revision":        {path: web, query: "at=0", status: 422},
		"negative":           {path: web, query: "at=-1", status: 422},
		"no time":            {path: web, query: "at=yesterday", status: 422},
		"in the future":      {path: web, query: "at=2999-01-01T00:00:00Z", status: 422},
		"before the history": {path: web, query: "at=2026-01-01T00:00:00Z", status: 410},
		"no such object":     {path: "/v1/namespaces/shop/placements/none/explanation", query: "at=" + fmt.Sprint(now), status: 404},
	} {
		t.Run(name, func(t *testing.T) {
			admin := s.token
			if c.token != "" {
				s.token = c.token
			}
			a := s.do(http.MethodGet, c.path+"?"+c.query, "")
			s.token = admin
			if a.StatusCode != c.status {
				t.Fatalf("%d %s, want %d", a.StatusCode, a.body, c.status)
			}
			if c.status == 200 {
				if got := decodeAs[api.Explanation](t, a).Summary; got != c.summary {
					t.Errorf("%q, want %q", got, c.summary)
				}
			}
		})
	}
}
