package httpapi

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// TestValuesByClusterNameNoHiddenCluster: a metric with a value for each cluster names
// them all in its status, also where the metric is everybody's or the reader's own.
// A token that is bound to namespaces is shown none of them, on whatever way, nor how
// many they are.
func TestValuesByClusterNameNoHiddenCluster(t *testing.T) {
	prices := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		price := "0.25"
		if strings.HasSuffix(r.URL.Path, "/dear") {
			price = "0.424242"
		}
		_, _ = w.Write([]byte(`{"price":` + price + `}`))
	}))
	defer prices.Close()
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, authenticated)
	admin := s.addToken(auth.RoleAdmin)
	s.token = admin
	for _, metrics := range []string{"/v1/metrics", "/v1/namespaces/shop/metrics"} {
		s.mustPut(strings.Replace(metrics, "metrics", "metrics-providers", 1)+"/prices", `{"spec":{"type":"http_json","http_json":{"url":"`+prices.URL+`/${labels.tariff}","value":"/price"}}}`)
		s.mustPut(metrics+"/price", `{"spec":{"min":0,"max":1,"metrics_provider":{"name":"prices","metric":"eur"}}}`)
	}
	const rated = `"metrics":[{"name":"price"},{"name":"price","namespace":"shop"}]`
	s.mustPut("/v1/clusters/shops", `{"metadata":{"labels":{"tariff":"cheap"}},"spec":{"namespace":"shop",`+rated+`}}`)
	s.mustPut("/v1/clusters/covert", `{"metadata":{"labels":{"tariff":"dear"}},"spec":{"namespace":"vault",`+rated+`}}`)
	s.mustPut("/v1/clusters/covert-unpriced", `{"spec":{"namespace":"vault",`+rated+`}}`)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	asks := []struct {
		method, path, body string
		tells              bool // the reader may see every cluster
	}{
		{"GET", "/v1/metrics/price", "", true},
		{"GET", "/v1/metrics/price?wait=1s&resource_version=1", "", true},
		{"GET", "/v1/namespaces/shop/metrics/price", "", true},
		{"GET", "/v1/metrics", "", true},
		{"GET", "/v1/metrics?all=true", "", true},
		{"GET", "/v1/metrics?limit=1", "", true},
		{"GET", "/v1/namespaces/shop/metrics", "", true},
		{"GET", "/v1/metrics-providers?all=true", "", false},
		{"GET", "/v1/namespaces/shop/placements/web/explanation", "", true},
		{"GET", "/v1/clusters", "", true},
		{"POST", "/v1/simulations", `{"objects":[` + document("metric", "shop", "price", `"spec":{"min":0,"max":2,"metrics_provider":{"name":"prices","metric":"eur"}}`) + `]}`, true},
		{"POST", "/v1/previews", document("placement", "shop", "web", `"spec":{"metric_constraints":["price > 0.3"]}`), false},
	}
	tells := func(text string) bool { return strings.Contains(text, "covert") || strings.Contains(text, "0.424242") }
	for who, token := range map[string]string{
		"admin": admin, "editor": s.addToken(auth.RoleEditor), "viewer": s.addToken(auth.RoleViewer),
		"editor of shop": s.addToken(auth.RoleEditor, "shop"), "viewer of shop": s.addToken(auth.RoleViewer, "shop"),
		"editor of two": s.addToken(auth.RoleEditor, "shop", "other"), "agent of shop": s.addToken(auth.RoleAgent, "shop"),
	} {
		s.token = token
		bound, agent := strings.Contains(who, " of "), strings.HasPrefix(who, "agent")
		for _, ask := range asks {
			a := s.do(ask.method, ask.path, ask.body)
			if agent != (a.StatusCode == http.StatusForbidden) || !agent && a.StatusCode >= 300 {
				t.Errorf("%s: %s %s: %d %s", who, ask.method, ask.path, a.StatusCode, a.body)
			}
			if got, want := tells(string(a.body)), ask.tells && !bound; got != want {
				t.Errorf("%s: %s %s: hidden clusters are shown: %t, want %t: %s", who, ask.method, ask.path, got, want, a.body)
			}
			if bound && strings.Contains(string(a.body), "of the 3") {
				t.Errorf("%s: %s %s: the answer counts hidden clusters: %s", who, ask.method, ask.path, a.body)
			}
		}
		if agent || strings.HasPrefix(who, "viewer") {
			continue
		}
		// The response to a write, and the event that others receive.
		watch := s.watch("/v1/watch?kinds=metric").started()
		a := s.mustPut("/v1/namespaces/shop/metrics/price", `{"metadata":{"labels":{"for":"`+strings.ReplaceAll(who, " ", "-")+`"}},"spec":{"min":0,"max":1,"metrics_provider":{"name":"prices","metric":"eur"}}}`)
		event, more := watch.next()
		watch.close()
		if text := string(operation.EncodeJSON(event.data)); !more || tells(text) == bound || tells(string(a.body)) == bound {
			t.Errorf("%s: hidden clusters are shown to a bound token, or hidden from an unbound one: PUT: %s, watch: %s", who, a.body, text)
		}
	}
}
