package openstack

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"net/http"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

const (
	// DefaultRefresh is the default interval between full pushes.
	DefaultRefresh = 10 * time.Minute
	// Initial limit of one push, which leaves space for defaults that the server adds, and the
	// smallest useful limit.
	firstLimit = 1 << 20
	lastLimit  = 4 << 10
)

// pushAgain is the backoff after a failed push.
var pushAgain = backoff.Backoff{First: time.Second, Most: time.Minute}

var (
	// ErrOutOfOrder says that the server rejected a report because it does not follow the last one.
	ErrOutOfOrder = errors.New("the report is out of sequence")
	// ErrTooLarge says that a report exceeds the server's limit.
	ErrTooLarge = errors.New("the report is larger than the server accepts")
)

// PushOptions configures what is collected and where it is sent.
type PushOptions struct {
	// Cloud is the name of the cloud, used only in logs.
	Cloud string
	// Access is the access to OpenStack.
	Access *api.OpenStackSpec
	// Collector names this run of the collector. It must be unique.
	Collector string
	// Refresh is the interval between full pushes, whatever the server seems to know. Default:
	// DefaultRefresh.
	Refresh time.Duration
	// Send delivers a report. ErrOutOfOrder requests a full one, ErrTooLarge shorter ones; after
	// any other error the report may or may not have arrived.
	Send func(ctx context.Context, report api.CloudReport) error
	// Concurrency is the number of regions read concurrently. Default: 16.
	Concurrency int
	// Network is the policy for outbound connections.
	Network *addresspolicy.Policy
	// RoundTripper sends requests to OpenStack. Default: the network.
	RoundTripper http.RoundTripper
	// Logger. If nil, log messages are discarded.
	Logger *slog.Logger
	// Now is the clock. Default: time.Now.
	Now func() time.Time
}

// pusher collects one cloud and pushes changes. It tracks what the server has, and sends the
// difference to the current state; so nothing is lost while the server cannot be reached, and
// nothing is sent twice.
type pusher struct {
	PushOptions
	wake chan struct{} // capacity of one

	mu       sync.Mutex
	wanted   api.CloudStatus
	complete bool     // every region was tried once
	lost     *Failure // OpenStack could not be queried at all, and that was not pushed yet

	// The remaining fields belong to the goroutine that sends.
	known      api.CloudStatus // what the server has
	sequence   int64
	full       bool      // the next report must be full
	fullAt     time.Time // when the last full report was delivered
	answeredAt time.Time // when the server was last up to date
	limit      int       // of one push, in bytes
}

// Push collects a cloud and pushes changes until ctx is done.
func Push(ctx context.Context, options PushOptions) error {
	if options.Logger == nil {
		options.Logger = slog.New(slog.DiscardHandler)
	}
	if options.Now == nil {
		options.Now = time.Now
	}
	if options.Concurrency <= 0 {
		options.Concurrency = 16
	}
	if options.Refresh <= 0 {
		options.Refresh = DefaultRefresh
	}
	p := &pusher{PushOptions: options, wake: make(chan struct{}, 1), full: true, limit: firstLimit}
	c := &collector{
		name: p.Cloud, spec: p.Access, network: p.Network, roundTripper: p.RoundTripper, now: p.Now, lanes: newLanes(p.Concurrency), figures: newMetrics(), keep: p.keep,
	}
	var collecting sync.WaitGroup
	faults := recovery.New(p.Logger).Component("collector")
	c.faults = faults
	collecting.Go(func() {
		_ = faults.Keep(ctx, cloudKey(p.Cloud), func(ctx context.Context) error { c.run(ctx); return nil }) // returns no error of its own
	})
	p.send(ctx)
	collecting.Wait()
	return nil
}

// keep accepts results.
func (p *pusher) keep(ctx context.Context, change func(api.CloudStatus) api.CloudStatus, answered bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	p.wanted = change(p.wanted)
	p.complete = p.complete || answered
	p.lost = nil
	collected := api.FindCondition(p.wanted.Conditions, api.ConditionCollected)
	if len(p.wanted.Regions) == 0 && collected != nil && collected.Status == api.ConditionFalse {
		p.lost = &Failure{Reason: collected.Reason, Message: collected.Message}
	}
	if collected != nil && collected.Status == api.ConditionFalse {
		p.Logger.Warn("the cloud cannot be collected", "cloud", p.Cloud, "reason", collected.Reason, "message", collected.Message)
	}
	select {
	case p.wake <- struct{}{}:
	default:
	}
}

