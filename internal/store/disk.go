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

// startBytes is the space that an empty member needs: etcd preallocates two log segments of 64 MiB
// each, besides its database.
const startBytes = 145 * mebibyte

// writeOverhead is the maximum overhead of a write besides its keys and values.
const writeOverhead = 512

// Bounds of the default quota, which is half of the disk: a copy of the database must fit, too.
// etcd recommends at most mostQuota. On a disk too small for leastQuota, the free space limits
// writes first.
const (
	leastQuota = 4096 * mebibyte
	mostQuota  = 8192 * mebibyte
)

// defaultQuota returns the quota of a store in dir if none is configured.
func defaultQuota(dir string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("size of the file system of %s: %w", dir, err)
	}
	return quotaOf(int64(stat.Blocks) * int64(stat.Bsize)), nil //nolint:unconvert // their types differ by system
}

// quotaOf returns the default quota for a file system of the given size.
func quotaOf(disk int64) int64 { return min(max(disk/2, leastQuota), mostQuota) }

// freeSpace returns the space available to unprivileged processes in the file system of dir.
func freeSpace(dir string) (int64, error) {
	var stat syscall.Statfs_t
	if err := syscall.Statfs(dir, &stat); err != nil {
		return 0, fmt.Errorf("free space of %s: %w", dir, err)
	}
	return int64(stat.Bavail) * int64(stat.Bsize), nil //nolint:unconvert // the types differ between systems
}

// checkStartSpace returns an error if the disk would fill up while a member starts. Space that its
// log has already preallocated is not needed again.
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

// diskWatch tracks whether the file system has space for writes. etcd terminates the process when
// the disk is full, so writes stop well before: first those that grow and, only when the reserve is
// used up too, deletions.
type diskWatch struct {
	dir          string
	stop, resume int64
	interval     time.Duration
	logger       *slog.Logger
	reserve      *reserve
	low          atomic.Bool
	measured     atomic.Pointer[space]
	wasLow       atomic.Bool // and writes are accepted again

	// Bytes of writes that were accepted, of those that were answered, and of those reflected in
	// the free space: etcd keeps writes in memory until the next commit of its database.
	accepted, answered, shown atomic.Int64

	// settling guards settle. It is held while etcd commits, and acquired before the lock of the
	// reserve.
	settling sync.Mutex
	// settle makes etcd commit its database; nil while there is no member.
	settle func()

	// deletions counts those accepted while writes were rejected. reclaimed counts those whose
	// space has been returned to the disk as far as possible.
	deletions, reclaimed atomic.Int64
}

// space is the free space, and the size of the reserve when it was measured.
type space struct{ free, reserve int64 }

// enough reports whether the given number of bytes remains after pending writes, including the
// reserve, plus what a growing log needs. A negative limit means no limit.
func (s space) enough(pending, bytes int64) bool {
	free := s.free - pending
	return bytes < 0 || free+s.reserve >= bytes && free >= min(growBytes, bytes)
}

// free returns the free space as last measured.
func (d *diskWatch) free() int64 { return d.measured.Load().free }

func newDiskWatch(o Options) *diskWatch {
	d := &diskWatch{
		dir: o.DataDir, stop: o.MinFreeBytes, resume: o.ResumeFreeBytes, interval: o.WatchdogInterval, logger: o.Logger,
		reserve: openReserve(o.DataDir, o.MinFreeBytes),
	}
	d.measured.Store(&space{free: math.MaxInt64 / 2}) // if it cannot be measured, nothing is rejected
	d.look()
	// The member needs space for a log segment to start.
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

// tick checks the disk at regular intervals. Far from its end, it is enough that etcd commits
// several times a second.
func (d *diskWatch) tick() {
	if d.near() {
		d.lookThrough()
		return
	}
	d.settling.Lock()
	defer d.settling.Unlock()
	d.measuring(func() { d.shown.Store(d.answered.Load()) })
}

// accept accepts a write of the given size, or a deletion. If it returns true, answer must be
// called with the same number when the write has ended.
func (d *diskWatch) accept(bytes int64, grows bool) bool {
	d.accepted.Add(bytes)
	if d.full(grows) {
		d.answer(bytes)
		return false
	}
	return true
}

// answer records that an accepted write has ended.
func (d *diskWatch) answer(bytes int64) { d.answered.Add(bytes) }

// full reports whether a write that grows, or a deletion, must be rejected.
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

// near reports whether the disk may have become full since the last check. The log allocates whole
// segments.
func (d *diskWatch) near() bool {
	return d.free()-d.pending() < d.stop+growBytes
}

// pending returns the space that writes not yet reflected in the free space may need: once in the
// database and once in the log.
func (d *diskWatch) pending() int64 { return 2 * (d.accepted.Load() - d.shown.Load()) }

// lookThrough measures the free space after everything that was answered has been committed. Writes
// in progress count as committed.
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

// settleWith sets the function that makes etcd commit its database; nil before etcd stops.
func (d *diskWatch) settleWith(settle func()) {
	d.settling.Lock()
	defer d.settling.Unlock()
	d.settle = settle
}

// settled reports whether nobody needs to wait for the space of deletions: either it has been
// returned, or there is plenty without it.
func (d *diskWatch) settled(free int64) bool {
	plenty := max(2*d.resume, d.resume+d.reserve.size+logSegment) // even after the reserve has been created and the log has grown
	return free >= plenty || !d.owesRoom()
}

// owesRoom reports whether space of deletions made while writes were rejected has not been returned
// to the disk yet.
func (d *diskWatch) owesRoom() bool { return d.reclaimed.Load() != d.deletions.Load() }

// look measures the free space.
func (d *diskWatch) look() { d.measuring(func() {}) }

// measuring measures the free space after calling before, unless the reserve is being created or
// removed: until then the previous measurement applies.
func (d *diskWatch) measuring(before func()) {
	if !d.reserve.mu.TryRLock() {
		return
	}
	defer d.reserve.mu.RUnlock()
	before()
	d.measure()
}

// measure must be called with the reserve's lock held.
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
		d.logger.Info("the disk of the store has free space again: writes are accepted", "directory", d.dir, "free_bytes", free)
	}
}

// refuse stops writes that grow.
func (d *diskWatch) refuse() {
	if d.low.CompareAndSwap(false, true) {
		d.logger.Error("the disk of the store is almost full: writes are rejected until there is free space; deletions are accepted",
			"directory", d.dir, "free_bytes", d.free(), "resume_at_bytes", d.resume)
	}
}

// fillReserve creates the reserve if there is plenty of space.
func (d *diskWatch) fillReserve() {
	r := d.reserve
	keep := min(growBytes, d.stop) + deleteBytes
	if d.wasLow.Load() {
		keep += logSegment // this may be the space of the next segment: otherwise writes would be rejected again
	}
	if d.low.Load() || r.held.Load() > 0 || d.free()-d.pending()-r.size < keep {
		return
	}
	// Until the free space can be measured again, the reserve counts as created.
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
