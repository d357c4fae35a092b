package store

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
)

// startBytes is what an empty member needs: etcd preallocates two log segments
// of 64 MiB each beside its database.
const startBytes = 145 * mebibyte

// writeOverhead is what a write takes beside its keys and values, at most.
const writeOverhead = 512

// freeSpace is the space an unprivileged process can still use in the file
// system of dir.
func freeSpace(dir string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:unconvert // their types differ by system
}

// checkStartSpace refuses to start a member that would die of a full disk while
// it starts. What its log has already preallocated is not needed again.
func checkStartSpace(dir string) error {
	free, err := freeSpace(dir)
	if err != nil {
		return err
	}
	need := int64(startBytes)
	segments, err := filepath.Glob(filepath.Join(memberDir(dir), "member", "wal", "*"))
	if err != nil {
		return fmt.Errorf("look at the log of the store: %w", err)
	}
	for _, segment := range segments {
		if info, err := os.Stat(segment); err == nil {
			need -= info.Size()
		}
	}
	if need = max(need, 2*mebibyte); free < need {
		return fmt.Errorf("%w: %d MiB are free in %s, the store needs %d MiB to start", ErrFull, free/mebibyte, dir, (need+mebibyte-1)/mebibyte)
	}
	return nil
}

// diskWatch knows whether the file system has room for writes. etcd ends the
// process when it hits the end of the disk, so writes stop well before: first
// those that grow, and only when the reserve is used up as well, deletions.
type diskWatch struct {
	dir          string
	stop, resume int64
	interval     time.Duration
	logger       *slog.Logger
	reserve      *reserve
	low          atomic.Bool
	measured     atomic.Pointer[space]
	wasLow       atomic.Bool // and writes are accepted again

	// Bytes of writes that were accepted, of those that have been answered, and of
	// those that the free space shows: etcd keeps what is written in memory until the
	// next commit of its database.
	accepted, answered, shown atomic.Int64

	// settling guards settle. It is held while etcd commits, and taken before the lock
	// of the reserve.
	settling sync.Mutex
	// settle makes etcd write to its database what it keeps in memory; nil while
	// there is no member.
	settle func()

	// deletions counts those accepted while writes were refused, reclaimed those of
	// them whose room the database has given back, as far as it could.
	deletions, reclaimed atomic.Int64
}

// space is the free space, and the reserve that was there when it was measured.
type space struct{ free, reserve int64 }

// enough reports whether so much is left of a space when what is pending has taken
// its part, the reserve included, and apart from it what a log that goes on growing
// needs. A limit below zero is none.
func (s space) enough(pending, bytes int64) bool {
	free := s.free - pending
	return bytes < 0 || free+s.reserve >= bytes && free >= min(growBytes, bytes)
}

// free is the free space as last measured.
func (d *diskWatch) free() int64 { return d.measured.Load().free }

func newDiskWatch(o Options) *diskWatch {
	d := &diskWatch{
		dir: o.DataDir, stop: o.MinFreeBytes, resume: o.ResumeFreeBytes, interval: o.WatchdogInterval, logger: o.Logger,
		reserve: openReserve(o.DataDir, o.MinFreeBytes),
	}
	d.measured.Store(&space{free: math.MaxInt64 / 2}) // where it cannot be measured, nothing is refused
	d.look()
	// The member needs room for a segment of its log to start.
	if d.low.Load() && d.free() < reserveBytes {
		d.releaseReserve()
	}
	return d
}

func (d *diskWatch) run(ctx context.Context) {
	ticker := time.NewTicker(d.interval)
	defer ticker.Stop()
	for {
		d.fillReserve()
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			d.tick()
		}
	}
}

// tick looks at the disk at regular intervals. Far from its end it is enough that
// etcd writes what it keeps in memory several times a second.
func (d *diskWatch) tick() {
	if d.near() {
		d.lookThrough()
		return
	}
	d.settling.Lock()
	defer d.settling.Unlock()
	d.measuring(func() { d.shown.Store(d.answered.Load()) })
}

// accept takes a write of so many bytes, or a deletion. Where it returns true,
// answer has to be called with the same number once the write has ended.
func (d *diskWatch) accept(bytes int64, grows bool) bool {
	d.accepted.Add(bytes)
	if d.full(grows) {
		d.answer(bytes)
		return false
	}
	return true
}

// answer says that a write that was accepted has ended.
func (d *diskWatch) answer(bytes int64) { d.answered.Add(bytes) }

