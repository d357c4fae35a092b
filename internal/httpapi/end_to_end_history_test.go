package httpapi

import (
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// historyText is the history as the client of a test sees it, a line for each entry.
func (s *testServer) historyText(query string) []string {
	s.t.Helper()
	page := decodeAs[api.HistoryPage](s.t, s.expect(200, http.MethodGet, "/v1/history"+query, ""))
	lines := []string{}
	for _, e := range page.Items {
		names := func(d *api.HistoryDecision) string {
			if d == nil {
				return "-"
			}
			return strings.Join(d.Clusters, "+")
		}
		line := e.Object.Path() + ": " + names(e.Before) + " > " + names(e.After) + " " + string(e.Cause.Type)
		if e.Cause.Object != nil {
			line += " " + e.Cause.Object.Path()
		}
		if e.Cause.Field != "" {
			line += " " + e.Cause.Field + "=" + e.Cause.New
		}
		if e.Actor != nil {
			line += " by " + e.Actor.RequestID
		}
		lines = append(lines, line)
	}
	return lines
}

// TestHistoryOfRequests checks that what requests decide is in the history, with who made them, from creation to
// deletion, and that the history can be asked in parts.
func TestHistoryOfRequests(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true, HistoryBytes: 64 << 20})
	by := func(id string) []string { return []string{"X-Request-Id", id} }
	s.mustPut("/v1/clusters/eu", `{"spec":{}}`, by("r1")...)
	s.mustPut("/v1/clusters/us", `{"spec":{}}`, by("r2")...)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`, by("r3")...)
	s.mustPut("/v1/clusters/eu", `{"spec":{"taints":[{"key":"maintenance","effect":"NoExecute"}]}}`, by("r4")...)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{"exclude_clusters":["us"]}}`, by("r5")...)
	s.mustPut("/v1/clusters/eu", `{"spec":{}}`, by("r6")...)
	preview := s.mustPreview(`{"kind":"placement","metadata":{"namespace":"shop","name":"web"},"spec":{"number_of_clusters":1,"cluster_names":["us"]}}`)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{"number_of_clusters":1,"cluster_names":["us"]}}`, "Preview-Token", preview.Token, "X-Request-Id", "r7")
	s.expect(204, http.MethodDelete, "/v1/namespaces/shop/placements/web", "", by("r8")...)
	want := []string{
		"shop/web: - > eu+us spec shop/web by r3",
		"shop/web: eu+us > us taint eu spec.taints=maintenance:NoSelect by r4",
		"shop/web: us >  spec shop/web spec.exclude_clusters=[\"us\"] by r5",
		"shop/web:  > eu taint eu spec.taints= by r6",
		"shop/web: eu > us preview shop/web by r7",
		"shop/web: us > - spec shop/web by r8",
	}
	got := s.historyText("?order=oldest")
	for i := range got {
		// Equal clusters are in the order of a hash.
		got[i] = strings.ReplaceAll(strings.ReplaceAll(got[i], "us+eu", "eu+us"), "spec.taints= by", "spec.taints= by")
	}
	if !slices.Equal(got, want) {
		t.Errorf("the history is\n%s, want\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	reversed := slices.Clone(got)
	slices.Reverse(reversed)
	if newest := s.historyText(""); !slices.Equal(newest[:2], reversed[:2]) {
		t.Errorf("newest first: %q", newest)
	}
	for query, n := range map[string]int{
		"?cluster=eu": 4, "?cause=taint": 2, "?name=web&kind=placement&namespace=shop": 6, "?kind=workload": 0, "?name=other": 0, "?since=2100-01-01T00:00:00Z": 0,
		"?until=2000-01-01T00:00:00Z": 0, "?namespace=shop": 6,
	} {
		if lines := s.historyText(query); len(lines) != n {
			t.Errorf("%s: %d entries, want %d: %q", query, len(lines), n, lines)
		}
	}
	var paged []string
	for token, next := "", "?limit=2&order=oldest"; ; {
		page := decodeAs[api.HistoryPage](t, s.expect(200, http.MethodGet, "/v1/history"+next, ""))
		for _, e := range page.Items {
			paged = append(paged, strconv.FormatInt(e.Revision, 10))
		}
		if token = page.Continue; token == "" {
			break
		}
		next = "?limit=2&order=oldest&continue=" + token
	}
	if len(paged) != len(want) || !slices.IsSortedFunc(paged, func(a, b string) int { return len(a) - len(b) }) {
		t.Errorf("by pages: %q", paged)
	}
	// So is one that was created as it was previewed.
	created := s.mustPreview(`{"kind":"placement","metadata":{"namespace":"shop","name":"new"},"spec":{"number_of_clusters":1,"cluster_names":["eu"]}}`)
	s.mustPut("/v1/namespaces/shop/placements/new", `{"spec":{"number_of_clusters":1,"cluster_names":["eu"]}}`, "Preview-Token", created.Token)
	first := decodeAs[api.HistoryPage](t, s.expect(200, http.MethodGet, "/v1/history?name=new", "")).Items[0]
	explained := decodeAs[api.Explanation](t, s.expect(200, http.MethodGet, "/v1/namespaces/shop/placements/new/explanation?at="+strconv.FormatInt(first.Revision, 10), ""))
	if !strings.HasPrefix(explained.Summary, "eu chosen") {
		t.Errorf("at revision %d, where it was created: %+v", first.Revision, explained)
	}
	for _, query := range []string{"?kind=metric", "?cause=moon", "?since=yesterday", "?limit=0", "?continue=x", "?order=best", "?since=2026-03-02T00:00:00Z&until=2026-03-01T00:00:00Z"} {
		if a := s.do(http.MethodGet, "/v1/history"+query, ""); a.StatusCode/100 != 4 {
			t.Errorf("%s: %d %s", query, a.StatusCode, a.body)
		}
	}
	// The decision is explained as it was, although the placement no longer exists.
	page := decodeAs[api.HistoryPage](t, s.expect(200, http.MethodGet, "/v1/history?order=oldest", ""))
	path := "/v1/namespaces/shop/placements/web/explanation?at="
	tainted := page.Items[1]
	x := decodeAs[api.Explanation](t, s.expect(200, http.MethodGet, path+strconv.FormatInt(tainted.Revision, 10), ""))
	if x.Revision != tainted.Revision || !x.At.Equal(tainted.Time) || x.Feasible != 1 || !strings.HasPrefix(x.Summary, "us chosen") {
		t.Errorf("at revision %d: %+v", tainted.Revision, x)
	}
	kept := page.Items[4] // as it was previewed: no pass has seen the spec that it answers
	x = decodeAs[api.Explanation](t, s.expect(200, http.MethodGet, path+strconv.FormatInt(kept.Revision, 10), ""))
	if x.Feasible != 1 || !strings.HasPrefix(x.Summary, "us chosen") {
		t.Errorf("at revision %d: %+v", kept.Revision, x)
	}
	s.expect(404, http.MethodGet, path+strconv.FormatInt(page.Items[5].Revision, 10), "")
	s.expect(422, http.MethodGet, path+strconv.FormatInt(page.Revision+1000, 10), "") // there is none yet
	s.expect(422, http.MethodGet, path+"yesterday", "")
	s.expect(410, http.MethodGet, path+"1", "")
	s.expect(404, http.MethodGet, "/v1/namespaces/shop/placements/web/explanation", "")
}

// TestPreviewedDecisionsAreExplained checks that decisions that were committed as they were previewed are explained
// later by what they were previewed on, though no other decision was made since it changed.
func TestPreviewedDecisionsAreExplained(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true, HistoryBytes: 64 << 20})
	for _, name := range []string{"eu", "us", "asia"} { // eu: it is the first decision of the server
		s.mustPut("/v1/clusters/"+name, `{"spec":{}}`)
		spec := `"spec":{"number_of_clusters":1,"cluster_names":["` + name + `"]}`
		preview := s.mustPreview(`{"kind":"placement","metadata":{"namespace":"shop","name":"on-` + name + `"},` + spec + `}`)
		path := "/v1/namespaces/shop/placements/on-" + name
		s.mustPut(path, "{"+spec+"}", "Preview-Token", preview.Token)
		entry := decodeAs[api.HistoryPage](t, s.expect(200, http.MethodGet, "/v1/history?name=on-"+name, "")).Items[0]
		x := decodeAs[api.Explanation](t, s.expect(200, http.MethodGet, path+"/explanation?at="+strconv.FormatInt(entry.Revision, 10), ""))
		if !strings.HasPrefix(x.Summary, name+" chosen") {
			t.Errorf("on-%s at revision %d: %s", name, entry.Revision, x.Summary)
		}
	}
}

// TestHistoryIsOfOnesOwn checks that a token of one namespace finds neither the decisions of another one, nor what it may
// not read of causes and explanations.
func TestHistoryIsOfOnesOwn(t *testing.T) {
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true, HistoryBytes: 64 << 20})
	admin, thief := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "thief")
	s.token = admin
	s.mustPut("/v1/namespaces/bank/metrics-providers/p", `{"spec":{"type":"static","static":{"metrics":{"gold":7,"tin":1}}}}`)
	for _, name := range []string{"gold", "tin"} {
		s.mustPut("/v1/namespaces/bank/metrics/"+name, `{"spec":{"min":0,"max":10,"metrics_provider":{"name":"p","metric":"`+name+`"}}}`)
	}
	s.mustPut("/v1/clusters/one", `{"spec":{"metrics":[{"name":"gold","namespace":"bank"}]}}`)
	s.mustPut("/v1/clusters/two", `{"spec":{"metrics":[{"name":"tin","namespace":"bank"}]}}`)
	s.mustPut("/v1/clusters/vault", `{"spec":{"namespace":"bank"}}`)
	s.mustPut("/v1/namespaces/bank/placements/secret", `{"spec":{}}`)
	s.mustPut("/v1/namespaces/thief/placements/web", `{"spec":{"number_of_clusters":1,"reschedule_after":"0s"}}`)
	s.mustPut("/v1/namespaces/bank/metrics-providers/p", `{"spec":{"type":"static","static":{"metrics":{"gold":0.5,"tin":9.75}}}}`)
	s.mustPut("/v1/clusters/two", `{"spec":{"metrics":[{"name":"tin","namespace":"bank"}],"taints":[{"key":"x","effect":"NoExecute"}]}}`)
	all := s.historyText("?order=oldest")
	s.expect(204, http.MethodDelete, "/v1/clusters/vault", "")
	s.token = thief
	a := s.expect(200, http.MethodGet, "/v1/history?order=oldest", "")
	for _, secret := range []string{"bank", "vault", "gold", "tin", "9.75", "0.5", "secret"} {
		if strings.Contains(string(a.body), secret) {
			t.Errorf("the history reveals %q: %s", secret, a.body)
		}
	}
	own := decodeAs[api.HistoryPage](t, a)
	if len(own.Items) != 3 || own.Items[1].Cause.Type != api.CauseMetric || own.Items[2].Cause.Type != api.CauseTaint || own.Items[2].Actor != nil {
		t.Errorf("the own history: %s; that of all:\n%s", a.body, strings.Join(all, "\n"))
	}
	s.expect(403, http.MethodGet, "/v1/history?namespace=bank", "")
	s.expect(403, http.MethodGet, "/v1/namespaces/bank/placements/secret/explanation?at="+strconv.FormatInt(own.Items[1].Revision, 10), "")
	for _, e := range own.Items {
		x := s.expect(200, http.MethodGet, "/v1/namespaces/thief/placements/web/explanation?at="+strconv.FormatInt(e.Revision, 10), "")
		for _, secret := range []string{"vault", "9.75", `"raw"`, "another namespace"} {
			if strings.Contains(string(x.body), secret) {
				t.Errorf("the explanation reveals %q: %s", secret, x.body)
			}
		}
	}
}
