package signal

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// prices serves one document for each zone, and one for the whole fleet.
type prices struct {
	mu    sync.Mutex
	asked map[string]int
	zones map[string]string
}

// ServeHTTP implements http.Handler.
func (p *prices) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.asked[r.URL.RequestURI()]++
	body, ok := p.zones[strings.TrimPrefix(r.URL.Path, "/zones/")]
	if !ok {
		w.WriteHeader(http.StatusNotFound)
		return
	}
	_, _ = fmt.Fprint(w, body)
}

// take returns the number of requests by path, and resets it.
func (p *prices) take() map[string]int {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked := p.asked
	p.asked = map[string]int{}
	return asked
}

func clusterIn(name string, labels map[string]string, metrics ...string) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name, Labels: labels}}
	for _, metric := range metrics {
		c.Spec.Metrics = append(c.Spec.Metrics, api.MetricRef{Name: metric})
	}
	return c
}

// reading checks the stored value of a metric for a cluster.
func (b *bench) reading(metric, cluster string, value float64, problem string) {
	b.t.Helper()
	got, ok := b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: metric}).Object.(*api.Metric).Status.Clusters[cluster]
	switch {
	case problem != "" && (!ok || !strings.Contains(got.Message, problem) || got.Reason == ""):
		b.t.Errorf("%s of %s is %+v, want %q", metric, cluster, got, problem)
	case problem == "" && (got.Reason != "" || got.Value == nil || *got.Value != value || got.ObservedAt == nil):
		b.t.Errorf("%s of %s is %+v, want %v", metric, cluster, got, value)
	}
}

