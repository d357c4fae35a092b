package certificate

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

const (
	// checkInterval is the time between two looks at the store and the clock. It
	// is far shorter than what clusters are given to fetch a new authority.
	checkInterval = time.Hour
	// retryInterval is the time to the next look after one that failed.
	retryInterval = time.Minute
	// maxAttempts bounds how often other servers may be faster.
	maxAttempts = 10
)

// Run renews the certificate, rotates the authority and takes over what another
// server has rotated, until ctx ends. The authority must be open.
func (a *Authority) Run(ctx context.Context) error {
	failing := false
	for wait := checkInterval; ; {
		if !backoff.Wait(ctx, wait) {
			return nil
		}
		err := a.refresh(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // it was told to end
		}
		wait = checkInterval
		if err != nil {
			wait = retryInterval
		}
		switch {
		case err != nil && !failing:
			a.options.Logger.Error("the certificate authority of the webhook could not be renewed; the previous one stays in use", "error", err)
		case err == nil && failing:
			a.options.Logger.Info("the certificate authority of the webhook can be renewed again")
		}
		failing = err != nil
	}
}

// refresh brings this server and the store to where they should be now. The
// certificate is renewed even where the store cannot be reached: that needs only
// what is in memory.
func (a *Authority) refresh(ctx context.Context) error {
	err := a.agree(ctx)
	return errors.Join(err, a.renew())
}

// agree reads the keyring from the store, and makes or rotates it where it is
// time to. When another server was faster, what that one wrote counts.
func (a *Authority) agree(ctx context.Context) error {
	for range maxAttempts {
		ring, revision, err := a.read(ctx)
		if err != nil {
			return err
		}
		now := a.now()
		if len(ring.authorities) == 0 {
			if ring, err = newKeyring(now); err != nil {
				return err
			}
		}
		if revision > 0 {
			a.adopt(ring, revision)
		}
		next, changed, err := ring.rotated(now)
		if err != nil {
			return err
		}
		if !changed && revision > 0 {
			return nil
		}
		value, err := next.encode(a.options.Sealer)
		if err != nil {
			return err
		}
		written, err := a.options.Store.Commit(ctx, store.Write{Key: recordKey, Part: store.Spec, Value: value, Expect: revision})
		var conflict *store.ConflictError
		switch {
		case err == nil:
			a.adopt(next, written)
			a.options.Logger.Info("the certificate authority of the webhook was created or rotated", "authorities", len(next.authorities),
				"ends", next.authorities[len(next.authorities)-1].certificate.NotAfter)
			return nil
		case !errors.As(err, &conflict) && !errors.Is(err, store.ErrUncertain):
			return fmt.Errorf("store the certificate authority of the webhook: %w", err)
		}
	}
	return fmt.Errorf("store the certificate authority of the webhook: it was changed by other servers %d times in a row", maxAttempts)
}

// read is the keyring in the store and its revision. Where there is none, it is
// the one in use, which a deleted record must not replace by another; that is
// empty when the authority was never open.
func (a *Authority) read(ctx context.Context) (keyring, int64, error) {
	record, _, err := a.options.Store.Read(ctx, recordKey)
	if err != nil {
		return keyring{}, 0, fmt.Errorf("read the certificate authority of the webhook: %w", err)
	}
	a.mu.Lock()
	ring, revision := a.ring, a.revision
	a.mu.Unlock()
	switch {
	case record == nil:
		return ring, 0, nil
	case record.ModRevision == revision:
		return ring, revision, nil
	}
	ring, err = decode(record.Value, a.options.Sealer)
	return ring, record.ModRevision, err
}

// adopt takes over a keyring that is in the store.
func (a *Authority) adopt(ring keyring, revision int64) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ring, a.revision = ring, revision
	if bundle := ring.bundle(); !bytes.Equal(bundle, a.bundle) {
		a.bundle = bundle
		close(a.changed)
		a.changed = make(chan struct{})
	}
}

// renew makes another certificate for this server where it is time to.
func (a *Authority) renew() error {
	now := a.now()
	a.mu.Lock()
	ring, serving := a.ring, a.serving
	a.mu.Unlock()
	if len(ring.authorities) == 0 {
		return nil // why it is so has been returned already
	}
	if serving != nil && now.Before(serving.renewAt()) && ring.has(serving.signer) {
		return nil
	}
	serving, err := issueServing(ring.signer(now), a.options.Hosts, now)
	if err != nil {
		return err
	}
	a.mu.Lock()
	a.serving = serving
	a.mu.Unlock()
	a.options.Logger.Info("the certificate of the webhook was renewed", "hosts", a.options.Hosts, "ends", serving.pair.Leaf.NotAfter)
	return nil
}

// now is the time without the monotonic clock, which stops while a machine
// sleeps.
func (a *Authority) now() time.Time { return a.options.Now().UTC().Round(0) }
