package signal

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestKrakeCases runs the cases about static providers, and about which metrics
// and providers a reference means. The one deliberate difference: a global cloud
// with a metric of a namespace (K277) is refused when it is written, and so never
// gets as far as a reading that fails.
func TestKrakeCases(t *testing.T) {
	text, err := os.ReadFile("testdata/krake.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		ID string
		In struct {
			Metrics   map[string]float64
			Metric    string
			MetricRef struct{ Namespaced bool } `json:"metric_ref"`
		}
		Out struct {
			Value    *float64
			Error    string
			Metric   string
			Provider string
		}
	}
	if err := json.Unmarshal(text, &cases); err != nil {
		t.Fatal(err)
	}
	ran := 0
	for _, c := range cases {
		t.Run(c.ID, func(t *testing.T) {
			ran++
			switch c.ID {
			case "K275":
				status, ok := ReadConstant(staticProvider(c.In.Metrics), metricOf("m", "table", c.In.Metric), time.Unix(0, 0))
				if !ok || status.Value == nil || *status.Value != *c.Out.Value {
					t.Errorf("got %+v, %v; want %v", status, ok, *c.Out.Value)
				}
			case "K277":
				cloud := &api.Cloud{Metadata: api.Metadata{Name: "c"}, Spec: api.CloudSpec{Metrics: []api.MetricRef{{Name: "m", Namespace: "a"}}}}
				cloud.SetDefaults()
				refused := func(e api.FieldError) bool { return e.Field == "spec.metrics[0].namespace" }
				if errs := cloud.Validate(); c.Out.Error != "INVALID_METRIC" || !slices.ContainsFunc(errs, refused) {
					t.Errorf("got %v, want %s", errs, c.Out.Error)
				}
				cloud.Spec.Namespace = "a"
				if errs := cloud.Validate(); slices.ContainsFunc(errs, refused) {
					t.Errorf("a cloud of the namespace is refused, too: %v", errs)
				}
			case "K279":
				// Global, although the cluster belongs to a namespace.
				ref := api.MetricRef{Name: "m"}
				if c.In.MetricRef.Namespaced {
					ref.Namespace = "a"
				}
				metric := metricOf(ref.Name, "p", "q")
				metric.Metadata.Namespace = ref.Key().Namespace
				for krake, key := range map[string]api.Key{c.Out.Metric: ref.Key(), c.Out.Provider: metric.ProviderKey()} {
					want := map[string]api.Key{
						"/core/globalmetrics/{name}":          {Kind: api.KindMetric, Name: "m"},
						"/core/globalmetricsproviders/{name}": {Kind: api.KindMetricsProvider, Name: "p"},
					}[krake]
					if key != want {
						t.Errorf("got %s, want %s", key, want)
					}
				}
			default:
				t.Errorf("nothing runs it")
			}
		})
	}
	if ran != 3 {
		t.Errorf("%d cases, want 3", ran)
	}
}
