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

// moment is a revision and when it was current.
type moment struct {
	at       time.Time
	revision int64
}

// externalSize is the last known size of an external cluster's database.
type externalSize struct{ size, inUse int64 }

// maintain compacts old history, so that the database contains the objects and only their most
// recent changes. The leader does this. If the quota is exceeded, which may prevent elections,
// every server does.
func (s *Store) maintain() {
	compact := time.NewTicker(s.options.CompactInterval)
	defer compact.Stop()
	look := time.NewTicker(s.options.WatchdogInterval)
	defer look.Stop()
	history := []moment{{s.options.Now(), s.revision.Load()}}
	var compacted, pressed, tried int64
	var reclaim reclaim
	for {
		target := int64(0)
		deletions := s.deletionsWhileLow()
		select {
		case <-s.ctx.Done():
			return
		case <-compact.C:
			if history, target = s.age(history); s.term.Load().isOver() {
				target = 0
			}
		case <-look.C:
			now := s.revision.Load()
			switch pressure := s.underPressure(); {
			case s.noSpace.Load(), s.overQuota.Load(), s.lowSpace():
				// Little or nothing can be written until there is space: drop all history, because
				// what was just deleted is history too.
				target = now
			case pressure && now-pressed > keepUnderPressure && !s.term.Load().isOver():
				target, pressed = now-keepUnderPressure, now
			}
		}
		if target > compacted {
			if err := s.Compact(s.ctx, target); err != nil && s.ctx.Err() == nil {
				s.options.Logger.Warn("the history of the store could not be compacted", "error", err)
				continue
			}
			compacted = target
		}
		// Defragmentation blocks everything for a while, so it is retried only after more history
		// has been dropped, which requires deletions.
		if s.noSpace.Load() && compacted != tried {
			tried = compacted
			if err := s.makeRoom(s.ctx); err != nil && s.ctx.Err() == nil {
				s.options.Logger.Warn("the quota of the store is used up", "error", err)
			}
		}
		if s.lowSpace() {
			if err := reclaim.step(s, compacted, deletions); err != nil {
				s.options.Logger.Warn("the database could not be compacted", "error", err)
			}
		}
	}
}

// age returns the revision before which history can be dropped: older than KeepHistory, or more
// than KeepRevisions ago.
func (s *Store) age(history []moment) ([]moment, int64) {
	now, revision := s.options.Now(), s.revision.Load()
	target := revision - s.options.KeepRevisions
	for len(history) > 0 && now.Sub(history[0].at) >= s.options.KeepHistory {
		target = max(target, history[0].revision)
		history = history[1:]
	}
	return append(history, moment{now, revision}), target
}

// underPressure checks the quota usage.
func (s *Store) underPressure() bool {
	if s.member == nil {
		s.askSize()
		return s.noSpace.Load()
	}
	if s.overQuota.Load() {
		// Compacted pages become free with the next commit of the database, and while writes are
		// rejected nothing else triggers one.
		s.member.Server.Backend().ForceCommit()
	}
	_, inUse := s.size()
	s.overQuota.Store(inUse > s.options.QuotaBytes/100*quotaStopPercent)
	return s.noSpace.Load() || inUse > s.options.QuotaBytes/100*quotaCompactPercent
}

func (s *Store) askSize() {
	ctx, cancel := context.WithTimeout(s.ctx, s.options.RequestTimeout)
	defer cancel()
	for _, endpoint := range s.options.Endpoints {
		if status, err := s.client.Status(ctx, endpoint); err == nil {
			s.external.Store(&externalSize{status.DbSize, status.DbSizeInUse})
			return
		}
	}
}

