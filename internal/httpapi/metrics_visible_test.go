package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

// TestSeriesShowOnlyReadableObjects checks that a token limited to a namespace does not see the names of objects in
// others.
func TestSeriesShowOnlyReadableObjects(t *testing.T) {
	blocked := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "blocked"}, []string{"kind", "namespace", "name"})
	ages := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "age"}, []string{"provider"})
	ready := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "ready"}, []string{"cluster"})
	failures := prometheus.NewGaugeVec(prometheus.GaugeOpts{Name: "failures"}, []string{"cloud", "region"})
	s := startServer(t, authenticated, func(o *Options) {
		o.Gatherer.(*prometheus.Registry).MustRegister(blocked, ages, ready, failures)
	})
	s.token = s.addToken(auth.RoleAdmin)
	s.mustPut("/v1/clusters/mine", `{"spec":{"namespace":"shop"}}`)
	s.mustPut("/v1/clusters/secret", `{"spec":{"namespace":"vault"}}`)
	s.mustPut("/v1/clouds/open", `{"spec":{}}`)
	s.mustPut("/v1/clouds/secret", `{"spec":{"namespace":"vault"}}`)
	blocked.WithLabelValues("placement", "shop", "web").Set(1)
	blocked.WithLabelValues("placement", "vault", "secret").Set(1)
	blocked.WithLabelValues("cluster", "", "secret").Set(1)
	blocked.WithLabelValues("cluster", "", "mine").Set(1)
	ages.WithLabelValues("global").Set(1)
	ages.WithLabelValues("shop/p").Set(1)
	ages.WithLabelValues("vault/secret").Set(1)
	ready.WithLabelValues("mine").Set(1)
	ready.WithLabelValues("secret").Set(1)
	failures.WithLabelValues("open", "r").Set(1)
	failures.WithLabelValues("secret", "r").Set(1)
	all := string(s.expect(http.StatusOK, http.MethodGet, "/metrics", "").body)
	if n := strings.Count(all, "secret"); n != 5 {
		t.Fatalf("an administrator sees %d series with a secret name, want 5: %s", n, all)
	}
	s.token = s.addToken(auth.RoleViewer, "shop")
	shown := string(s.expect(http.StatusOK, http.MethodGet, "/metrics", "").body)
	if strings.Contains(shown, "secret") || strings.Contains(shown, "vault") {
		t.Errorf("shop sees series of other namespaces: %s", shown)
	}
	for _, want := range []string{
		`blocked{kind="placement",name="web",namespace="shop"}`, `blocked{kind="cluster",name="mine",namespace=""}`, `age{provider="global"}`,
		`age{provider="shop/p"}`, `ready{cluster="mine"}`, `failures{cloud="open",region="r"}`, "scheduler_http_requests_total",
	} {
		if !strings.Contains(shown, want) {
			t.Errorf("shop does not see %s", want)
		}
	}
}
