package main

import (
	"context"
	"net"
	"net/url"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/certificate"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/runner"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
)

// checkWebhook validates the settings of the webhook.
func (c *config) checkWebhook(wrong func(format string, args ...any)) {
	if c.WebhookListen == "" {
		if c.WebhookURL != "" {
			wrong("webhook-url: requires webhook-listen")
		}
		return
	}
	if t := c.WebhookTimeout; t < time.Second || t > 30*time.Second || t%time.Second != 0 {
		wrong("webhook-timeout: %s must be full seconds from 1s to 30s, as Kubernetes has it", t)
	}
	host, _, err := net.SplitHostPort(c.WebhookListen)
	if err != nil {
		wrong("webhook-listen: %q is not an address: write host:port, such as 0.0.0.0:8443", c.WebhookListen)
		return
	}
	if c.WebhookURL == "" {
		if ip := net.ParseIP(host); host == "" || ip != nil && ip.IsUnspecified() {
			wrong("webhook-url: is required, because clusters cannot reach the server at the webhook-listen address %s: give the https://host:port that they use", c.WebhookListen)
		}
		return
	}
	if !isBaseURL(c.WebhookURL, "https") {
		wrong("webhook-url: %q is not an address of the form https://host:port", c.WebhookURL)
	}
}

// standby admits pods while another server leads: it watches the clusters.
type standby struct {
	spot  *runner.Runner
	end   context.CancelFunc
	ended chan struct{}
}

// standBy starts a standby. It returns nil if there is no webhook or no other server.
func (l *leadership) standBy(ctx context.Context) *standby {
	s := l.server
	if s.spot.webhook == nil || !l.others() {
		return nil
	}
	options := s.spot.options
	options.Kubernetes, options.AdmitOnly = informer.NewGroup(s.clusters, s.faults.Component("kubernetes")), true
	b := &standby{spot: runner.New(options), ended: make(chan struct{})}
	ctx, b.end = context.WithCancel(ctx)
	go func() {
		defer close(b.ended)
		// It ends only with ctx; after a panic it is restarted.
		_ = s.faults.Component("spot").Supervise(ctx, b.spot.Run)
	}()
	return b
}

// stop stops the standby and waits until it has ended.
func (b *standby) stop() {
	if b != nil {
		b.end()
		<-b.ended
	}
}

// spotParts are the parts that split pods between node types. Without an address for the webhook
// there is only the runner, which reports that in the status of clusters.
type spotParts struct {
	authority *certificate.Authority
	listener  net.Listener
	webhook   *webhook.Server
	// options are those of the runner of each term.
	options runner.Options
}

// openSpot connects them.
func (s *server) openSpot(ctx context.Context) error {
	c := s.config
	s.spot.options = runner.Options{
		Fleet: s.fleet, Workloads: s.decider, ExcludeNamespaces: s.config.WebhookExcludeNamespaces,
		ReturnAfter: s.config.SpotReturnAfter, Logger: s.logger, Faults: s.faults,
	}
	if c.WebhookListen == "" {
		return nil
	}
	var err error
	if s.spot.listener, err = listen(ctx, c.WebhookListen); err != nil {
		return err
	}
	options := &s.spot.options
	options.WebhookTimeout = c.WebhookTimeout
	if options.WebhookURL = c.WebhookURL; options.WebhookURL == "" {
		options.WebhookURL = "https://" + s.spot.listener.Addr().String()
	}
	u, err := url.Parse(options.WebhookURL)
	if err != nil {
		return err
	}
	s.spot.authority, err = certificate.New(certificate.Options{Store: s.store, Sealer: s.codec, Hosts: []string{u.Hostname()}, Logger: s.logger})
	if err != nil {
		return err
	}
	if err := s.spot.authority.Open(ctx); err != nil {
		return err
	}
	options.Authority = s.spot.authority
	options.Gone = func(cluster string) { s.spot.webhook.Forget(cluster) }
	s.spot.webhook, err = webhook.New(webhook.Options{
		Listener: s.spot.listener, Connections: s.connections, TLS: s.spot.authority.TLSConfig(), Clusters: leaderOnly{s.leading}.cluster, Tracer: s.traces.Tracer(), Logger: s.logger, Faults: s.faults,
	})
	return err
}

// components returns the parts to run, in start order.
func (p *spotParts) components() []component {
	if p.webhook == nil {
		return nil
	}
	return []component{{"webhook certificate", p.authority.Run}, {"webhook", p.webhook.Run}}
}
