package otlp

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracegrpc"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	semconv "go.opentelemetry.io/otel/semconv/v1.43.0"
	"google.golang.org/grpc/credentials"

	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

const (
	// maxWaiting is how many spans wait to be sent, including those that are being sent.
	maxWaiting = 4096
	// batchTime is how long a span waits for others to be sent with, and maxBatch how many are sent together.
	batchTime = time.Second
	maxBatch  = 512
	// exportTime limits sending a batch, with its retries.
	exportTime = 15 * time.Second
	// maxText is the length at which the SDK cuts texts off, and maxParts how many attributes, links and events
	// a span has at most.
	maxText  = 256
	maxParts = 128
)

// Options configures a Recorder.
type Options struct {
	Settings
	// Service, Version and Instance name this program. OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES take
	// precedence.
	Service, Version, Instance string
	// CloseWithin limits how long Close waits for the collector.
	CloseWithin time.Duration
	Logger      *slog.Logger
}

// Recorder records spans and exports them. The nil Recorder records nothing.
type Recorder struct {
	provider *sdk.TracerProvider
	tracer   *tracing.Tracer
	queue    *queue
	within   time.Duration
}

// Open returns a Recorder, or nil if tracing is off. It does not connect: a collector that is down is tried again.
func Open(ctx context.Context, o Options) (*Recorder, error) {
	if !o.on(os.Getenv) {
		return nil, nil
	}
	exporter, err := o.exporter(ctx)
	if err != nil {
		return nil, fmt.Errorf("tracing: %w", err)
	}
	named := []attribute.KeyValue{semconv.ServiceName(o.Service), semconv.ServiceVersion(o.Version)}
	if o.Instance != "" {
		named = append(named, semconv.ServiceInstanceID(o.Instance))
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithAttributes(named...), resource.WithFromEnv())
	if err != nil && !errors.Is(err, resource.ErrPartialResource) {
		return nil, errors.Join(fmt.Errorf("tracing: %w", err), exporter.Shutdown(ctx))
	}
	q := newQueue(exporter, o.Logger)
	provider := sdk.NewTracerProvider(
		sdk.WithResource(about), sdk.WithSampler(newSampler(o.SampleRatio)), sdk.WithSpanProcessor(q),
		sdk.WithRawSpanLimits(sdk.SpanLimits{
			AttributeValueLengthLimit: maxText, AttributeCountLimit: maxParts, EventCountLimit: maxParts, LinkCountLimit: maxParts,
			AttributePerEventCountLimit: maxParts, AttributePerLinkCountLimit: maxParts,
		}),
	)
	return &Recorder{provider: provider, tracer: tracing.New(provider), queue: q, within: o.CloseWithin}, nil
}

// exporter returns what sends the spans. The settings take precedence over the environment.
func (o *Options) exporter(ctx context.Context) (*otlptrace.Exporter, error) {
	protocol, err := o.protocol(os.Getenv)
	if err != nil {
		return nil, err
	}
	var headers map[string]string
	if o.HeadersFile != "" {
		secrets, err := readHeaders(o.HeadersFile)
		if err != nil {
			return nil, err
		}
		headers = map[string]string{}
		for name, value := range secrets {
			headers[name] = value.Reveal()
		}
	}
	secured, err := o.tls()
	if err != nil {
		return nil, err
	}
	if protocol == GRPC {
		var options []otlptracegrpc.Option
		if o.Endpoint != "" {
			options = append(options, otlptracegrpc.WithEndpointURL(o.address(GRPC)))
		}
		if headers != nil {
			options = append(options, otlptracegrpc.WithHeaders(headers))
		}
		if secured != nil {
			options = append(options, otlptracegrpc.WithTLSCredentials(credentials.NewTLS(secured)))
		}
		return otlptracegrpc.New(ctx, options...)
	}
	var options []otlptracehttp.Option
	if o.Endpoint != "" {
		options = append(options, otlptracehttp.WithEndpointURL(o.address(HTTP)))
	}
	if headers != nil {
		options = append(options, otlptracehttp.WithHeaders(headers))
	}
	if secured != nil {
		options = append(options, otlptracehttp.WithTLSClientConfig(secured))
	}
	return otlptracehttp.New(ctx, options...)
}

// Tracer returns what begins traces, or nil if nothing is recorded.
func (r *Recorder) Tracer() *tracing.Tracer {
	if r == nil {
		return nil
	}
	return r.tracer
}

