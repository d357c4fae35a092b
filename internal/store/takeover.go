package store

import (
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// takeUp is take for a store that has just been opened. A member of a cluster of embedded members
// waits while they elect a leader, as it has waited for them to start.
func (s *Store) takeUp(ctx context.Context) error {
	for failures := 1; ; failures++ {
		err := s.take(ctx)
		unanswered := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUncertain) // take can be repeated
		if !unanswered || s.etcd.server == nil || s.options.alone() {
			return err
		}
		s.options.Logger.Warn("the cluster does not respond while this server starts; retrying", "error", err)
		if !backoff.Wait(ctx, campaignAgain.After(failures)) {
			return err
		}
	}
}

// take checks that this program knows the store's format, and records the store's identity. A
// single embedded member begins its term with it.
func (s *Store) take(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.RequestTimeout)
	defer cancel()
	known, err := s.envelopes.readFormat(ctx, s.etcd)
	if err != nil {
		return err
	}
	if s.options.alone() {
		return s.takeEpoch(ctx, known)
	}
	for known.number != known.opened() {
		if known, err = s.envelopes.beginFormat(ctx, s.etcd, known); err != nil {
			return err
		}
	}
	return s.guard.takeIdentity(ctx)
}

// takeEpoch makes this process the owner of derived writes: all earlier owners are fenced from now
// on.
func (s *Store) takeEpoch(ctx context.Context, known format) error {
	begun := known.opened()
	puts := []clientv3.Op{enclose(epochKey, fmt.Appendf(nil, "pid %d, %s", os.Getpid(), s.options.Now().UTC().Format(time.RFC3339)))}
	if begun != known.number {
		puts = append(puts, s.envelopes.putFormat(begun)...)
	}
	if s.room.lowSpace() {
		return s.inheritEpoch(ctx)
	}
	history, err := s.begins(ctx)
	if err != nil {
		return fmt.Errorf("read who led before: %w", classify(err, false))
	}
	puts = append(puts, history...)
	resp, err := s.etcd.client.Txn(ctx).Then(puts...).Commit()
	if err = classify(err, true); errors.Is(err, ErrFull) {
		s.room.noSpace.Store(true)
		return s.inheritEpoch(ctx)
	}
	if err != nil {
		return fmt.Errorf("take over the store: %w", err)
	}
	s.term.Store(newTerm(fence{key: epochKey, revision: resp.Header.Revision}, resp.Header.Revision, 0, nil))
	if begun != known.number {
		s.envelopes.begin(begun, resp.Header.Revision)
	}
	s.etcd.sawRevision(resp.Header.Revision)
	return s.guard.takeIdentity(ctx)
}

// inheritEpoch continues the epoch of the previous process: a full store must open for reading. The
// directory lock excludes all other processes.
func (s *Store) inheritEpoch(ctx context.Context) error {
	epoch, err := s.etcd.client.Get(ctx, epochKey)
	if err != nil {
		return fmt.Errorf("read the epoch of the store: %w", classify(err, false))
	}
	if err := s.guard.inheritIdentity(ctx); err != nil {
		return err
	}
	if len(epoch.Kvs) == 0 {
		return fmt.Errorf("%w: there is not enough space to set it up", ErrFull)
	}
	s.term.Store(newTerm(fence{key: epochKey, revision: epoch.Kvs[0].ModRevision}, epoch.Header.Revision, 0, nil))
	s.etcd.sawRevision(epoch.Header.Revision)
	return nil
}
