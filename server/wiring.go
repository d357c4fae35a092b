package main

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"slices"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/scheduler/terraform-provider-scheduler/internal/audit"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth/jwt"
	"github.com/scheduler/terraform-provider-scheduler/internal/certexpiry"
	"github.com/scheduler/terraform-provider-scheduler/internal/fdlimit"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/lastseen"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/runner"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing/otlp"
	"github.com/scheduler/terraform-provider-scheduler/ui"
)

// server holds the parts of a running server, in the direction of the data flow.
type server struct {
	config   config
	logger   *slog.Logger
	store    *store.Store
	fleet    *fleet.Fleet
	batcher  *store.Batcher
	leading  *leadership
	network  *addresspolicy.Policy
	codec    *store.Codec
	beats    lastseen.Times
	audit    *audit.Log     // nil if none is kept
	history  *history.Log   // nil if none is kept
	traces   *otlp.Recorder // nil if there are none
	clusters *kube.Clusters
	decider  *reconcile.Reconciler
	spot     spotParts
	api      *httpapi.Server
	listener net.Listener
	// connections limits those of the API and the webhook together.
	connections *serve.Limit
	starting    *starting
	faults      *recovery.Recorder
	// tls is the certificate of the API, nil for plain HTTP.
	tls *serve.Certificates
	// certificates monitors the server's certificates.
	certificates *certexpiry.Monitor
}

// openServer opens the store and connects all parts without starting them. The audit log may go to
// stdout.
func openServer(ctx context.Context, c config, logger *slog.Logger, stdout io.Writer, starting *starting) (_ *server, err error) {
	s := &server{config: c, logger: logger, starting: starting, faults: recovery.New(logger)}
	defer func() { //nolint:contextcheck // as in run
		if err != nil {
			s.closeInto(&err)
		}
	}()
	budget, err := fdlimit.Read()
	if err != nil {
		return nil, err
	}
	outbound.LimitConnections(budget.Outbound)
	if s.network, err = c.network(); err != nil {
		return nil, err
	}
	if s.tls, err = c.loadCertificates(logger); err != nil {
		return nil, err
	}
	if err := s.openTracing(ctx); err != nil {
		return nil, err
	}
	if s.leading, err = newLeadership(s); err != nil {
		return nil, err
	}
	storeOptions, err := c.storeOptions(logger)
	if err != nil {
		return nil, err
	}
	storeOptions.Doing, storeOptions.Faults = starting.doing, s.faults
	storeOptions.Candidate, storeOptions.Tracer = s.candidate, s.traces.Tracer()
	if s.store, err = store.Open(ctx, storeOptions); err != nil {
		return nil, err
	}
	if s.codec, err = store.OpenCodec(c.sealFile()); err != nil {
		return nil, err
	}
	if err := checkExposure(ctx, c, s.store, logger); err != nil {
		return nil, err
	}
	if s.listener, err = listen(ctx, c.Listen); err != nil {
		return nil, err
	}
	if s.audit, err = c.openAudit(stdout); err != nil {
		return nil, err
	}
	if s.history, err = s.openHistory(); err != nil {
		return nil, err
	}
	s.fleet = fleet.New(fleet.Options{Store: s.store, Codec: s.codec, Logger: logger})
	s.batcher = store.NewBatcher(s.store)
	s.clusters = kube.New(s.network, nil)
	s.clusters.Tracer = s.traces.Tracer()
	parts := leaderOnly{s.leading}
	s.decider = reconcile.New(reconcile.Options{
		Store: s.store, Fleet: s.fleet, Codec: s.codec, ReadConstant: signal.ReadConstant, Standby: true,
		Tracer: s.traces.Tracer(), Logger: logger, Faults: s.faults, Now: time.Now,
	})
	s.connections = c.connectionLimit(budget, logger)
	if err := s.openSpot(ctx); err != nil {
		return nil, err
	}
	var tlsConfig *tls.Config
	if s.tls != nil {
		tlsConfig = s.tls.TLS()
	}
	issuers, err := c.Auth.verifier(s.network, logger, s.faults.Component("issuers"))
	if err != nil {
		return nil, err
	}
	registry := prometheus.NewRegistry()
	options := httpapi.Options{
		Store: s.store, Fleet: s.fleet, Codec: s.codec, Decisions: s.decider, Signals: parts, Beats: &s.beats, Spot: parts, Audit: s.audit, Network: s.network,
		Name: s.leading.name(), Leader: s.leading.forAPI(),
		Checks: s.checks, Listener: s.listener, TLS: tlsConfig, Authenticate: !c.loopback() && !c.Insecure, Issuers: issuers, Logins: jwt.Logins(c.Auth.JWT),
		UI:      ui.Files(),
		Version: version, Faults: s.faults, Gatherer: registry,
		MaxBodyBytes: int64(c.MaxBody), MaxSimulationBytes: int64(c.MaxSimulation),
		Connections:            s.connections,
		LoginFailuresPerSecond: c.LoginFailuresPerSecond, LoginFailureBurst: c.LoginFailureBurst,
		DrainTime: c.DrainTime, Tracer: s.traces.Tracer(), Logger: logger, Now: time.Now,
	}
	if s.history != nil {
		options.History = s.history
	}
	if s.api, err = httpapi.New(options); err != nil {
		return nil, err
	}
	s.certificates = certexpiry.New(s.certificateSources(), logger, time.Now)
	return s, s.register(registry)
}

