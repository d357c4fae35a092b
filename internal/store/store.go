package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/server/v3/embed"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing/exemplar"
)

// Store stores the objects. It is safe for concurrent use.
type Store struct {
	options Options
	client  *clientv3.Client
	member  *embed.Etcd    // nil with an external cluster
	lock    *directoryLock // nil with an external cluster
	disk    *diskWatch     // nil with an external cluster
	first   bool           // the data directory was empty before
	metrics *storeMetrics

	clusterID uint64
	format    atomic.Int64         // used for writing
	id        string               // of this process
	term      atomic.Pointer[Term] // the last one; nil before the first
	candidacy atomic.Pointer[candidacy]
	abandoned leases
	revision  atomic.Int64 // highest revision in any response
	noSpace   atomic.Bool  // the quota alarm is raised
	overQuota atomic.Bool  // live data is close to the quota
	external  atomic.Pointer[externalSize]
	guard     guard
	watches   atomic.Int64 // number of watches
	watched   atomic.Int64 // highest revision that any of them has reached

	ctx      context.Context // done after Close
	stop     context.CancelFunc
	loops    sync.WaitGroup
	readers  sync.WaitGroup // of the embedded member's database, which must not be closed under them
	closing  sync.Once
	closeErr error
	dying    sync.Once
	// dead is done when the embedded member has failed: it no longer responds, and may not even
	// finish requests in progress.
	dead context.Context
	died context.CancelCauseFunc
}

// Open opens the store: it locks the data directory and starts the embedded member, or connects to
// the external cluster. It returns a *LockedError at once if another process has the directory. ctx
// only limits opening.
func Open(ctx context.Context, options Options) (*Store, error) {
	o := options.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Store{options: o, metrics: newStoreMetrics(), id: rand.Text()}
	s.guard.clock.start, s.guard.patience = time.Now(), o.Patience
	s.guard.freshness.current = s.guard.clock.now()
	s.ctx, s.stop = context.WithCancel(context.Background())
	s.dead, s.died = context.WithCancelCause(context.Background())
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	var err error
	if len(s.options.Endpoints) > 0 {
		s.options.Doing("connecting to the etcd cluster")
		if s.client, err = connect(ctx, s.options); err != nil {
			return err
		}
	} else {
		if err := s.openMember(ctx); err != nil {
			return err
		}
	}
	if s.options.interpose != nil {
		s.client.KV = s.options.interpose(s.client.KV)
	}
	s.client.KV = repeatingKV{s.client.KV, s}
	s.options.Doing("taking over the store")
	if err := s.takeUp(ctx); err != nil {
		return err
	}
	if s.first && s.options.alone() {
		if err := endFirstStart(s.options.DataDir); err != nil {
			return err
		}
	}
	s.keep(s.maintain)
	s.keep(s.watchOver)
	s.keep(s.upgrade)
	if !s.options.alone() {
		s.keep(s.tellProgress)
		s.keep(s.keepApart)
	}
	if s.disk != nil {
		s.keep(func() { s.disk.run(s.ctx) })
	}
	return nil
}

// keep runs a loop of the store until the store is closed. If it panics, it is restarted.
func (s *Store) keep(loop func()) {
	s.loops.Go(func() {
		_ = s.options.Faults.Component("store").Supervise(s.ctx, func(context.Context) error { loop(); return nil }) // returns no error of its own
	})
}

func (s *Store) openMember(ctx context.Context) error {
	dir := s.options.DataDir
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("create the data directory: %w", err)
	}
	var err error
	if s.lock, err = lockDirectory(dir); err != nil {
		return err
	}
	if s.options.QuotaBytes == 0 {
		if s.options.QuotaBytes, err = defaultQuota(dir); err != nil {
			return err
		}
	}
	s.disk = newDiskWatch(s.options)
	if err := checkStartSpace(dir); err != nil {
		return err
	}
	if s.first, err = beginFirstStart(dir, s.options.alone()); err != nil {
		return err
	}
	if !s.first {
		if err := s.preflight(); err != nil {
			return err
		}
	}
	s.options.Doing("reading the database and the write-ahead log of the store")
	if s.member, s.client, err = startMember(ctx, s.options, s.fatal); err != nil {
		return err
	}
	s.disk.settleWith(func() { s.member.Server.Backend().ForceCommit() })
	s.disk.look() // the member has allocated its log since the last time
	if s.guard.files, err = newFileGuard(dir); err != nil {
		return err
	}
	s.loops.Go(func() {
		select {
		case <-s.ctx.Done():
		case <-s.member.Server.StopNotify():
			s.fatal(whyStopped(s.ctx, s.member, s.options))
		}
	})
	return nil
}

