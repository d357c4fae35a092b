package collect

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// metrics are the metrics about readings.
type metrics struct {
	failures *prometheus.CounterVec
	seconds  *prometheus.HistogramVec
}

func newMetrics() *metrics {
	return &metrics{
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_metric_failures_total",
			Help: "Readings of a metric without a usable value, by metrics provider and reason.",
		}, []string{"provider", "reason"}),
		seconds: prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Name:    "scheduler_metrics_provider_read_seconds",
			Help:    "Duration of one reading of a metrics provider, by type of provider.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 12),
		}, []string{"type"}),
	}
}

func (f *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{f.failures, f.seconds}
}

// forget removes the series of a deleted provider.
func (f *metrics) forget(provider api.Key) {
	f.failures.DeletePartialMatch(prometheus.Labels{"provider": provider.Path()})
}

var ageDesc = prometheus.NewDesc("scheduler_metrics_provider_age_seconds",
	"Time since the metrics provider last responded, by provider; static providers are left out.", []string{"provider"}, nil)

// ages collects the age of the last good reading of each provider.
type ages struct{ c *Collector }

// Describe implements prometheus.Collector.
func (ages) Describe(out chan<- *prometheus.Desc) { out <- ageDesc }

// Collect implements prometheus.Collector.
func (a ages) Collect(out chan<- prometheus.Metric) {
	a.c.mu.Lock()
	defer a.c.mu.Unlock()
	now := a.c.Now()
	for key, l := range a.c.loops {
		if l.kind.Constant || l.goodAt.IsZero() {
			continue
		}
		out <- prometheus.MustNewConstMetric(ageDesc, prometheus.GaugeValue, now.Sub(l.goodAt).Seconds(), key.Path())
	}
}