// newDuties creates the parts of a term, whose end is that of ctx.
func (s *server) newDuties(ctx context.Context) *duties {
	informers := informer.NewGroup(s.clusters, s.faults.Component("kubernetes"))
	signals := signal.New(signal.Options{
		Fleet: s.fleet, Store: s.store, Codec: s.codec, Batcher: s.batcher, Network: s.network,
		Beats: &s.beats, Reserved: s.decider.Reserved, Kubernetes: informers, Tracer: s.traces.Tracer(), Logger: s.logger, Faults: s.faults, Now: time.Now,
	})
	options := s.spot.options
	options.Clusters, options.Kubernetes = signals, informers
	return &duties{signals, runner.New(options), ctx}
}

// supervised returns a component that is restarted after a panic.
func (s *server) supervised(name string, run func(context.Context) error) component {
	return component{name, func(ctx context.Context) error { return s.faults.Component(name).Supervise(ctx, run) }}
}

// components returns the parts to run, in start order; they stop in reverse order: first requests
// end, then decisions, then writes.
func (s *server) components() []component {
	list := []component{{"fleet", s.fleet.Run}}
	if s.history != nil {
		list = append(list, component{"history", s.history.Run})
	}
	list = append(list, []component{
		{"status writes", s.batcher.Run},
		{"decisions", s.decider.Run},
		{"leadership", s.leading.run},
	}...)
	list = append(list, s.spot.components()...)
	list = append(list, component{"certificates", s.certificates.Run}, component{"memory", boundMemory})
	for i, c := range list {
		list[i] = s.supervised(c.name, c.run)
	}
	list = append(list, component{"http", s.serve})
	if s.config.DebugListen != "" {
		list = append(list, component{"debug", s.serveProfiles})
	}
	return list
}

// serve serves requests as soon as they can be answered.
func (s *server) serve(ctx context.Context) error {
	for _, ready := range []<-chan struct{}{s.decider.Ready(), s.leading.led} { // the first is closed after the fleet is ready
		select {
		case <-ready:
		case <-ctx.Done():
			return nil
		}
	}
	return s.api.Run(ctx)
}

// closeInto closes everything that is not a component, and joins errors into err.
func (s *server) closeInto(err *error) {
	if s.listener != nil {
		_ = s.listener.Close() // already closed if requests were served
	}
	if s.spot.listener != nil {
		_ = s.spot.listener.Close() // as above
	}
	*err = errors.Join(*err, s.audit.Close())
	if s.store != nil {
		if closing := s.store.Close(); closing != nil {
			*err = errors.Join(*err, fmt.Errorf("close the store: %w", closing))
		}
	}
	s.traces.Close()
}

// register registers the metrics of all parts.
func (s *server) register(registry *prometheus.Registry) error {
	for _, collector := range s.collectors() {
		if err := registry.Register(collector); err != nil {
			return fmt.Errorf("register metrics: %w", err)
		}
	}
	return nil
}

// collectors returns the metrics of all parts.
func (s *server) collectors() []prometheus.Collector {
	build := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "scheduler_build_info", Help: "Always 1; the label is the version.", ConstLabels: prometheus.Labels{"version": version},
	}, func() float64 { return 1 })
	leads := prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "scheduler_leader", Help: "1 on the server that leads, 0 on the others. A server with a store of its own always leads.",
	}, func() float64 {
		if s.leading.Leads() {
			return 1
		}
		return 0
	})
	parts := [][]prometheus.Collector{
		{build, leads, collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{})},
		s.connections.Collectors(), outbound.Collectors(),
		s.store.Collectors(), s.fleet.Collectors(), {s.leading}, s.decider.Collectors(), s.api.Collectors(),
		s.faults.Collectors(), {s.certificates}, s.audit.Collectors(), s.history.Collectors(), traceCollectors(s.traces),
	}
	if s.spot.webhook != nil {
		parts = append(parts, s.spot.webhook.Collectors(), s.spot.authority.Collectors())
	}
	return slices.Concat(parts...)
}
