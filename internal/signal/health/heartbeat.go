package health

import (
	"context"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
)

// Heartbeat takes the report of a cluster's agent. It returns once the report is
// durable, with the revision that shows it.
func (m *Monitor) Heartbeat(ctx context.Context, name string, hb api.Heartbeat) (int64, error) {
	m.mu.Lock()
	c := m.clusters[name]
	if c == nil {
		m.mu.Unlock()
		return 0, fmt.Errorf("cluster %q: %w", name, ErrNotFound)
	}
	m.figures.heartbeats.Inc()
	now := m.Now()
	at := now.UTC()
	c.wanted.LastHeartbeatAt = &at
	c.wanted.ObservedGeneration = c.object.Metadata.Generation
	if hb.Capacity != nil {
		c.wanted.Capacity = hb.Capacity
	}
	if hb.Allocatable != nil {
		c.wanted.Allocatable = hb.Allocatable
	}
	if hb.Allocated != nil {
		c.wanted.Allocated = hb.Allocated
		c.wanted.CapacityReportedAt = &at
	}
	if c.check.mode == unwatched {
		c.watch(checkOf(c.object, true), now)
	}
	if c.check.mode == heartbeats {
		before := c.health.state
		c.become(c.health.after(success, c.check.thresholds), reasonHeartbeat, "heartbeats arrive", now)
		if c.health.state != before {
			m.Logger.Info("cluster", "name", name, "state", c.health.state, "reason", reasonHeartbeat)
		}
		queued := !c.deadline.IsZero() && c.index >= 0
		c.deadline = now.Add(c.check.grace())
		// A deadline that moves out leaves the cluster where it is in the queue;
		// it finds its new place when the old one comes up.
		if !queued {
			m.schedule(c)
		}
	}
	m.mu.Unlock()
	return m.flush(ctx, c)
}

// dirty reports whether the status should be another one than is stored.
func (c *cluster) dirty() bool { return !reflect.DeepEqual(c.wanted, c.written) }

// store writes the status of a cluster for the monitor itself; where that fails
// it is tried again.
func (m *Monitor) store(ctx context.Context, c *cluster) {
	_, err := m.flush(ctx, c)
	if err == nil || errors.Is(err, ErrNotFound) || ctx.Err() != nil {
		return
	}
	m.Logger.Warn("the status of a cluster is not stored; trying again", "cluster", c.name, "error", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	c.flushAt = m.Now().Add(retryWrite)
	m.schedule(c)
}

// flush stores what is wanted and returns the revision that shows it. One write
// per cluster is under way at a time, so that an older status never overtakes a
// newer one.
func (m *Monitor) flush(ctx context.Context, c *cluster) (int64, error) {
	select {
	case c.writing <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-c.writing }()
	for {
		m.mu.Lock()
		if c.gone {
			m.mu.Unlock()
			return 0, fmt.Errorf("cluster %q: %w", c.name, ErrNotFound)
		}
		key, wanted, revision, latest, changed := api.KeyOf(c.object), c.wanted, c.revision, c.latest, c.changed
		answered := c.answered()
		object := *c.object
		dirty, storedAt := c.dirty(), c.storedAt
		m.mu.Unlock()
		if dirty {
			object.Status = wanted
			at, err := m.Writer.WriteOne(ctx, status.Write{Object: &object, SpecRevision: revision})
			var stale *status.StaleError
			switch {
			case errors.As(err, &stale):
				// The change is on its way to us.
				if err := awaitChange(ctx, changed, err); err != nil {
					return 0, err
				}
				continue
			case err != nil:
				return 0, err
			}
			m.mu.Lock()
			c.written, c.storedAt, storedAt = wanted, at, at
			m.mu.Unlock()
		}
		if answered {
			m.Tracker.Close(key, latest, storedAt)
		}
		return storedAt, nil
	}
}

// awaitChange waits for the cluster to change, but not for ever: the change may
// be older than what made us write.
func awaitChange(ctx context.Context, changed <-chan struct{}, stale error) error {
	timer := time.NewTimer(retryWrite)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return fmt.Errorf("the cluster keeps changing: %w", stale)
	case <-ctx.Done():
		return ctx.Err()
	}
}