// send pushes until ctx is done.
func (p *pusher) send(ctx context.Context) {
	failures := 0
	interval := p.Access.Interval.Or(time.Minute)
	for {
		if !p.full && p.Now().Sub(p.fullAt) >= p.Refresh {
			p.full = true
		}
		report, after := p.next()
		if report == nil {
			if p.full || p.Now().Sub(p.answeredAt) < interval {
				if !p.pause(ctx, interval) {
					return
				}
				continue
			}
			// A report without data asks whether the server still has the previous ones.
			report, after = &api.CloudReport{Collector: p.Collector, Sequence: p.sequence}, p.known
		}
		err := p.deliver(ctx, *report)
		switch {
		case ctx.Err() != nil:
			return
		case err == nil:
			p.answeredAt = p.Now()
			if report.Full {
				p.fullAt = p.answeredAt
			}
			p.known, p.full, failures = after, p.full && !report.Full, 0
			p.Logger.Debug("pushed", "cloud", p.Cloud, "sequence", p.sequence, "full", report.Full, "regions", len(report.Regions))
			continue
		case errors.Is(err, ErrOutOfOrder) && !p.full:
			p.full = true
			p.Logger.Info("the server does not have the capacity yet; pushing everything", "cloud", p.Cloud, "error", err)
			continue
		case errors.Is(err, ErrTooLarge) && p.limit > lastLimit:
			p.limit = max(p.limit/2, lastLimit)
			p.full = true
			continue
		}
		p.full = true // whether it arrived is unknown
		p.Logger.Warn("the capacity could not be pushed; retrying", "cloud", p.Cloud, "error", err)
		failures++
		if !backoff.Wait(ctx, time.Duration(float64(pushAgain.After(failures))*(1-jitter*rand.Float64()))) {
			return
		}
	}
}

// pause waits for changes, but at most until the server must be asked whether it has the data, or a
// full push is due. It returns false if ctx is done.
func (p *pusher) pause(ctx context.Context, interval time.Duration) bool {
	wait := interval
	if now := p.Now(); !p.full {
		wait = max(min(interval-now.Sub(p.answeredAt), p.Refresh-now.Sub(p.fullAt)), time.Millisecond)
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-p.wake:
	case <-timer.C:
	case <-ctx.Done():
		return false
	}
	return true
}

// deliver sends a report in as many parts as necessary.
func (p *pusher) deliver(ctx context.Context, report api.CloudReport) error {
	for _, part := range divide(report, p.limit) {
		p.sequence = part.Sequence
		if err := p.Send(ctx, part); err != nil {
			return err
		}
	}
	return nil
}

// next returns the next report, and what the server has after accepting it; nil if there is nothing
// to send.
func (p *pusher) next() (*api.CloudReport, api.CloudStatus) {
	p.mu.Lock()
	wanted, complete, lost := p.wanted, p.complete, p.lost
	p.lost = nil
	p.mu.Unlock()
	report := &api.CloudReport{Collector: p.Collector, Sequence: p.sequence + 1}
	switch {
	case lost != nil:
		report.Error, report.Reason = lost.Message, lost.Reason
	case !complete || len(wanted.Regions) == 0:
		return nil, p.known
	default:
		report.Full = p.full || gone(p.known, wanted)
		from := p.known
		if report.Full {
			from = api.CloudStatus{}
		}
		for i := range wanted.Regions {
			to := &wanted.Regions[i]
			known := &api.CloudRegion{}
			if r := from.Region(to.Name); r != nil {
				known = r
			}
			if r := difference(known, to); r != nil {
				report.Regions = append(report.Regions, *r)
			}
		}
		if len(report.Regions) == 0 {
			return nil, p.known
		}
	}
	known := p.known
	if report.Full {
		known = api.CloudStatus{}
	}
	return report, apply(known, *report, p.Now())
}

// gone reports whether a region that the server knows no longer exists.
func gone(known, wanted api.CloudStatus) bool {
	for i := range known.Regions {
		if wanted.Region(known.Regions[i].Name) == nil {
			return true
		}
	}
	return false
}
