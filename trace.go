package main

import (
	"context"
	"log/slog"
	"os"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"

	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing/otlp"
	"github.com/scheduler/terraform-provider-scheduler/provider"
)

// closeTraces is how long the provider waits for the collector of traces when it stops. Terraform kills it after two
// seconds.
const closeTraces = 1500 * time.Millisecond

// traced makes what Terraform asks of the provider a part of a trace, if the environment asks for that, as Terraform
// itself does: OTEL_TRACES_EXPORTER=otlp records spans, and TRACEPARENT names the trace that they are part of. With
// TRACEPARENT alone, only the server records. end must be called before the process ends.
func traced(version string, server func() tfprotov6.ProviderServer) (_ func() tfprotov6.ProviderServer, end func(), err error) {
	run := tracing.FromEnvironment(context.Background(), os.Getenv)
	recorder, err := otlp.Open(run, otlp.Options{
		Settings: otlp.Settings{SampleRatio: 1}, Service: "terraform-provider-scheduler", Version: version,
		CloseWithin: closeTraces, Logger: slog.New(slog.NewTextHandler(os.Stderr, nil)),
	})
	if err != nil {
		return nil, nil, err
	}
	run, span := recorder.Tracer().Begin(run, "terraform-provider-scheduler", time.Now())
	if !tracing.Continues(run) {
		return server, func() {}, nil
	}
	return provider.Traced(run, server), func() {
		span.End(nil)
		recorder.Close()
	}, nil
}
