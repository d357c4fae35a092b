package health

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the monitor's metrics.
type metrics struct {
	probes     *prometheus.CounterVec
	seconds    prometheus.Histogram
	heartbeats prometheus.Counter
	waiting    prometheus.GaugeFunc
}

func newMetrics(m *Monitor) *metrics {
	return &metrics{
		probes: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_probes_total",
			Help: "Health probes of clusters, by result: success, refused (answered with an error) or unreachable.",
		}, []string{"result"}),
		seconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "scheduler_probe_seconds",
			Help:    "Duration of health probes.",
			Buckets: prometheus.ExponentialBuckets(0.001, 2.5, 11),
		}),
		heartbeats: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_heartbeats_total",
			Help: "Heartbeats received from agents of clusters.",
		}),
		waiting: prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scheduler_probes_waiting",
			Help: "Health probes that are due and wait for a free slot.",
		}, func() float64 {
			m.mu.Lock()
			defer m.mu.Unlock()
			return float64(len(m.fast.waiting) + len(m.slow.waiting))
		}),
	}
}

func (f *metrics) probed(o outcome, took time.Duration) {
	f.probes.WithLabelValues(map[outcome]string{success: "success", refused: "refused", unreachable: "unreachable"}[o]).Inc()
	f.seconds.Observe(took.Seconds())
}

func (f *metrics) collectors() []prometheus.Collector {
	return []prometheus.Collector{f.probes, f.seconds, f.heartbeats, f.waiting}
}
