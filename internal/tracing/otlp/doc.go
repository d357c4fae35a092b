// Package otlp exports spans to a collector by OTLP.
//
// Nothing waits for the collector: spans wait in a queue of limited length, and those that do not fit, or that
// the collector does not take, are dropped and counted. The libraries of OpenTelemetry do the rest: they batch,
// encode, send and retry.
package otlp
