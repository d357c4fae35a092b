package collect

import (
	"context"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// ReadConstant returns the status of a metric whose provider type has constant values. ok is false
// for every other type: reading those requires the network.
func ReadConstant(t source.Type, normalize func(api.MetricSpec, float64) (float64, error), provider *api.MetricsProvider, o *api.Metric, now time.Time) (status api.MetricStatus, ok bool) {
	if !t.Constant {
		return api.MetricStatus{}, false
	}
	query := o.Spec.MetricsProvider.Metric
	var reading source.Reading
	if src, err := t.New(provider, nil); err != nil {
		reading.Err = source.Unreachable("%s", err)
	} else {
		defer src.Close()
		readings, err := src.Read(context.Background(), []string{query})
		reading = answerTo(query, readings, err)
	}
	status, _ = newMetric(o, now).observe(reading, normalize, now)
	return status, true
}
