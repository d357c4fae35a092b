package reconcile

import "github.com/prometheus/client_golang/prometheus"

// metrics are the reconciler's metrics.
type metrics struct {
	decisions  *prometheus.CounterVec
	passing    prometheus.Histogram
	writing    prometheus.Histogram
	queue      prometheus.Gauge
	placements prometheus.Gauge
	workloads  prometheus.Gauge
	failed     prometheus.Counter
	blocked    *prometheus.GaugeVec
	faulted    *prometheus.GaugeVec
}

func newMetrics() *metrics {
	buckets := prometheus.ExponentialBuckets(1e-5, 4, 11)
	return &metrics{
		decisions: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_decisions_total",
			Help: "Decisions written, by result: moved (other clusters or numbers of replicas), kept, unschedulable.",
		}, []string{"result"}),
		passing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "scheduler_decision_pass_seconds", Help: "Time to make the decisions of one pass.", Buckets: buckets,
		}),
		writing: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name: "scheduler_decision_write_seconds", Help: "Time to make the decisions of one pass durable and visible.", Buckets: buckets,
		}),
		queue: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_decision_queue_depth", Help: "Decisions that are due, and not yet made and durable.",
		}),
		placements: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_placements", Help: "Placements that are decided.",
		}),
		workloads: prometheus.NewGauge(prometheus.GaugeOpts{
			Name: "scheduler_workloads", Help: "Workloads that are decided.",
		}),
		failed: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_decision_write_failures_total", Help: "Batches of decisions whose first write failed.",
		}),
		blocked: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "scheduler_decision_blocked", Help: "1 for an object whose decision repeatedly cannot be written; if there are very many, only some are listed.",
		}, []string{"kind", "namespace", "name"}),
		faulted: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "scheduler_objects_faulted", Help: "Objects that are excluded from decisions because processing them panics, by kind.",
		}, []string{"kind"}),
	}
}

// leftOut updates the metrics about objects that are left out.
func (m *metrics) leftOut(l *quarantine) {
	m.faulted.Reset()
	for key := range l.of {
		m.faulted.WithLabelValues(string(key.Kind)).Inc()
	}
}

// unwritten updates the metrics about decisions that are not durable.
func (m *metrics) unwritten(u *unwritten) {
	m.queue.Set(float64(u.len()))
	m.blocked.Reset()
	for i, key := range u.blocked() {
		if i == maxNamed {
			break
		}
		m.blocked.WithLabelValues(string(key.Kind), key.Namespace, key.Name).Set(1)
	}
}

func (m *metrics) decided(w write) {
	switch {
	case w.observed:
	case w.wants():
		m.decisions.WithLabelValues("unschedulable").Inc()
	case w.moved:
		m.decisions.WithLabelValues("moved").Inc()
	default:
		m.decisions.WithLabelValues("kept").Inc()
	}
}

// Collectors returns the reconciler's metrics.
func (r *Reconciler) Collectors() []prometheus.Collector {
	m := r.metrics
	return []prometheus.Collector{m.decisions, m.passing, m.writing, m.queue, m.placements, m.workloads, m.failed, m.blocked, m.faulted}
}
