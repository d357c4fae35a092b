package openstack

import "github.com/prometheus/client_golang/prometheus"

// metrics are the metrics about collections.
type metrics struct {
	duration prometheus.Histogram
	failures *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		duration: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "scheduler_openstack_collection_duration_seconds", Help: "Duration of the collection of a region.",
			Buckets: []float64{.05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 120},
		}),
		failures: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_openstack_collection_failures_total", Help: "Failed collections, by cloud and region; without a region if the list of regions could not be read.",
		}, []string{"cloud", "region"}),
	}
}

func (f *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{f.duration, f.failures}
}

func (f *metrics) failed(cloud, region string) { f.failures.WithLabelValues(cloud, region).Inc() }

// forget removes the series of a deleted cloud.
func (f *metrics) forget(cloud string) {
	f.failures.DeletePartialMatch(prometheus.Labels{"cloud": cloud})
}
