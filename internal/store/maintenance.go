package store

import (
	"context"
	"errors"
	"fmt"
	"time"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

const (
	// quotaCompactPercent is the quota usage above which history is compacted at once.
	quotaCompactPercent = 50
	// quotaStopPercent is the quota usage above which users may only delete.
	quotaStopPercent = 80
	// keepUnderPressure is how many revisions are kept when space is short.
	keepUnderPressure = 100
)

// maintenance compacts old history, so that the database contains the objects and only their most
// recent changes. The leader does this. If the quota is exceeded, which may prevent elections,
// every server does.
type maintenance struct {
	etcd         *connection
	room         *room
	leadership   *leadership
	defragmenter *defragmenter
	options      *Options
	metrics      *storeMetrics
}

// progress is what maintenance has done so far, as revisions.
type progress struct {
	compacted int64 // before which there is no history
	pressed   int64 // at which history was last compacted because space was short
	tried     int64 // compacted when the database was last defragmented because of its quota
}

// run maintains the store until ctx is done.
func (m *maintenance) run(ctx context.Context) {
	compact := time.NewTicker(m.options.CompactInterval)
	defer compact.Stop()
	look := time.NewTicker(m.options.WatchdogInterval)
	defer look.Stop()
	past := history{{m.options.Now(), m.etcd.revision.Load()}}
	var done progress
	var reclaim reclaim
	for {
		target := int64(0)
		deletions := m.room.deletionsWhileLow()
		select {
		case <-ctx.Done():
			return
		case <-compact.C:
			if target = past.age(m.options, m.etcd.revision.Load()); m.leadership.term.Load().isOver() {
				target = 0
			}
		case <-look.C:
			target = m.neededSpace(ctx, &done)
		}
		if target > done.compacted {
			if err := m.Compact(ctx, target); err != nil && ctx.Err() == nil {
				m.options.Logger.Warn("the history of the store could not be compacted", "error", err)
				continue
			}
			done.compacted = target
		}
		// Defragmentation blocks everything for a while, so it is retried only after more history
		// has been dropped, which requires deletions.
		if m.room.noSpace.Load() && done.compacted != done.tried {
			done.tried = done.compacted
			if err := m.defragmenter.makeRoom(ctx); err != nil && ctx.Err() == nil {
				m.options.Logger.Warn("the quota of the store is used up", "error", err)
			}
		}
		if m.room.lowSpace() {
			if err := reclaim.step(m.defragmenter, done.compacted, deletions); err != nil {
				m.options.Logger.Warn("the database could not be compacted", "error", err)
			}
		}
	}
}

// neededSpace returns the revision before which history has to be dropped because space is short; 0
// if it is not.
func (m *maintenance) neededSpace(ctx context.Context, done *progress) int64 {
	now := m.etcd.revision.Load()
	switch pressure := m.underPressure(ctx); {
	case m.room.full() != nil:
		// Little or nothing can be written until there is space: drop all history, because what was
		// just deleted is history too.
		return now
	case pressure && now-done.pressed > keepUnderPressure && !m.leadership.term.Load().isOver():
		done.pressed = now
		return now - keepUnderPressure
	}
	return 0
}

// underPressure checks the quota usage.
func (m *maintenance) underPressure(ctx context.Context) bool {
	if m.room.embedded == nil {
		m.askSize(ctx)
		return m.room.noSpace.Load()
	}
	if m.room.overQuota.Load() {
		// Compacted pages become free with the next commit of the database, and while writes are
		// rejected nothing else triggers one.
		m.room.embedded.commit()
	}
	inUse, percent := m.room.inUse(), m.options.QuotaBytes/100
	m.room.overQuota.Store(inUse > percent*quotaStopPercent)
	return m.room.noSpace.Load() || inUse > percent*quotaCompactPercent
}

// askSize asks an external cluster for the size of its database.
func (m *maintenance) askSize(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, m.options.RequestTimeout)
	defer cancel()
	for _, endpoint := range m.options.Endpoints {
		if status, err := m.etcd.client.Status(ctx, endpoint); err == nil {
			m.room.external.Store(&dbSize{status.DbSize, status.DbSizeInUse})
			return
		}
	}
}

// Compact drops the history before a revision. The objects themselves stay. A revision that is
// already compacted or in the future has no effect.
func (m *maintenance) Compact(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, max(m.options.RequestTimeout, time.Minute))
	defer cancel()
	_, err := m.etcd.client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	switch {
	case err == nil:
		m.metrics.compactions.Inc()
		return nil
	case errors.Is(err, rpctypes.ErrCompacted), errors.Is(err, rpctypes.ErrFutureRev):
		return nil
	}
	return fmt.Errorf("compact the store at revision %d: %w", revision, classify(err, false))
}

// moment is a revision and when it was current.
type moment struct {
	at       time.Time
	revision int64
}

// history are the moments since the oldest one that must be kept.
type history []moment

// age returns the revision before which history can be dropped: older than KeepHistory, or more
// than KeepRevisions ago. revision is the current one.
func (h *history) age(o *Options, revision int64) int64 {
	now, target := o.Now(), revision-o.KeepRevisions
	past := *h
	for len(past) > 0 && now.Sub(past[0].at) >= o.KeepHistory {
		target = max(target, past[0].revision)
		past = past[1:]
	}
	*h = append(past, moment{now, revision})
	return target
}
