package health

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/lastseen"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
)

// Heartbeat accepts the report of a cluster's agent. If it contains changes, it returns once they
// are durable, with the revision that shows them. A report without changes is not written and has
// revision 0; its time is kept in memory, and written with the next change.
func (m *Monitor) Heartbeat(ctx context.Context, name string, hb api.Heartbeat) (int64, error) {
	c, err := m.takeHeartbeat(name, hb)
	if err != nil || c == nil {
		return 0, err
	}
	return m.flush(ctx, c)
}

// takeHeartbeat applies a report. It returns the cluster, or nil if nothing must be stored.
func (m *Monitor) takeHeartbeat(name string, hb api.Heartbeat) (*cluster, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	c := m.clusters[name]
	if c == nil {
		return nil, fmt.Errorf("cluster %q: %w", name, ErrNotFound)
	}
	m.figures.heartbeats.Inc()
	now := m.Now()
	at := now.UTC()
	if c.wanted.LastHeartbeatAt == nil {
		c.wanted.LastHeartbeatAt = &at
	}
	beat := lastseen.Beat{UID: c.object.Metadata.UID, At: at}
	c.wanted.ObservedGeneration = c.object.Metadata.Generation
	c.takeSize(hb.Capacity, hb.Allocatable, at)
	if hb.Allocated != nil {
		beat.ReportedAt = at
		allocated := c.wanted.Allocated.Succeed(hb.Allocated)
		// Unchanged amounts are news if they contain a decision that the last report did not.
		if c.wanted.CapacityReportedAt == nil || !maps.Equal(c.wanted.Allocated, allocated) || m.Reserved(name) {
			c.wanted.Allocated, c.wanted.CapacityReportedAt = allocated, &at
		}
	}
	m.Beats.Note(name, beat)
	if c.check.mode == unwatched || c.check.mode == awaited {
		c.watch(checkOf(c.object, &c.wanted), now)
	}
	if c.check.mode == heartbeats {
		before := c.health.state
		c.become(c.health.after(success, c.check.thresholds), reasonHeartbeat, "heartbeats arrive", now)
		if c.health.state != before {
			m.Logger.Info("cluster", "name", name, "state", c.health.state, "reason", reasonHeartbeat)
		}
		queued := !c.deadline.IsZero() && c.index >= 0
		c.deadline = now.Add(c.check.grace())
		// If a deadline moves later, the cluster keeps its place in the queue and is requeued when
		// the old deadline comes up.
		if !queued {
			m.schedule(c)
		}
	}
	if !c.dirty() {
		return nil, nil //nolint:nilnil // both mean that there is nothing to do
	}
	return c, nil
}

// takeSize applies what a cluster has, as reported completely by its agent or the observer.
// Resources that are missing are gone; amounts that are nil were not reported.
func (c *cluster) takeSize(capacity, allocatable api.Quantities, at time.Time) {
	s := &c.wanted
	var known, reported []api.Quantities
	for _, of := range []struct {
		known  *api.Quantities
		report api.Quantities
	}{{&s.Capacity, capacity}, {&s.Allocatable, allocatable}} {
		if of.report != nil {
			known, reported = append(known, *of.known), append(reported, of.report)
			*of.known = of.known.Succeed(of.report)
		}
	}
	s.GoneResources = api.Missing(s.GoneResources, known, reported)
	c.tellGone(at)
}

// tellGone updates the condition about what is gone.
func (c *cluster) tellGone(at time.Time) {
	s := &c.wanted
	reason, message := "", ""
	switch {
	case s.Nodes != nil && s.Nodes.Total == 0:
		reason, message = api.ReasonNoNodes, "the cluster has no nodes"
	case len(s.GoneResources) > 0:
		reason, message = api.ReasonNotReported, api.GoneMessage(s.GoneResources)
	}
	s.Conditions = api.WithResourcesGone(s.Conditions, reason, message, &at)
}

// dirty reports whether the wanted status differs from the stored one, or may.
func (c *cluster) dirty() bool { return c.doubtful || !reflect.DeepEqual(c.wanted, c.written) }

// store writes the status of a cluster on behalf of the monitor, and schedules a retry if that
// fails.
func (m *Monitor) store(ctx context.Context, c *cluster) {
	_, err := m.flush(ctx, c)
	if err == nil || errors.Is(err, ErrNotFound) || ctx.Err() != nil {
		return
	}
	m.Logger.Warn("the status of a cluster could not be stored; retrying", "cluster", c.name, "error", err)
	m.mu.Lock()
	defer m.mu.Unlock()
	c.flushAt = c.retry.Failed(m.Now())
	m.schedule(c)
}

// flush stores the wanted status and returns the revision that shows it.
func (m *Monitor) flush(ctx context.Context, c *cluster) (int64, error) {
	var (
		wanted   api.ClusterStatus
		latest   int64
		answered bool
	)
	at, err := status.Store(ctx, m.Writer, c.writing, func() (status.Due, error) {
		m.mu.Lock()
		defer m.mu.Unlock()
		if c.gone {
			return status.Due{}, fmt.Errorf("cluster %q: %w", c.name, ErrNotFound)
		}
		differs := c.dirty()
		object := *c.object
		object.Status = c.wanted
		if differs {
			m.Beats.Complete(&object)
			c.wanted = object.Status
		}
		wanted, latest, answered = c.wanted, c.latest, c.answered()
		return status.Due{
			Write: status.Write{Object: &object, SpecRevision: c.revision}, Differs: differs, StoredAt: c.storedAt, Changed: c.changed,
		}, nil
	}, func(revision int64) {
		m.mu.Lock()
		defer m.mu.Unlock()
		c.written, c.storedAt, c.doubtful = wanted, revision, false
		c.retry.Reset()
	}, func() {
		m.mu.Lock()
		defer m.mu.Unlock()
		c.doubtful = true
	})
	if err == nil && answered {
		m.Tracker.Close(api.Key{Kind: api.KindCluster, Name: c.name}, latest, at)
	}
	return at, err
}