// full reports whether a write that grows, or a deletion, has to be refused.
func (d *diskWatch) full(grows bool) bool {
	if d.near() {
		d.look()
	}
	if !d.low.Load() && !d.measured.Load().enough(d.pending(), d.stop) {
		d.lookThrough()
	}
	if grows || !d.low.Load() {
		return d.low.Load()
	}
	d.deletions.Add(1)
	if d.look(); d.free() < reserveBytes {
		d.releaseReserve()
	}
	return d.free() < min(deleteBytes, d.stop)
}

// near reports whether the end of the disk may have come within reach since the last
// look. The log takes a whole segment at once.
func (d *diskWatch) near() bool {
	return d.free()-d.pending() < d.stop+growBytes
}

// pending is what the writes that the free space does not show yet may take: once
// in the database and once in the log.
func (d *diskWatch) pending() int64 { return 2 * (d.accepted.Load() - d.shown.Load()) }

// lookThrough looks at the disk after all that was answered has been written to it.
// What is still under way counts as written.
func (d *diskWatch) lookThrough() {
	d.settling.Lock()
	defer d.settling.Unlock()
	d.measuring(func() {
		if answered := d.answered.Load(); d.settle != nil && answered > d.shown.Load() {
			d.settle()
			d.shown.Store(answered)
		}
	})
	if !d.measured.Load().enough(d.pending(), d.stop) {
		d.refuse()
	}
}

// settleWith says how etcd is made to write what it keeps in memory; nil before it
// ends.
func (d *diskWatch) settleWith(settle func()) {
	d.settling.Lock()
	defer d.settling.Unlock()
	d.settle = settle
}

// settled reports whether nobody has to wait for the room of what was deleted:
// either it has been given back, or there is plenty without it.
func (d *diskWatch) settled(free int64) bool {
	plenty := max(2*d.resume, d.resume+d.reserve.size+logSegment) // also when the reserve is made and the log grows
	return free >= plenty || !d.owesRoom()
}

// owesRoom reports whether something was deleted while writes were refused of which the
// disk has not got the room back.
func (d *diskWatch) owesRoom() bool { return d.reclaimed.Load() != d.deletions.Load() }

// look measures the free space.
func (d *diskWatch) look() { d.measuring(func() {}) }

// measuring measures the free space after before has run, unless the reserve is just
// being made or removed: what was measured before it is right until then.
func (d *diskWatch) measuring(before func()) {
	if !d.reserve.mu.TryRLock() {
		return
	}
	defer d.reserve.mu.RUnlock()
	before()
	d.measure()
}

// measure is called with the reserve's lock held.
func (d *diskWatch) measure() {
	free, err := freeSpace(d.dir)
	if err != nil {
		d.logger.Warn("the free space of the data directory could not be read", "error", err)
		return
	}
	now := space{free, d.reserve.held.Load()}
	d.measured.Store(&now)
	switch {
	case !now.enough(0, d.stop):
		d.refuse()
	case now.enough(d.pending(), d.resume) && d.settled(free) && d.low.CompareAndSwap(true, false):
		d.wasLow.Store(true)
		d.logger.Info("the disk of the store has room again: writes are accepted", "directory", d.dir, "free_bytes", free)
	}
}

// refuse stops writes that grow.
func (d *diskWatch) refuse() {
	if d.low.CompareAndSwap(false, true) {
		d.logger.Error("the disk of the store is almost full: writes are refused until there is room; deletions are accepted",
			"directory", d.dir, "free_bytes", d.free(), "resume_at_bytes", d.resume)
	}
}

// fillReserve sets the reserve aside where nobody misses it.
func (d *diskWatch) fillReserve() {
	r := d.reserve
	keep := min(growBytes, d.stop) + deleteBytes
	if d.wasLow.Load() {
		keep += logSegment // whose room may be that of the next segment: writes would be refused again
	}
	if d.low.Load() || r.held.Load() > 0 || d.free()-d.pending()-r.size < keep {
		return
	}
	// Until the free space can be measured again, the reserve counts as made.
	err := r.fill(func() {
		d.measure()
		d.measured.Store(&space{d.free() - r.size, r.size})
	})
	if err != nil {
		d.logger.Warn("space for deletions on a full disk could not be reserved", "error", err)
	}
	d.look()
}

func (d *diskWatch) releaseReserve() {
	released, err := d.reserve.release()
	if err != nil {
		d.logger.Error("the space reserved for deletions cannot be used", "error", err)
		return
	}
	if released {
		d.logger.Warn("the space reserved for deletions is now in use", "directory", d.dir)
		d.look()
	}
}