// Compact drops the history before a revision. The objects themselves stay. A revision that is
// already compacted or in the future has no effect.
func (s *Store) Compact(ctx context.Context, revision int64) error {
	ctx, cancel := context.WithTimeout(ctx, max(s.options.RequestTimeout, time.Minute))
	defer cancel()
	_, err := s.client.Compact(ctx, revision, clientv3.WithCompactPhysical())
	switch {
	case err == nil:
		s.metrics.compactions.Inc()
		return nil
	case errors.Is(err, rpctypes.ErrCompacted), errors.Is(err, rpctypes.ErrFutureRev):
		return nil
	}
	return fmt.Errorf("compact the store at revision %d: %w", revision, classify(err, false))
}

// shrinkBytes is the minimum size reduction that justifies defragmentation.
const shrinkBytes = 4 * mebibyte

// shrink returns space freed by compaction to the disk, if there is space for the required copy:
// including that of the reserve, but only if something was deleted. tried is false if too little is
// free so far: freed pages count as used until the commit after the next.
func (s *Store) shrink() (tried bool, err error) {
	s.member.Server.Backend().ForceCommit()
	size, inUse := s.size()
	if size-inUse < shrinkBytes {
		return false, nil
	}
	if s.disk.look(); s.disk.free() < inUse+deleteBytes && s.disk.owesRoom() {
		s.disk.releaseReserve()
	}
	if free := s.disk.free(); free < inUse+deleteBytes {
		return true, fmt.Errorf("%w: %d MiB are free, and a copy of the %d MiB in use is needed", ErrFull, free/mebibyte, inUse/mebibyte)
	}
	if err := s.member.Server.Defragment(); err != nil {
		return true, fmt.Errorf("defragment: %w", err)
	}
	s.disk.look()
	after, _ := s.size()
	s.options.Logger.Info("the database of the store was compacted", "size_bytes", after, "before_bytes", size)
	return true, nil
}

// reclaim returns the space of deletions to a full disk before writes are accepted again, so that
// users who delete enough can write again and are not rejected shortly afterwards because the space
// was still in use.
type reclaim struct {
	shrunk    int64 // revision at which the database was last shrunk
	deletions int64 // count at the last step
	idle      int   // steps since the last deletion without anything to reclaim
}

// idleSteps is how often there must be nothing to reclaim before reclaiming ends: freed pages count
// as used until the commit after the next.
const idleSteps = 3

// step shrinks the database if history has been compacted since the last time.
func (r *reclaim) step(s *Store, compacted, deletions int64) error {
	if deletions != r.deletions {
		r.deletions, r.idle = deletions, 0
	}
	tried, err := false, error(nil)
	if compacted != r.shrunk {
		tried, err = s.shrink()
	}
	switch {
	case tried:
		r.shrunk, r.idle = compacted, idleSteps
	default:
		r.idle++
	}
	if r.idle >= idleSteps {
		s.disk.reclaimed.Store(deletions)
	}
	return err
}

// deletionsWhileLow counts deletions while the disk was almost full.
func (s *Store) deletionsWhileLow() int64 {
	if s.disk == nil {
		return 0
	}
	return s.disk.deletions.Load()
}

// makeRoom returns pages freed by compaction to the quota and clears the alarm. Only the embedded
// member may be blocked for that long.
func (s *Store) makeRoom(ctx context.Context) error {
	if s.member == nil {
		return fmt.Errorf("%w: compact and defragment the external etcd, then disarm its alarm", ErrFull)
	}
	// Through the server: the in-process client's Defragment panics in etcd 3.7.3.
	if err := s.member.Server.Defragment(); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	size, _ := s.size()
	if size > s.options.QuotaBytes/100*(quotaStopPercent+10) {
		return fmt.Errorf("%w: the objects themselves fill the quota of %d MiB; raise it", ErrFull, s.options.QuotaBytes/mebibyte)
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.RequestTimeout)
	defer cancel()
	if _, err := s.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("disarm the quota alarm: %w", err)
	}
	s.noSpace.Store(false)
	s.options.Logger.Info("the store has room again", "size_bytes", size, "quota_bytes", s.options.QuotaBytes)
	return nil
}
