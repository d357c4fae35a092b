package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// TestWordsOfOtherServers: what a server answers that somebody pointed a metrics
// provider at is shown to those who may write that provider, and to nobody else, on
// whatever way. All others learn the kind of the cause.
func TestWordsOfOtherServers(t *testing.T) {
	const banner = "hush-banner"
	foreign := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusBadRequest)
		_, _ = w.Write([]byte(`{"status":"error","errorType":"bad_data","error":"` + banner + `"}`))
	}))
	defer foreign.Close()
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	spec := `{"spec":{"type":"prometheus","interval":"100ms","prometheus":{"url":"` + foreign.URL + `"}}}`
	s.mustPut("/v1/metrics-providers/all", spec)
	s.mustPut("/v1/namespaces/shop/metrics-providers/own", spec)
	s.mustPut("/v1/namespaces/shop/metrics/of-own", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"own","metric":"m"}}}`)
	s.mustPut("/v1/metrics/global", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"all","metric":"m"}}}`)
	s.mustPut("/v1/clusters/berlin", `{"spec":{"metrics":[{"name":"global"}]}}`)
	admin := s.addToken(auth.RoleAdmin)
	tokens := map[string]string{
		"admin": admin, "editor": s.addToken(auth.RoleEditor), "viewer": s.addToken(auth.RoleViewer),
		"editor of shop": s.addToken(auth.RoleEditor, "shop"), "viewer of shop": s.addToken(auth.RoleViewer, "shop"), "editor of two": s.addToken(auth.RoleEditor, "shop", "other"),
	}
	const own, global = "/v1/namespaces/shop/metrics/of-own", "/v1/metrics/global"
	for who, knows := range map[string][]string{
		"admin": {own, global}, "editor": {own, global}, "viewer": nil,
		"editor of shop": {own}, "viewer of shop": nil, "editor of two": {own},
	} {
		token := "Bearer " + tokens[who]
		for _, path := range []string{own, global} {
			a := s.do(http.MethodGet, path, "", "Authorization", token)
			metric := decodeAs[api.Metric](t, a)
			c := api.FindCondition(metric.Status.Conditions, api.ConditionAvailable)
			if c == nil || !strings.HasSuffix(c.Message, "Prometheus rejects the expression") {
				t.Fatalf("%s, %s: %s", who, path, a.body)
			}
			may := false
			for _, known := range knows {
				may = may || known == path
			}
			if shown := strings.Contains(string(a.body), banner); shown != may || shown != (c.Detail == banner) {
				t.Errorf("%s, %s: detail shown: %t, want %t: %s", who, path, shown, may, a.body)
			}
		}
		// Every other route to the same objects.
		for _, path := range []string{"/v1/metrics?all=true", "/v1/namespaces/shop/metrics", "/v1/metrics-providers?all=true", "/v1/clusters/berlin", "/v1/clusters"} {
			a := s.do(http.MethodGet, path, "", "Authorization", token)
			if n := strings.Count(string(a.body), banner); n > 0 && len(knows) == 0 || n > 1 && len(knows) == 1 {
				t.Errorf("%s, %s: unexpected answer %s", who, path, a.body)
			}
		}
		simulated := s.do(http.MethodPost, "/v1/simulations", `{"base":"live","objects":[{"kind":"metric","metadata":{"name":"of-own","namespace":"shop"},"spec":{"min":0,"max":2,"metrics_provider":{"name":"own","metric":"m"}}},{"kind":"placement","metadata":{"name":"web","namespace":"shop"},"spec":{}}]}`, "Authorization", token)
		if simulated.StatusCode != http.StatusOK || strings.Contains(string(simulated.body), banner) {
			t.Errorf("%s, simulation: got %d %s, want 200 without the detail", who, simulated.StatusCode, simulated.body)
		}
	}
	// A watch returns the next change, here of the labels.
	for who, want := range map[string]bool{"viewer of shop": false, "editor of shop": true, "admin": true} {
		w := s.watch("/v1/watch?kinds=metric", "Authorization", "Bearer "+tokens[who]).started()
		s.mustPut(own, `{"metadata":{"labels":{"for":"`+strings.ReplaceAll(who, " ", "-")+`"}},"spec":{"min":0,"max":1,"metrics_provider":{"name":"own","metric":"m"}}}`, "Authorization", "Bearer "+admin)
		shown, events := false, 0
		for events < 2 && w.lines.Scan() { // the change, and the status that follows it
			if data, ok := strings.CutPrefix(w.lines.Text(), "data: "); ok {
				events++
				shown = shown || strings.Contains(data, banner)
			}
		}
		if events < 2 {
			t.Fatal("the watch ended")
		}
		w.close()
		if shown != want {
			t.Errorf("watch of %s: detail shown: %t, want %t", who, shown, want)
		}
	}
}
