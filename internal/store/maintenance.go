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
	// quotaCompactPercent is the use of the quota at which history is dropped at
	// once.
	quotaCompactPercent = 50
	// quotaStopPercent is the use of the quota at which users may only delete.
	quotaStopPercent = 80
	// keepUnderPressure is how many revisions remain when space is short.
	keepUnderPressure = 100
)

// moment is a revision and when it was the present one.
type moment struct {
	at       time.Time
	revision int64
}

// externalSize is the size of an external cluster's database when last asked.
type externalSize struct{ size, inUse int64 }

// maintain drops old history, so that the database holds the objects and the
// last minutes of their changes and not everything that ever happened. The server that
// leads does; where there is no room, which may keep all of them from being elected, each
// does.
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
				// Little or nothing can be written before there is room: all history
				// goes, for what was just deleted is history.
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
		// Defragmenting stops everything for a while, so it is tried again only
		// after more history has gone, which takes somebody who deletes.
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

// age returns the revision before which everything is old enough to go: older
// than KeepHistory, or more than KeepRevisions ago.
func (s *Store) age(history []moment) ([]moment, int64) {
	now, revision := s.options.Now(), s.revision.Load()
	target := revision - s.options.KeepRevisions
	for len(history) > 0 && now.Sub(history[0].at) >= s.options.KeepHistory {
		target = max(target, history[0].revision)
		history = history[1:]
	}
	return append(history, moment{now, revision}), target
}

// underPressure looks at the use of the quota.
func (s *Store) underPressure() bool {
	if s.member == nil {
		s.askSize()
		return s.noSpace.Load()
	}
	if s.overQuota.Load() {
		// What was compacted counts as free from the next commit of the database on,
		// and while writes are refused nothing else may lead to one.
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

// Compact drops the history before a revision. The objects themselves stay. A
// revision that is compacted already or lies in the future changes nothing.
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

// shrinkBytes is how much a database has to become smaller for the trouble.
const shrinkBytes = 4 * mebibyte

// shrink gives the disk back what compaction freed inside of the database, where
// there is room for the copy that this takes: that of the reserve too, but only once
// something was deleted. It has not been tried where too little
// is free as yet: pages that were freed count as used until the commit after the
// next.
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

// reclaim gives the room of what was deleted on a full disk back to it, before
// writes are accepted again: who deletes enough can then write again, and is not
// refused a moment later because the room was still taken.
type reclaim struct {
	shrunk    int64 // the revision at which the database was last made smaller
	deletions int64 // how many there were at the last step
	idle      int   // steps since the last deletion that found nothing to give back
}

// idleSteps is how often there has to be nothing to give back until there is none:
// pages that were freed count as used until the commit after the next.
const idleSteps = 3

// step makes the database smaller where history has gone since the last time.
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

// deletionsWhileLow counts what was deleted while the disk was almost full.
func (s *Store) deletionsWhileLow() int64 {
	if s.disk == nil {
		return 0
	}
	return s.disk.deletions.Load()
}

// makeRoom gives the pages that compaction freed back to the quota and clears
// the alarm. Only the embedded member is ours to stop for that long.
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
