package store

import (
	"context"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// shrinkBytes is the minimum size reduction that justifies defragmentation.
const shrinkBytes = 4 * mebibyte

// defragmenter makes the database file smaller by the space that compaction has freed. Only the
// embedded member may be blocked for that long.
type defragmenter struct {
	etcd    *connection
	room    *room
	options *Options
}

// shrink returns space freed by compaction to the disk, if there is space for the required copy:
// including that of the reserve, but only if something was deleted. tried is false if too little is
// free so far: freed pages count as used until the commit after the next.
func (d *defragmenter) shrink() (tried bool, err error) {
	disk := d.room.embedded.disk
	d.room.embedded.commit()
	before := d.room.size()
	if before.file-before.inUse < shrinkBytes {
		return false, nil
	}
	if disk.look(); disk.free() < before.inUse+deleteBytes && disk.owesRoom() {
		disk.releaseReserve()
	}
	if free := disk.free(); free < before.inUse+deleteBytes {
		return true, fmt.Errorf("%w: %d MiB are free, and a copy of the %d MiB in use is needed", ErrFull, free/mebibyte, before.inUse/mebibyte)
	}
	if err := d.defragment(); err != nil {
		return true, err
	}
	disk.look()
	d.options.Logger.Info("the database of the store was compacted", "size_bytes", d.room.size().file, "before_bytes", before.file)
	return true, nil
}

// makeRoom returns pages freed by compaction to the quota and clears the alarm.
func (d *defragmenter) makeRoom(ctx context.Context) error {
	if d.room.embedded == nil {
		return fmt.Errorf("%w: compact and defragment the external etcd, then disarm its alarm", ErrFull)
	}
	if err := d.defragment(); err != nil {
		return err
	}
	size, quota := d.room.size().file-d.room.history.Load(), d.options.QuotaBytes
	if size > quota/100*(quotaStopPercent+10) {
		return fmt.Errorf("%w: the objects themselves fill the quota of %d MiB; raise it", ErrFull, quota/mebibyte)
	}
	ctx, cancel := context.WithTimeout(ctx, d.options.RequestTimeout)
	defer cancel()
	if _, err := d.etcd.client.AlarmDisarm(ctx, &clientv3.AlarmMember{}); err != nil {
		return fmt.Errorf("disarm the quota alarm: %w", err)
	}
	d.room.noSpace.Store(false)
	d.options.Logger.Info("the store has free space again", "size_bytes", size, "quota_bytes", quota)
	return nil
}

// defragment copies the database to a smaller file. It goes through the server: the in-process
// client's Defragment panics in etcd 3.7.3.
func (d *defragmenter) defragment() error {
	if err := d.etcd.server.Defragment(); err != nil {
		return fmt.Errorf("defragment: %w", err)
	}
	return nil
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
func (r *reclaim) step(d *defragmenter, compacted, deletions int64) error {
	if deletions != r.deletions {
		r.deletions, r.idle = deletions, 0
	}
	tried, err := false, error(nil)
	if compacted != r.shrunk {
		tried, err = d.shrink()
	}
	switch {
	case tried:
		r.shrunk, r.idle = compacted, idleSteps
	default:
		r.idle++
	}
	if r.idle >= idleSteps {
		d.room.embedded.disk.reclaimed.Store(deletions)
	}
	return err
}