func TestEachClusterHasItsOwnValue(t *testing.T) {
	world := &prices{asked: map[string]int{}, zones: map[string]string{
		"de": `{"price":30,"carbon":"300"}`, "fr": `{"price":20,"carbon":50}`,
	}}
	server := proxytest.NewServer(t, world)
	s, codec := openStore(t)
	b := start(t, s, codec)
	p := &api.MetricsProvider{Metadata: api.Metadata{Name: "prices"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderHTTPJSON, Interval: "1h",
		HTTPJSON: &api.HTTPJSONSpec{URL: server.URL + "/zones/${labels.zone}?v=1", Value: "/${metric}"},
	}}
	b.put(p)
	b.put(metricOf("price", "prices", "price"))
	b.put(metricOf("carbon", "prices", "carbon"))
	b.put(clusterIn("berlin", map[string]string{"zone": "de"}, "price", "carbon"))
	b.put(clusterIn("bonn", map[string]string{"zone": "de"}, "price"))
	b.put(clusterIn("paris", map[string]string{"zone": "fr"}, "price", "carbon"))
	b.put(clusterIn("oslo", map[string]string{"zone": "no"}, "price"))
	world.take()
	b.put(clusterIn("nowhere", map[string]string{"zones": "de"}, "price"))
	b.put(clusterIn("other", map[string]string{"zone": "de"}))
	if asked := world.take(); len(asked) != 0 {
		t.Errorf("requests %v for a cluster without the label and one without metrics, want none", asked)
	}
	b.reading("price", "berlin", 30, "")
	b.reading("price", "bonn", 30, "")
	b.reading("price", "paris", 20, "")
	b.reading("carbon", "paris", 50, "")
	b.reading("carbon", "berlin", 0, "outside of")
	b.reading("price", "oslo", 0, "/zones/no: status 404")
	b.reading("price", "nowhere", 0, `cluster "nowhere" has no label "zone"`)
	metric := b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: "price"}).Object.(*api.Metric)
	if c := api.FindCondition(metric.Status.Conditions, api.ConditionAvailable); len(metric.Status.Clusters) != 5 ||
		c.Status != api.ConditionTrue || !strings.Contains(c.Message, "2 of the 5 clusters") {
		t.Errorf("unexpected status of the metric: %+v", metric.Status)
	}

	// After a change to the provider everything is read again: each document once.
	p.Spec.Timeout = "5s"
	b.put(p)
	if asked := world.take(); len(asked) != 3 || asked["/zones/de?v=1"] != 1 || asked["/zones/fr?v=1"] != 1 || asked["/zones/no?v=1"] != 1 {
		t.Errorf("unexpected requests %v", asked)
	}

	// A cluster that changes its zone gets the value of the new zone at once, without reading other documents.
	b.put(clusterIn("bonn", map[string]string{"zone": "fr"}, "price"))
	b.reading("price", "bonn", 20, "")
	if asked := world.take(); len(asked) != 1 || asked["/zones/fr?v=1"] != 1 {
		t.Errorf("unexpected requests %v", asked)
	}
	b.put(clusterIn("bonn", nil, "price"))
	b.reading("price", "bonn", 0, `no label "zone"`)
	if got := b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: "price"}).Object.(*api.Metric).Status.Clusters["bonn"]; got.Value != nil {
		t.Errorf("bonn kept the value of its previous zone: %v", *got.Value)
	}

	// A cluster that no longer lists the metric, or is deleted, has no value.
	b.put(clusterIn("bonn", map[string]string{"zone": "fr"}))
	b.remove(api.Key{Kind: api.KindCluster, Name: "oslo"})
	eventually.True(t, "three clusters are left", func() bool {
		return len(b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: "price"}).Object.(*api.Metric).Status.Clusters) == 3
	})

	// A good value stays while the server does not respond.
	server.Close()
	b.put(clusterIn("paris", map[string]string{"zone": "fr", "tier": "gold"}, "price", "carbon"))
	got := b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: "price"}).Object.(*api.Metric).Status.Clusters["paris"]
	if got.Reason != api.ReasonUnreachableMetricsProvider || got.Value == nil || *got.Value != 20 || got.ObservedAt == nil {
		t.Errorf("paris: got %+v, want the last value and a failure", got)
	}

	// Back to one value for all clusters.
	p.Spec.Type, p.Spec.HTTPJSON, p.Spec.Static = api.ProviderStatic, nil, &api.StaticSpec{Metrics: map[string]float64{"price": 7, "carbon": 8}}
	b.put(p)
	b.expect("price", 7.0, api.ReasonAvailable)
	if left := b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: "price"}).Object.(*api.Metric).Status.Clusters; left != nil {
		t.Errorf("clusters %v, want none", left)
	}
}

// A restart reads nothing that is stored, and loses nothing.
func TestRestartKeepsTheValuesOfClusters(t *testing.T) {
	world := &prices{asked: map[string]int{}, zones: map[string]string{"de": "30"}}
	server := httptest.NewServer(world)
	defer server.Close()
	s, codec := openStore(t)
	b := start(t, s, codec)
	b.put(&api.MetricsProvider{Metadata: api.Metadata{Name: "prices"}, Spec: api.MetricsProviderSpec{
		Type: api.ProviderHTTPJSON, Interval: "1h", HTTPJSON: &api.HTTPJSONSpec{URL: server.URL + "/zones/${labels.zone}"},
	}})
	b.put(metricOf("price", "prices", "price"))
	b.put(clusterIn("berlin", map[string]string{"zone": "de"}, "price"))
	b.reading("price", "berlin", 30, "")
	b.stop()
	before, err := s.Revision(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	world.take()
	b = start(t, s, codec)
	b.reading("price", "berlin", 30, "")
	eventually.True(t, "the metric is read again after the restart", func() bool { return len(world.take()) > 0 })
	b.put(clusterIn("bonn", map[string]string{"zone": "de"}, "price"))
	b.reading("price", "bonn", 30, "")
	if after, err := s.Revision(t.Context()); err != nil || after != before+2 {
		t.Errorf("the revision went from %d to %d, %v; want two writes", before, after, err)
	}
}
