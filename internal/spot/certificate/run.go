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
	// checkInterval is the interval between checks of the store and the clock. It is far shorter
	// than the time that clusters have to fetch a new authority.
	checkInterval = time.Hour
	// retryInterval is the delay after a failed check.
	retryInterval = time.Minute
	// maxAttempts limits how often other servers may be faster.
	maxAttempts = 10
)

// Run renews the certificate, rotates the authority and adopts rotations by other servers, until
// ctx is done. The authority must be open.
func (a *Authority) Run(ctx context.Context) error {
	failing := false
	for wait := checkInterval; ; {
		if !backoff.Wait(ctx, wait) {
			return nil
		}
		err := a.refresh(ctx)
		if ctx.Err() != nil {
			return nil //nolint:nilerr // canceled, not failed
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

// refresh brings this server and the store up to date. The certificate is renewed even if the store
// cannot be reached, because that only needs data in memory.
func (a *Authority) refresh(ctx context.Context) error {
	err := a.agree(ctx)
	return errors.Join(err, a.renew())
}

// agree reads the keyring from the store, and creates or rotates it if due. If another server was
// faster, its result is used.
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

// read returns the keyring in the store and its revision. If there is none, it returns the one in
// use, so that a deleted record is not replaced by a different keyring; that is empty if the
// authority was never open.
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

// adopt adopts a keyring from the store.
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

// renew issues another certificate for this server if due.
func (a *Authority) renew() error {
	now := a.now()
	a.mu.Lock()
	ring, serving := a.ring, a.serving
	a.mu.Unlock()
	if len(ring.authorities) == 0 {
		return nil // the error has already been returned
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

// now returns the time without the monotonic clock, which stops while a machine sleeps.
func (a *Authority) now() time.Time { return a.options.Now().UTC().Round(0) }
