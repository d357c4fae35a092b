package signal

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/collect"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/http"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/influx"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/ksql"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/prometheus"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/static"
)

// types are the types of metrics providers. To add one, add a package with a source.Type, and a
// line here.
var types = []source.Type{
	static.Type,
	prometheus.Type,
	influx.Type,
	ksql.Type,
	http.Type,
}

// ReadConstant returns the status of a metric whose provider has the values in its spec. ok is
// false for every other provider.
func ReadConstant(provider *api.MetricsProvider, metric *api.Metric, now time.Time) (status api.MetricStatus, ok bool) {
	for _, t := range types {
		if t.Name == provider.Spec.Type {
			return collect.ReadConstant(t, columns.Normalize, provider, metric, now)
		}
	}
	return api.MetricStatus{}, false
}
