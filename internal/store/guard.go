package store

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// probeInterval is the interval between probes of the store.
const probeInterval = time.Second

// guard tracks whether the store is still the one that was opened, and whether it responds while
// nobody else uses it.
type guard struct {
	etcd       *connection
	transactor *transactor
	envelopes  *envelopes
	freshness  *freshness
	watcher    *watcher
	room       *room
	options    *Options

	identity string // the value of identityKey; set before the store is in use
	mark     int64  // ModRevision of markKey as last written; used only by the probe
	marked   int64  // when it was written, by the clock; used only by the probe
}

// takeIdentity reads the identity of the store, or creates one if it has none.
func (g *guard) takeIdentity(ctx context.Context) error {
	g.identity = rand.Text()
	unwritten := int64(0) // revision of the key if its value cannot be read
	for {
		resp, err := g.etcd.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(identityKey), "=", unwritten)).
			Then(g.envelopes.put(identityKey, []byte(g.identity))).
			Else(clientv3.OpGet(identityKey)).Commit()
		if err != nil {
			return fmt.Errorf("read the identity of the store: %w", classify(err, true))
		}
		g.etcd.sawRevision(resp.Header.Revision)
		if resp.Succeeded {
			return nil
		}
		kvs := resp.Responses[0].GetResponseRange().GetKvs()
		if len(kvs) == 0 {
			unwritten = 0
			continue
		}
		known, err := g.envelopes.open(kvs[0])
		if err == nil {
			g.identity = identityIn(known)
			return nil
		}
		// Other servers on this store terminate; they cannot recognize it as the same one either.
		g.options.Logger.Error("the identity of the store is damaged; a new one is generated", "error", err)
		unwritten = kvs[0].ModRevision
	}
}

// inheritIdentity reads the identity of a store that is too full to be given one.
func (g *guard) inheritIdentity(ctx context.Context) error {
	resp, err := g.etcd.client.Get(ctx, identityKey)
	if err != nil {
		return fmt.Errorf("read the identity of the store: %w", classify(err, false))
	}
	if len(resp.Kvs) > 0 {
		if value, err := g.envelopes.open(resp.Kvs[0]); err == nil {
			g.identity = identityIn(value)
		}
	}
	return nil
}

// run probes the store until ctx is done.
func (g *guard) run(ctx context.Context) {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		if g.etcd.sameFiles() != nil {
			return
		}
		g.look(ctx)
		if g.etcd.replaced.Load() {
			return
		}
	}
}

// look checks the revision of the store, and whether it accepts writes.
func (g *guard) look(ctx context.Context) {
	// For a full store, only check whether it responds: a write would be rejected. The alarm of an
	// external cluster is cleared by somebody else.
	if g.identity == "" || g.room.lowSpace() || g.room.noSpace.Load() && g.options.alone() {
		if _, err := g.freshness.Revision(ctx); err == nil {
			g.etcd.health.responded()
		}
	} else {
		g.probe(ctx)
	}
	// The store's own writes are not part of what is watched, so the watch reports that it has
	// reached them only on request.
	if g.watcher.isBehind() {
		ctx, cancel := context.WithTimeout(ctx, probeInterval)
		defer cancel()
		_ = g.watcher.RequestProgress(ctx) // the age of what is read shows if it does not respond
	}
}

// probe checks whether writes work when nobody else writes, and whether the store still has the
// last known identity and mark. For etcd it is a write, replicated and durable, but its comparison
// fails: it changes nothing and uses no revision.
func (g *guard) probe(ctx context.Context) {
	health := g.etcd.health
	began := health.clock.now()
	health.probing.Store(began)
	defer health.probing.Store(0)
	defer g.diagnose(ctx)()
	limit := g.options.RequestTimeout
	if !g.options.alone() {
		// A write that etcd has lost together with its leader is answered only at its timeout, when
		// others have long succeeded.
		limit = g.options.Patience
	}
	resp, err := g.transactor.transact(ctx, limit, func(t clientv3.Txn) clientv3.Txn {
		return t.If(clientv3.Compare(clientv3.CreateRevision(identityKey), "<", 0)).
			Then(g.envelopes.put(identityKey, []byte(g.identity))).
			Else(clientv3.OpGet(identityKey), clientv3.OpGet(markKey), clientv3.OpGet(formatKey))
	})
	if err != nil {
		return // recorded, and retried soon
	}
	g.freshness.prove(began, resp.Header.Revision)
	if !g.options.alone() {
		g.room.noSpace.Store(false) // its alarm has been cleared
	}
	identity := resp.Responses[0].GetResponseRange().GetKvs()
	if err := g.envelopes.sawFormat(resp.Responses[2].GetResponseRange().GetKvs()); err != nil {
		g.etcd.replaced.Store(true)
		g.etcd.failure.fatal(err)
		return
	}
	switch before := found(resp, 1); {
	case !g.sameIdentity(identity):
		_ = g.etcd.isReplaced("it has another identity")
	case before < g.mark:
		_ = g.etcd.isReplaced(fmt.Sprintf("its high-water mark is of revision %d and was of %d: it was replaced by an older copy", before, g.mark))
	case g.etcd.revision.Load() > before && health.clock.now()-g.marked > int64(g.options.MarkInterval):
		g.writeMark(ctx)
	}
}

// sameIdentity compares the stored identity with the known one. A damaged identity proves nothing:
// the next start creates another.
func (g *guard) sameIdentity(kvs []*mvccpb.KeyValue) bool {
	if len(kvs) != 1 {
		return false
	}
	value, err := g.envelopes.open(kvs[0])
	return err != nil || identityIn(value) == g.identity
}

// diagnose determines why the cluster cannot be reached, while a probe waits for a connection. end
// stops it.
func (g *guard) diagnose(ctx context.Context) (end func()) {
	if g.etcd.server != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		ticker := time.NewTicker(probeInterval)
		defer ticker.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-ticker.C:
			}
			// All other requests wait until there is a connection, and end without saying why there
			// was none.
			_, err := etcdserverpb.NewKVClient(g.etcd.client.ActiveConnection()).
				Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(epochKey), CountOnly: true}, grpc.WaitForReady(false))
			if err != nil && ctx.Err() == nil && unsent(err) {
				g.etcd.health.cause.Store(&err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// writeMark periodically stores the highest revision that this process has seen: an older copy that
// was written to since then does not have it.
func (g *guard) writeMark(ctx context.Context) {
	resp, err := g.transactor.transact(ctx, g.options.RequestTimeout, func(t clientv3.Txn) clientv3.Txn {
		return t.Then(g.envelopes.put(markKey, strconv.AppendInt(nil, g.etcd.revision.Load(), 10)))
	})
	if err == nil {
		g.mark, g.marked = resp.Header.Revision, g.etcd.health.clock.now()
	}
}
