package main

import (
	"context"
	"fmt"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/tracing/otlp"
)

// closeTraces is how long the server waits for the collector of traces when it stops.
const closeTraces = 3 * time.Second

// traceFlags is the prefix of the settings of tracing.
const traceFlags = "tracing-"

// checkTracing validates the settings of tracing.
func (c *config) checkTracing(wrong func(format string, args ...any)) {
	settings := c.tracing()
	settings.Check(func(setting, format string, args ...any) {
		wrong("%s%s: %w", traceFlags, setting, fmt.Errorf(format, args...))
	})
}

// tracing returns the settings of tracing.
func (c *config) tracing() otlp.Settings {
	return otlp.Settings{
		Endpoint: c.TracingEndpoint, Protocol: otlp.Protocol(c.TracingProtocol), HeadersFile: c.TracingHeadersFile,
		CAFile: c.TracingCAFile, Plain: c.TracingInsecure, SampleRatio: c.TracingSampleRatio,
	}
}

// openTracing opens the export of traces. It is nil if there is none.
func (s *server) openTracing(ctx context.Context) (err error) {
	s.traces, err = otlp.Open(ctx, otlp.Options{
		Settings: s.config.tracing(), Service: "scheduler-server", Version: version, Instance: s.config.serverName(),
		CloseWithin: closeTraces, Logger: s.logger,
	})
	return err
}

// traceCollectors returns the metrics of the export of traces.
func traceCollectors(traces *otlp.Recorder) []prometheus.Collector {
	if traces == nil {
		return nil
	}
	counter := func(name, help string, labels prometheus.Labels, read func(otlp.Figures) int64) prometheus.Collector {
		return prometheus.NewCounterFunc(prometheus.CounterOpts{Name: name, Help: help, ConstLabels: labels},
			func() float64 { return float64(read(traces.Figures())) })
	}
	const dropped, why = "scheduler_trace_spans_dropped_total", "Spans that were dropped: because too many were waiting (queue_full), or because the collector did not take them in time (not_exported)."
	return []prometheus.Collector{
		counter("scheduler_trace_spans_exported_total", "Spans that the collector of traces has taken.", nil, func(f otlp.Figures) int64 { return f.Exported }),
		counter(dropped, why, prometheus.Labels{"reason": "queue_full"}, func(f otlp.Figures) int64 { return f.Full }),
		counter(dropped, why, prometheus.Labels{"reason": "not_exported"}, func(f otlp.Figures) int64 { return f.Refused }),
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "scheduler_trace_spans_waiting", Help: "Spans that wait to be sent to the collector of traces.",
		}, func() float64 { return float64(traces.Figures().Waiting) }),
	}
}