// fatal reports once that the embedded member has failed.
func (s *Store) fatal(err error) {
	s.dying.Do(func() {
		s.died(err)
		s.options.Fatal(err)
	})
}

// takeUp is take for a store that has just been opened. A member of a cluster of embedded members
// waits while they elect a leader, as it has waited for them to start.
func (s *Store) takeUp(ctx context.Context) error {
	for failures := 1; ; failures++ {
		err := s.take(ctx)
		unanswered := errors.Is(err, ErrUnavailable) || errors.Is(err, ErrUncertain) // take can be repeated
		if !unanswered || s.member == nil || s.options.alone() {
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
	known, err := s.readFormat(ctx)
	if err != nil {
		return err
	}
	if s.options.alone() {
		return s.takeEpoch(ctx, known)
	}
	for known.number == 0 {
		if known, err = s.beginFormat(ctx); err != nil {
			return err
		}
	}
	return s.takeIdentity(ctx)
}

// takeEpoch makes this process the owner of derived writes: all earlier owners are fenced from now
// on.
func (s *Store) takeEpoch(ctx context.Context, known format) error {
	puts := []clientv3.Op{enclose(epochKey, fmt.Appendf(nil, "pid %d, %s", os.Getpid(), s.options.Now().UTC().Format(time.RFC3339)))}
	if known.number == 0 {
		puts = append(puts, putFormat())
	}
	if s.lowSpace() {
		return s.inheritEpoch(ctx)
	}
	resp, err := s.client.Txn(ctx).Then(puts...).Commit()
	if err = classify(err, true); errors.Is(err, ErrFull) {
		s.noSpace.Store(true)
		return s.inheritEpoch(ctx)
	}
	if err != nil {
		return fmt.Errorf("take over the store: %w", err)
	}
	s.term.Store(newTerm(fence{key: epochKey, revision: resp.Header.Revision}, resp.Header.Revision, 0, nil))
	if known.number == 0 {
		s.format.Store(formatVersion)
	}
	s.sawRevision(resp.Header.Revision)
	return s.takeIdentity(ctx)
}

// inheritEpoch continues the epoch of the previous process: a full store must open for reading. The
// directory lock excludes all other processes.
func (s *Store) inheritEpoch(ctx context.Context) error {
	epoch, err := s.client.Get(ctx, epochKey)
	if err != nil {
		return fmt.Errorf("read the epoch of the store: %w", classify(err, false))
	}
	identity, err := s.client.Get(ctx, identityKey)
	if err != nil {
		return fmt.Errorf("read the identity of the store: %w", classify(err, false))
	}
	if len(identity.Kvs) > 0 {
		if value, err := openEnvelope(identity.Kvs[0]); err == nil {
			s.guard.identity = identityIn(value)
		}
	}
	if len(epoch.Kvs) == 0 {
		return fmt.Errorf("%w: there is no room to set it up", ErrFull)
	}
	s.term.Store(newTerm(fence{key: epochKey, revision: epoch.Kvs[0].ModRevision}, epoch.Header.Revision, 0, nil))
	s.sawRevision(epoch.Header.Revision)
	return nil
}

// Close stops the store. Watches end; the embedded member writes out its data and the data
// directory is released.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.stop()
		s.loops.Wait()
		var errs []error
		if s.client != nil {
			// The in-process client has no connection, so it returns the error of its own context.
			if err := s.client.Close(); err != nil && !errors.Is(err, context.Canceled) {
				errs = append(errs, err)
			}
		}
		if s.member != nil {
			if s.dead.Err() == nil {
				s.readers.Wait()
			}
			s.disk.settleWith(nil)
			s.member.Close()
		}
		if s.lock != nil {
			errs = append(errs, s.lock.release())
		}
		s.closeErr = errors.Join(errs...)
	})
	return s.closeErr
}

