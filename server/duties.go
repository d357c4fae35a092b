package main

import (
	"context"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/runner"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Requests that only the leader can execute are forwarded to it. Those that arrive here while
// another server leads were in progress when the leader changed.

// leaderOnly forwards calls to the parts of the current term.
type leaderOnly struct{ leadership *leadership }

func (d leaderOnly) signals() (*signal.Runner, error) {
	if current := d.leadership.current.Load(); current != nil {
		return current.signals, nil
	}
	return nil, store.ErrFenced
}

// Settle implements httpapi.Signals.
func (d leaderOnly) Settle(ctx context.Context, revision int64) (int64, error) {
	signals, err := d.signals()
	if err != nil {
		return 0, err
	}
	return signals.Settle(ctx, revision)
}

// Heartbeat implements httpapi.Signals.
func (d leaderOnly) Heartbeat(ctx context.Context, cluster string, report api.Heartbeat) (int64, error) {
	signals, err := d.signals()
	if err != nil {
		return 0, err
	}
	return signals.Heartbeat(ctx, cluster, report)
}

// Report implements httpapi.Signals.
func (d leaderOnly) Report(ctx context.Context, cluster string, amounts health.Amounts) (int64, error) {
	signals, err := d.signals()
	if err != nil {
		return 0, err
	}
	return signals.Report(ctx, cluster, amounts)
}

// ReportCloud implements httpapi.Signals.
func (d leaderOnly) ReportCloud(ctx context.Context, cloud string, report api.CloudReport) (revision int64, changed bool, err error) {
	signals, err := d.signals()
	if err != nil {
		return 0, false, err
	}
	return signals.ReportCloud(ctx, cloud, report)
}

// LiveOpenStack implements httpapi.Signals.
func (d leaderOnly) LiveOpenStack(ctx context.Context, cloud string, options api.LiveOptions) (*api.LiveOpenStack, error) {
	signals, err := d.signals()
	if err != nil {
		return nil, err
	}
	return signals.LiveOpenStack(ctx, cloud, options)
}

func (d leaderOnly) spot() (*runner.Runner, error) {
	if current := d.leadership.current.Load(); current != nil {
		return current.spot, nil
	}
	return nil, spot.ErrNotConnected
}

// Interrupt implements httpapi.Spot.
func (d leaderOnly) Interrupt(ctx context.Context, cluster, node string, deadline time.Time) error {
	r, err := d.spot()
	if err != nil {
		return err
	}
	return r.Interrupt(ctx, cluster, node, deadline)
}

// Withdraw implements httpapi.Spot.
func (d leaderOnly) Withdraw(ctx context.Context, cluster, node string) error {
	r, err := d.spot()
	if err != nil {
		return err
	}
	return r.Withdraw(ctx, cluster, node)
}

// Distributions implements httpapi.Spot.
func (d leaderOnly) Distributions(cluster string) ([]api.DistributedWorkload, error) {
	r, err := d.spot()
	if err != nil {
		return nil, err
	}
	return r.Distributions(cluster)
}

// cluster returns what the webhook needs to know about a cluster, on every server.
func (d leaderOnly) cluster(name string) (webhook.Cluster, bool) {
	// The leader's parts are set before the standby is removed. Reading the standby first finds at
	// least one of them.
	admitting := d.leadership.standby.Load()
	if current := d.leadership.current.Load(); current != nil {
		return current.spot.Cluster(name)
	}
	if admitting != nil {
		return admitting.spot.Cluster(name)
	}
	return nil, false
}
