package store

import "github.com/prometheus/client_golang/prometheus"

// storeMetrics are the metrics of one store.
type storeMetrics struct {
	txnSeconds    prometheus.Histogram
	failures      prometheus.Counter
	compactions   prometheus.Counter
	watchRestarts prometheus.Counter
}

func newStoreMetrics() *storeMetrics {
	return &storeMetrics{
		txnSeconds: prometheus.NewHistogram(prometheus.HistogramOpts{
			Name:    "scheduler_store_transaction_seconds",
			Help:    "Time until a write transaction was durable or rejected.",
			Buckets: []float64{.0001, .00025, .0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10},
		}),
		failures: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_store_transaction_failures_total",
			Help: "Write transactions that failed, not counting failed comparisons.",
		}),
		compactions: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_store_compactions_total",
			Help: "Compactions of the history.",
		}),
		watchRestarts: prometheus.NewCounter(prometheus.CounterOpts{
			Name: "scheduler_store_watch_restarts_total",
			Help: "Times the watch broke and was resumed.",
		}),
	}
}

// Collectors returns the metrics of the store: sizes, revision, free space and transaction
// durations.
func (s *Store) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value func() int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value()) })
	}
	collectors := []prometheus.Collector{
		s.metrics.txnSeconds, s.metrics.failures, s.metrics.compactions, s.metrics.watchRestarts,
		gauge("scheduler_store_size_bytes", "Size of the database file.", func() int64 { size, _ := s.size(); return size }),
		gauge("scheduler_store_in_use_bytes", "Part of the database file that holds data.", func() int64 { _, inUse := s.size(); return inUse }),
		gauge("scheduler_store_revision", "Revision of the last change.", s.revision.Load),
	}
	if s.disk == nil {
		return collectors
	}
	return append(collectors,
		gauge("scheduler_store_quota_bytes", "Largest size of the database.", func() int64 { return s.options.QuotaBytes }),
		gauge("scheduler_store_disk_free_bytes", "Free space of the file system that holds the data directory.", s.disk.free),
		gauge("scheduler_store_refuses_writes", "1 while writes are refused because the disk or the quota is used up.", func() int64 {
			if s.disk.low.Load() || s.noSpace.Load() || s.overQuota.Load() {
				return 1
			}
			return 0
		}),
	)
}
