package serve

import "github.com/prometheus/client_golang/prometheus"

// metrics counts the connections by listener.
type metrics struct {
	open     prometheus.Gauge
	rejected *prometheus.CounterVec
	evicted  *prometheus.CounterVec
	failed   *prometheus.CounterVec
}

func newMetrics() *metrics {
	return &metrics{
		open: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_http_connections", Help: "Open connections of all listeners.",
		}),
		rejected: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_http_connections_rejected_total", Help: "Connections closed at once because the limit was reached and all connections were in use.",
		}, []string{"listener", "limit"}),
		evicted: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_http_connections_evicted_total", Help: "Connections without a request that were closed: to make room for others (client, total, descriptors), or because no request arrived in time (silent).",
		}, []string{"listener", "limit"}),
		failed: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_http_accept_failures_total", Help: "Connections that could not be accepted because of a system error.",
		}, []string{"listener"}),
	}
}

func (m *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{m.open, m.rejected, m.evicted, m.failed}
}
