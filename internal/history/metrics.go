package history

import (
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// metrics are the metrics of a log.
type metrics struct {
	bytes, records, chunks, hot atomic.Int64
	oldest                      atomic.Int64 // Unix time; 0 if nothing is kept
	failures                    *prometheus.CounterVec
}

// steps are what may fail in the background, or before a pass.
var steps = []string{"record", "checkpoint", "seal", "retain"}

func newMetrics() *metrics {
	m := &metrics{failures: prometheus.NewCounterVec(prometheus.CounterOpts{
		Name: "scheduler_history_failures_total",
		Help: "Failed attempts to record what a pass decides on, to write a checkpoint, to seal records or to delete old ones.",
	}, []string{"step"})}
	for _, step := range steps {
		m.failures.WithLabelValues(step)
	}
	return m
}

func (m *metrics) failed(step string) { m.failures.WithLabelValues(step).Inc() }

// saw takes what the history consists of.
func (m *metrics) saw(h head, logs []index, hot int, oldest time.Time) {
	m.bytes.Store(h.Log.Bytes + h.Inputs.Bytes)
	m.records.Store(h.Log.Records)
	m.chunks.Store(h.Log.Next - h.Log.First + h.Inputs.Next - h.Inputs.First)
	m.hot.Store(int64(hot))
	if len(logs) > 0 {
		oldest = logs[0].Since
	}
	m.oldest.Store(0)
	if !oldest.IsZero() {
		m.oldest.Store(oldest.Unix())
	}
}

// Collectors returns the metrics of the history.
func (l *Log) Collectors() []prometheus.Collector {
	gauge := func(name, help string, value *atomic.Int64) prometheus.Collector {
		return prometheus.NewGaugeFunc(prometheus.GaugeOpts{Name: name, Help: help}, func() float64 { return float64(value.Load()) })
	}
	m := l.metrics
	return []prometheus.Collector{
		m.failures,
		gauge("scheduler_history_bytes", "What the sealed part of the history takes in the store.", &m.bytes),
		gauge("scheduler_history_records", "Decisions in the sealed part of the history.", &m.records),
		gauge("scheduler_history_chunks", "Chunks of the sealed part of the history.", &m.chunks),
		gauge("scheduler_history_unsealed", "Values of the history that are not sealed yet: they are if there are thousands, or after a day.", &m.hot),
		gauge("scheduler_history_oldest_timestamp_seconds", "Time of the oldest decision in the history, 0 if there is none.", &m.oldest),
	}
}
