// Package tracing makes the spans of OpenTelemetry traces: what a request, a pass of the reconciler or a
// reading of metrics did, how long each part of it took, and what it caused.
//
// A trace begins with a Tracer. Everything below continues the trace of its context with Start, and does
// not need to know whether there is one: without a trace that is recorded, a span costs a look into the context
// and no memory. Package otlp exports the spans; this package does not link an exporter.
//
// Attributes hold names of objects, numbers, and words that this program chose. They never hold texts of
// requests or responses: no paths, queries, headers, bodies or messages of errors, any of which may contain
// secrets.
package tracing