// Client returns the etcd client, for commands that need more than this package offers. Its
// responses are shared with the server and must not be modified.
func (s *Store) Client() *clientv3.Client { return s.client }

// Info returns the state of the store.
func (s *Store) Info() api.StoreInfo {
	size, inUse := s.size()
	info := api.StoreInfo{
		Mode:       "embedded",
		ClusterID:  strconv.FormatUint(s.clusterID, 16),
		Revision:   s.revision.Load(),
		SizeBytes:  size,
		InUseBytes: inUse,
		QuotaBytes: s.options.QuotaBytes,

		Format: s.written(), NewestFormat: formatVersion,
		Members: s.Members(),
	}
	if s.member == nil {
		info.Mode, info.QuotaBytes = "external", 0
	}
	return info
}

// size returns the size of the database file, and how much of it contains data.
func (s *Store) size() (size, inUse int64) {
	if s.member != nil {
		backend := s.member.Server.Backend()
		return backend.Size(), backend.SizeInUse()
	}
	if last := s.external.Load(); last != nil {
		return last.size, last.inUse
	}
	return 0, 0
}

// Revision returns the current revision of the store, read linearizably.
func (s *Store) Revision(ctx context.Context) (int64, error) {
	at := s.guard.clock.now()
	resp, err := s.get(ctx, s.options.RequestTimeout, epochKey, clientv3.WithCountOnly())
	if err != nil {
		return 0, fmt.Errorf("read the revision of the store: %w", err)
	}
	s.guard.freshness.prove(at, resp.Header.Revision)
	return resp.Header.Revision, nil
}

func (s *Store) sawRevision(revision int64) {
	for {
		old := s.revision.Load()
		if revision <= old || s.revision.CompareAndSwap(old, revision) {
			return
		}
	}
}

func (s *Store) lowSpace() bool { return s.disk != nil && s.disk.low.Load() }

// commit runs one write transaction. If it returns an error other than ErrUncertain, nothing was
// written. While the store does not respond, it fails at once, because waiting would be pointless.
func (s *Store) commit(ctx context.Context, bytes int, grows bool, txn func(clientv3.Txn) clientv3.Txn) (*clientv3.TxnResponse, error) {
	if err := s.guard.stalled(); err != nil {
		return nil, err
	}
	if s.disk != nil {
		size := int64(bytes + writeOverhead)
		if !s.disk.accept(size, grows) {
			return nil, fmt.Errorf("%w: less than %d MiB are free in %s", ErrFull, s.options.MinFreeBytes/mebibyte, s.options.DataDir)
		}
		defer s.disk.answer(size)
	}
	return s.transact(ctx, txn)
}

// transact runs one write transaction regardless of the results of earlier ones.
func (s *Store) transact(ctx context.Context, txn func(clientv3.Txn) clientv3.Txn) (*clientv3.TxnResponse, error) {
	return s.transactWithin(ctx, s.options.RequestTimeout, txn)
}

// transactWithin runs one write transaction with a timeout. A timeout counts as a failure of the
// store.
func (s *Store) transactWithin(ctx context.Context, limit time.Duration, txn func(clientv3.Txn) clientv3.Txn) (*clientv3.TxnResponse, error) {
	if s.ctx.Err() != nil {
		return nil, errClosed
	}
	if s.guard.replaced.Load() {
		return nil, fmt.Errorf("%w: %w", ErrUnavailable, errReplaced)
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	bounded, cancel := context.WithTimeout(s.streamContext(ctx), min(limit, s.options.RequestTimeout))
	defer cancel()
	asked, began := s.revision.Load(), s.guard.clock.now()
	if err := s.awaitLeader(bounded); err != nil {
		s.guard.attempted(ctx, began, errNoQuorum)
		return nil, err
	}
	resp, err := txn(s.client.Txn(bounded)).Commit()
	exemplar.Observe(ctx, s.metrics.txnSeconds, time.Duration(s.guard.clock.now()-began))
	s.guard.attempted(ctx, began, err)
	if err = classify(err, true); err != nil {
		s.metrics.failures.Inc()
		return nil, err
	}
	if how := s.guard.files.changed(); how != "" {
		return nil, s.isReplaced(how) // the write is lost
	}
	return resp, s.answered(asked, resp.Header)
}
