package status

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// Writer stores the status of one object.
type Writer interface {
	// WriteOne stores it and returns the revision. A *StaleError says that the object was changed
	// or deleted in the meantime.
	WriteOne(ctx context.Context, write Write) (revision int64, err error)
}

// Due is what is to be stored of an object.
type Due struct {
	Write Write
	// Differs says whether it differs from what is stored, or whether that is unknown, and StoredAt
	// is the revision of that.
	Differs  bool
	StoredAt int64
	// Changed is closed at the next change of the user-written part.
	Changed <-chan struct{}
}

// patience is how long to wait for the change that made a write fail.
const patience = time.Second

// Store stores what look returns for an object, and returns the revision that shows it; written is
// called after it was stored, and doubted if a write failed: it may have been stored all the same,
// or may still be, so that another one must follow even if the status has become what it was before.
// Only one write per object is in progress at a time, which turn, a
// channel with a capacity of one, ensures: an older status never overtakes a newer one.
func Store(ctx context.Context, w Writer, turn chan struct{}, look func() (Due, error), written func(revision int64), doubted func()) (int64, error) {
	select {
	case turn <- struct{}{}:
	case <-ctx.Done():
		return 0, ctx.Err()
	}
	defer func() { <-turn }()
	for {
		due, err := look()
		if err != nil || !due.Differs {
			return due.StoredAt, err
		}
		revision, err := w.WriteOne(ctx, due.Write)
		if err == nil {
			written(revision)
			return revision, nil
		}
		stale, ok := errors.AsType[*StaleError](err)
		if !ok {
			doubted()
			return 0, err
		}
		if err := awaitChange(ctx, due.Changed, stale); err != nil {
			return 0, err
		}
	}
}

// awaitChange waits for the change that made a write fail, for a limited time: it may be older than
// the reason for the write.
func awaitChange(ctx context.Context, changed <-chan struct{}, stale *StaleError) error {
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case <-changed:
		return nil
	case <-timer.C:
		return fmt.Errorf("the object keeps changing: %w", stale)
	case <-ctx.Done():
		return ctx.Err()
	}
}
