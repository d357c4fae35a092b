package store

import (
	"context"
	"crypto/rand"
	"errors"
	"sync"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Store stores the objects. It is safe for concurrent use. Its parts are types of their own: each
// owns its fields and locks, and uses the others through their methods.
type Store struct {
	*reader      // Read, Load, Page
	*freshness   // Revision, Age
	*watcher     // Watch, RequestProgress
	*transactor  // Writable
	*writer      // Commit
	*deriver     // Derive, Declare
	*leadership  // Campaign, Candidates, Is
	*members     // Members, AddMember, RemoveMember
	*upgrader    // FinishUpgrade
	*maintenance // Compact
	*backups     // Backup
	*historian   // HistoryKey, ReadHistory, ChangeHistory, WatchHistory, Leads

	options   *Options
	failure   *failure
	etcd      *connection
	embedded  *embedded // nil with an external cluster
	room      *room
	guard     *guard
	envelopes *envelopes
	metrics   *storeMetrics

	ctx      context.Context // done after Close
	stop     context.CancelFunc
	loops    sync.WaitGroup
	closing  sync.Once
	closeErr error
}

// Open opens the store: it locks the data directory and starts the embedded member, or connects to
// the external cluster. It returns a *LockedError at once if another process has the directory. ctx
// only limits opening.
func Open(ctx context.Context, options Options) (*Store, error) {
	o := options.withDefaults()
	if err := o.check(); err != nil {
		return nil, err
	}
	s := &Store{options: &o, failure: newFailure(o.Fatal)}
	s.ctx, s.stop = context.WithCancel(context.Background())
	if err := s.open(ctx); err != nil {
		return nil, errors.Join(err, s.Close())
	}
	return s, nil
}

func (s *Store) open(ctx context.Context) error {
	if err := s.connect(ctx); err != nil {
		return err
	}
	if s.options.interpose != nil {
		s.etcd.client.KV = s.options.interpose(s.etcd.client.KV)
	}
	s.compose()
	s.options.Doing("taking over the store")
	if err := s.takeUp(ctx); err != nil {
		return err
	}
	if s.embedded != nil && s.embedded.first && s.options.alone() {
		if err := endFirstStart(s.options.DataDir); err != nil {
			return err
		}
	}
	s.keep(s.maintenance.run)
	s.keep(s.guard.run)
	s.keep(s.upgrader.run)
	if !s.options.alone() {
		s.keep(s.tellProgress)
		s.keep(s.keepApart)
	}
	if s.embedded != nil {
		s.keep(s.embedded.disk.run)
	}
	return nil
}

// connect starts the embedded member, or connects to the external cluster.
func (s *Store) connect(ctx context.Context) error {
	clock := clock{time.Now()}
	s.etcd = &connection{
		options: s.options, failure: s.failure, closed: s.ctx,
		health: &health{clock: clock, patience: s.options.Patience},
	}
	if len(s.options.Endpoints) > 0 {
		s.options.Doing("connecting to the etcd cluster")
		var err error
		s.etcd.client, err = connect(ctx, *s.options)
		return err
	}
	s.embedded = &embedded{options: s.options}
	if err := s.embedded.open(ctx, s.failure.fatal); err != nil {
		return err
	}
	s.etcd.client, s.etcd.server, s.etcd.files = s.embedded.client, s.embedded.member.Server, s.embedded.files
	s.loops.Go(func() { s.embedded.awaitStop(s.ctx, s.failure.fatal) })
	return nil
}

// compose makes the parts of the store.
func (s *Store) compose() {
	o, etcd, clock := s.options, s.etcd, s.etcd.health.clock
	s.metrics, s.envelopes = newStoreMetrics(), &envelopes{}
	s.room = &room{options: o, embedded: s.embedded}
	s.room.history.Store(o.HistoryBytes) // until it is known: it must not make writes fail meanwhile
	s.reader = &reader{etcd, s.envelopes}
	s.freshness = &freshness{currency: currency{current: clock.now()}, etcd: etcd, clock: clock}
	s.watcher = &watcher{etcd: etcd, envelopes: s.envelopes, metrics: s.metrics, logger: o.Logger}
	s.transactor = &transactor{etcd, s.room, s.metrics}
	s.leadership = &leadership{etcd: etcd, envelopes: s.envelopes, watcher: s.watcher, options: o, clock: clock, id: rand.Text()}
	s.historian = newHistorian(etcd, s.transactor, s.envelopes, s.leadership, s.reader)
	s.writer = &writer{s.transactor, s.envelopes, s.historian, o.Tracer}
	s.deriver = &deriver{etcd: etcd, transactor: s.transactor, envelopes: s.envelopes, leadership: s.leadership, historian: s.historian, tracer: o.Tracer}
	s.members = &members{etcd, o}
	s.maintenance = &maintenance{etcd, s.room, s.leadership, &defragmenter{etcd, s.room, o}, o, s.metrics}
	s.backups = &backups{etcd, &snapshots{etcd: etcd}, s.room, o}
	s.guard = &guard{
		etcd: etcd, transactor: s.transactor, envelopes: s.envelopes, freshness: s.freshness, watcher: s.watcher, room: s.room, options: o,
	}
	s.upgrader = &upgrader{etcd, s.transactor, s.envelopes, s.leadership, s.guard, o, clock}
}

// keep runs a loop of the store until the store is closed. If it panics, it is restarted.
func (s *Store) keep(loop func(context.Context)) {
	s.loops.Go(func() {
		_ = s.options.Faults.Component("store").Supervise(s.ctx, func(ctx context.Context) error { loop(ctx); return nil }) // returns no error of its own
	})
}

// Close stops the store. Watches end; the embedded member writes out its data and the data
// directory is released.
func (s *Store) Close() error {
	s.closing.Do(func() {
		s.stop()
		s.loops.Wait()
		switch {
		case s.embedded != nil:
			if s.backups != nil && s.failure.cause() == nil {
				s.snapshots.wait()
			}
			s.closeErr = s.embedded.close()
		case s.etcd.client != nil:
			s.closeErr = closeClient(s.etcd.client)
		}
	})
	return s.closeErr
}

// Client returns the etcd client, for commands that need more than this package offers. Its
// responses are shared with the server and must not be modified.
func (s *Store) Client() *clientv3.Client { return s.etcd.client }

// Identity returns what tells this store from others; copies of it have the same. It is "" for a store
// that was too full to be given one.
func (s *Store) Identity() string { return s.guard.identity }

// Info returns the state of the store.
func (s *Store) Info() api.StoreInfo {
	size := s.room.size()
	info := api.StoreInfo{
		Mode:       "embedded",
		ClusterID:  s.etcd.cluster(),
		Revision:   s.etcd.revision.Load(),
		SizeBytes:  size.file,
		InUseBytes: s.room.inUse(),
		QuotaBytes: s.options.QuotaBytes,

		Format: s.envelopes.written(), NewestFormat: formatVersion,
		Members: s.Members(),
	}
	if s.embedded == nil {
		info.Mode, info.QuotaBytes = "external", 0
	}
	return info
}
