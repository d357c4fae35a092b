package signal

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

type constantIn struct {
	Metrics conformance.Field[map[string]float64] `json:"metrics"`
	Metric  conformance.Field[string]             `json:"metric"`
}

type constantOut struct {
	Value float64 `json:"value"`
}

type scopeIn struct {
	MetricRef conformance.Field[struct {
		Namespaced conformance.Field[bool] `json:"namespaced"`
	}] `json:"metric_ref"`
	// Resource is a kind, or a kind with the namespace that owns it.
	Resource conformance.Field[json.RawMessage] `json:"resource"`
}

type scopeOut struct {
	Error    string `json:"error"`
	Code     int    `json:"code"`
	Metric   string `json:"metric"`
	Provider string `json:"provider"`
}

// TestKrakeCases runs the cases about static providers, and about which metric or provider a reference means. There is
// one deviation: a global cloud with a metric in a namespace (K277) is rejected when it is written, so that reading the
// metric cannot fail.
func TestKrakeCases(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/signal",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"provider_static": conformance.Player(playConstant),
			"provider_scope":  conformance.Player(playScope),
		},
	}
	suite.Run(t)
}

func playConstant(t *conformance.T, in *constantIn, out *constantOut) {
	status, ok := ReadConstant(staticProvider(in.Metrics.Get()), metricOf("m", "table", in.Metric.Get()), time.Unix(0, 0))
	if !ok || status.Value == nil || *status.Value != out.Value {
		t.Errorf("got %+v, %v; want %v", status, ok, out.Value)
	}
}

func playScope(t *conformance.T, in *scopeIn, out *scopeOut) {
	ref := api.MetricRef{Name: "m"}
	if in.MetricRef.Get().Namespaced.Get() {
		ref.Namespace = "a"
	}
	var kind string
	if json.Unmarshal(in.Resource.Get(), &kind) == nil {
		if kind != "GlobalCloud" {
			t.Fatalf("kind %s is not supported", kind)
		}
		cloud := &api.Cloud{Metadata: api.Metadata{Name: "c"}, Spec: api.CloudSpec{Metrics: []api.MetricRef{ref}}}
		cloud.SetDefaults()
		refused := func(e api.FieldError) bool { return e.Field == "spec.metrics[0].namespace" }
		if errs := cloud.Validate(); out.Error != "INVALID_METRIC" || out.Code != 91 || !slices.ContainsFunc(errs, refused) {
			t.Errorf("got %v, want %s %d", errs, out.Error, out.Code)
		}
		cloud.Spec.Namespace = ref.Namespace
		if errs := cloud.Validate(); slices.ContainsFunc(errs, refused) {
			t.Errorf("a cloud in the namespace is rejected, too: %v", errs)
		}
		return
	}
	var owned struct{ Kind, Namespace string }
	if err := json.Unmarshal(in.Resource.Get(), &owned); err != nil || owned.Kind != "Cluster" {
		t.Fatalf("%s is not supported: %v", in.Resource.Get(), err)
	}
	// Global, although the cluster belongs to a namespace.
	cluster := &api.Cluster{Metadata: api.Metadata{Name: "c"}}
	cluster.Spec.Namespace, cluster.Spec.Metrics = owned.Namespace, []api.MetricRef{ref}
	cluster.SetDefaults()
	if errs := cluster.Validate(); errs != nil {
		t.Fatal(errs)
	}
	metric := metricOf(ref.Name, "p", "q")
	metric.Metadata.Namespace = cluster.Spec.Metrics[0].Key().Namespace
	for krake, key := range map[string]api.Key{out.Metric: cluster.Spec.Metrics[0].Key(), out.Provider: metric.ProviderKey()} {
		want := map[string]api.Key{
			"/core/globalmetrics/{name}":          {Kind: api.KindMetric, Name: "m"},
			"/core/globalmetricsproviders/{name}": {Kind: api.KindMetricsProvider, Name: "p"},
		}[krake]
		if key != want {
			t.Errorf("got %s, want %s", key, want)
		}
	}
}