// Close sends the spans that wait, as far as there is time, and drops the others. Only its first call has an effect.
func (r *Recorder) Close() {
	if r == nil {
		return
	}
	ctx, cancel := context.WithTimeout(r.queue.stopping, r.within)
	defer cancel()
	defer context.AfterFunc(ctx, r.queue.abort)()
	_ = r.provider.Shutdown(ctx) // that time has run out; what was dropped is counted
	r.queue.abort()
	<-r.queue.ended
}

// Figures are what has become of the spans that have ended.
type Figures struct {
	// Exported is how many the collector has taken.
	Exported int64
	// Full is how many were dropped because too many were waiting, and Refused because the collector did not take
	// them in time.
	Full, Refused int64
	// Waiting is how many wait to be sent.
	Waiting int64
}

// Figures returns the present ones.
func (r *Recorder) Figures() Figures {
	if r == nil {
		return Figures{}
	}
	q := r.queue
	return Figures{Exported: q.exported.Load(), Full: q.full.Load(), Refused: q.refused.Load(), Waiting: q.waiting.Load()}
}

// newSampler records the given part of the traces that begin here, those that the caller records, and those that
// follow from a trace that is recorded.
func newSampler(ratio float64) sdk.Sampler {
	return sdk.ParentBased(follower{sdk.TraceIDRatioBased(ratio)})
}

// follower is a sampler that also records what follows from a trace that is recorded.
type follower struct{ sdk.Sampler }

// ShouldSample implements sdk.Sampler.
func (f follower) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	for _, link := range p.Links {
		if link.SpanContext.IsSampled() {
			return sdk.AlwaysSample().ShouldSample(p)
		}
	}
	return f.Sampler.ShouldSample(p)
}

// queue passes spans on to the SDK's batches as long as there is room, and the batches to the exporter.
type queue struct {
	sdk.SpanProcessor // makes the batches
	exporter          sdk.SpanExporter
	logger            *slog.Logger
	failing           atomic.Bool

	waiting, exported, full, refused atomic.Int64 // see Figures

	// stopping is done when nothing more is sent, and abort makes it so. ended is closed after the last batch.
	stopping context.Context
	abort    context.CancelFunc
	ended    chan struct{}
}

func newQueue(exporter sdk.SpanExporter, logger *slog.Logger) *queue {
	q := &queue{exporter: exporter, logger: logger, ended: make(chan struct{})}
	q.stopping, q.abort = context.WithCancel(context.Background())
	q.SpanProcessor = sdk.NewBatchSpanProcessor(batches{q},
		sdk.WithMaxQueueSize(maxWaiting), sdk.WithMaxExportBatchSize(maxBatch), sdk.WithBatchTimeout(batchTime), sdk.WithExportTimeout(exportTime))
	return q
}

// OnEnd implements sdk.SpanProcessor. The SDK would drop spans as well, but not say how many.
func (q *queue) OnEnd(span sdk.ReadOnlySpan) {
	if q.waiting.Add(1) > maxWaiting {
		q.waiting.Add(-1)
		q.full.Add(1)
		return
	}
	q.SpanProcessor.OnEnd(span)
}

// batches is the exporter of a queue.
type batches struct{ *queue }

// ExportSpans implements sdk.SpanExporter. It reports errors itself, once.
func (b batches) ExportSpans(ctx context.Context, spans []sdk.ReadOnlySpan) error {
	defer b.waiting.Add(-int64(len(spans)))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(b.stopping, cancel)() //nolint:contextcheck // ends when the queue is closed as well
	err := b.exporter.ExportSpans(ctx, spans)
	if err != nil {
		b.refused.Add(int64(len(spans)))
		if b.stopping.Err() == nil && !b.failing.Swap(true) {
			b.logger.Warn("the collector does not take traces; they are dropped until it does", "error", shortened(err))
		}
		return nil
	}
	b.exported.Add(int64(len(spans)))
	if b.failing.Swap(false) {
		b.logger.Info("the collector takes traces again")
	}
	return nil
}

// Shutdown implements sdk.SpanExporter. It is called after the last batch.
func (b batches) Shutdown(ctx context.Context) error {
	defer close(b.ended)
	return b.exporter.Shutdown(ctx)
}

// maxError is how much of an error is logged: the collector may answer anything.
const maxError = 300

func shortened(err error) string {
	text := []rune(err.Error())
	if len(text) > maxError {
		return string(text[:maxError]) + "…"
	}
	return string(text)
}
