package store

import (
	"fmt"
	"sync/atomic"
)

// room is how much the store can still hold: the disk limits it, and the quota of the database.
type room struct {
	options  *Options
	embedded *embedded // nil with an external cluster

	noSpace   atomic.Bool // the quota alarm is raised
	overQuota atomic.Bool // live data is close to the quota
	external  atomic.Pointer[dbSize]
	history   atomic.Int64 // bytes that the history takes, which the quota does not limit
}

// dbSize is the size of the database file, and how much of it contains data.
type dbSize struct{ file, inUse int64 }

// size returns the size of the database; of an external cluster, as it was last known.
func (r *room) size() dbSize {
	if r.embedded != nil {
		backend := r.embedded.member.Server.Backend()
		return dbSize{backend.Size(), backend.SizeInUse()}
	}
	if last := r.external.Load(); last != nil {
		return *last
	}
	return dbSize{}
}

// inUse returns how much of the database counts against the quota.
func (r *room) inUse() int64 { return max(r.size().inUse-r.history.Load(), 0) }

// lowSpace reports whether the disk is almost full.
func (r *room) lowSpace() bool { return r.embedded != nil && r.embedded.disk.low.Load() }

// full returns an error while writes are rejected for want of room.
func (r *room) full() error {
	switch {
	case r.lowSpace():
		return fmt.Errorf("%w: too little of the disk is free in %s", ErrFull, r.options.DataDir)
	case r.noSpace.Load(), r.overQuota.Load():
		return fmt.Errorf("%w: its quota is used up", ErrFull)
	}
	return nil
}

// quotaLeft returns an error while users may only delete.
func (r *room) quotaLeft() error {
	if r.overQuota.Load() {
		return fmt.Errorf("%w: the objects use more than %d %% of its quota of %d MiB; delete some", ErrFull, quotaStopPercent, r.options.QuotaBytes/mebibyte)
	}
	return nil
}

// accept accepts a write of the given size, or a deletion, if the disk has space for it. Without an
// error, answered must be called with the same number when the write has ended.
func (r *room) accept(bytes int64, grows bool) error {
	if r.embedded == nil || r.embedded.disk.accept(bytes, grows) {
		return nil
	}
	return fmt.Errorf("%w: less than %d MiB are free in %s", ErrFull, r.options.MinFreeBytes/mebibyte, r.options.DataDir)
}

// answered records that an accepted write has ended.
func (r *room) answered(bytes int64) {
	if r.embedded != nil {
		r.embedded.disk.answer(bytes)
	}
}

// deletionsWhileLow counts deletions while the disk was almost full.
func (r *room) deletionsWhileLow() int64 {
	if r.embedded == nil {
		return 0
	}
	return r.embedded.disk.deletions.Load()
}
