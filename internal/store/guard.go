package store

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"sync/atomic"
	"time"

	"go.etcd.io/etcd/api/v3/etcdserverpb"
	"go.etcd.io/etcd/api/v3/mvccpb"
	clientv3 "go.etcd.io/etcd/client/v3"
	"google.golang.org/grpc"
)

// errReplaced is returned, with ErrUnavailable, if the store turns out to be a different one than
// was opened, or an older copy of it. The in-memory copy is then invalid: nothing is acknowledged
// anymore and the process exits, so that the next start reads the actual data.
var errReplaced = errors.New("the store was replaced under the running server")

// probeInterval is the interval between probes of the store.
const probeInterval = time.Second

// guard tracks whether the store is still the one that was opened, and whether writes work.
type guard struct {
	identity string      // the value of identityKey
	mark     int64       // ModRevision of markKey as last written; used only by the probe
	marked   int64       // when it was written, by the clock; used only by the probe
	files    fileGuard   // of the embedded member
	applied  uint64      // entry of the log after the last probe; used only by the probe
	onDisk   uint64      // mark outside the database; used only by the probe
	unmarked bool        // that it cannot be written there was logged; used only by the probe
	replaced atomic.Bool // the in-memory copy belongs to another store

	// troubleSince is when the first of the writes began that have failed since the last success,
	// probing when the current probe began, and worked when the last successful write began: in
	// nanoseconds of the clock, 0 if there is none.
	clock                         clock
	patience                      time.Duration // that writes may fail or take
	troubleSince, probing, worked atomic.Int64
	cause                         atomic.Pointer[error]

	freshness freshness
}

// clock measures the time since its start, independent of changes to the system clock.
type clock struct{ start time.Time }

// now is never 0.
func (c clock) now() int64 { return int64(time.Since(c.start)) + 1 }

// answered checks the header of a response to a request that was sent when asked was the highest
// known revision.
func (s *Store) answered(asked int64, header *etcdserverpb.ResponseHeader) error {
	switch {
	case s.guard.replaced.Load():
		return fmt.Errorf("%w: %w", ErrUnavailable, errReplaced)
	case header.ClusterId != s.clusterID:
		return s.isReplaced(fmt.Sprintf("its cluster id is %x, it was %x", header.ClusterId, s.clusterID))
	case header.Revision < asked:
		return s.isReplaced(fmt.Sprintf("it is at revision %d and was at %d: it was put back to an older copy", header.Revision, asked))
	}
	s.sawRevision(header.Revision)
	return nil
}

// isReplaced terminates the process.
func (s *Store) isReplaced(how string) error {
	s.guard.replaced.Store(true)
	err := fmt.Errorf("%w: %w: %s; start the server again to go on with what is there now, or to be told why it must not", ErrUnavailable, errReplaced, how)
	s.fatal(err)
	return err
}

// takeIdentity reads the identity of the store, or creates one if it has none.
func (s *Store) takeIdentity(ctx context.Context) error {
	s.guard.identity = rand.Text()
	unwritten := int64(0) // revision of the key if its value cannot be read
	for {
		resp, err := s.client.Txn(ctx).
			If(clientv3.Compare(clientv3.ModRevision(identityKey), "=", unwritten)).
			Then(putValue(identityKey, []byte(s.guard.identity))).
			Else(clientv3.OpGet(identityKey)).Commit()
		if err != nil {
			return fmt.Errorf("read the identity of the store: %w", classify(err, true))
		}
		s.sawRevision(resp.Header.Revision)
		if resp.Succeeded {
			return nil
		}
		kvs := resp.Responses[0].GetResponseRange().GetKvs()
		if len(kvs) == 0 {
			unwritten = 0
			continue
		}
		known, err := openEnvelope(kvs[0])
		if err == nil {
			s.guard.identity = identityIn(known)
			return nil
		}
		// Other servers on this store terminate; they cannot recognize it as the same one either.
		s.options.Logger.Error("the identity of the store is damaged; a new one is generated", "error", err)
		unwritten = kvs[0].ModRevision
	}
}

// watchOver probes the store until it is closed.
func (s *Store) watchOver() {
	ticker := time.NewTicker(probeInterval)
	defer ticker.Stop()
	for {
		select {
		case <-s.ctx.Done():
			return
		case <-ticker.C:
		}
		if how := s.guard.files.changed(); how != "" {
			_ = s.isReplaced(how)
			return
		}
		s.look()
		if s.guard.replaced.Load() {
			return
		}
	}
}

// look checks the revision of the store, and whether it accepts writes.
func (s *Store) look() {
	// For a full store, only check whether it responds: a write would be rejected. The alarm of an
	// external cluster is cleared by somebody else.
	if s.guard.identity == "" || s.lowSpace() || s.noSpace.Load() && s.options.alone() {
		if _, err := s.Revision(s.ctx); err == nil {
			s.guard.troubleSince.Store(0)
		}
	} else {
		s.probe()
	}
	// The store's own writes are not part of what is watched, so the watch reports that it has
	// reached them only on request.
	if s.watches.Load() > 0 && s.watched.Load() < s.revision.Load() {
		ctx, cancel := context.WithTimeout(s.ctx, probeInterval)
		defer cancel()
		_ = s.RequestProgress(ctx) // the age of what is read shows if it does not respond
	}
}

// Age returns how long ago the store was last known to have nothing newer than a revision. A copy
// of the store at that revision is at most this old.
func (s *Store) Age(revision int64) time.Duration {
	return time.Duration(s.guard.clock.now() - s.guard.freshness.provenAt(revision))
}

// probe checks whether writes work when nobody else writes, and whether the store still has the
// last known identity and mark. For etcd it is a write, replicated and durable, but its comparison
// fails: it changes nothing and uses no revision.
func (s *Store) probe() {
	s.guard.probing.Store(s.guard.clock.now())
	defer s.guard.probing.Store(0)
	defer s.diagnose()()
	began := s.guard.clock.now()
	limit := s.options.RequestTimeout
	if !s.options.alone() {
		// A write that etcd has lost together with its leader is answered only at its timeout, when
		// others have long succeeded.
		limit = s.options.Patience
	}
	resp, err := s.transactWithin(s.ctx, limit, func(t clientv3.Txn) clientv3.Txn {
		return t.If(clientv3.Compare(clientv3.CreateRevision(identityKey), "<", 0)).
			Then(putValue(identityKey, []byte(s.guard.identity))).
			Else(clientv3.OpGet(identityKey), clientv3.OpGet(markKey), clientv3.OpGet(formatKey))
	})
	if err != nil {
		return // recorded, and retried soon
	}
	s.guard.freshness.prove(began, resp.Header.Revision)
	s.keepDiskMark()
	if !s.options.alone() {
		s.noSpace.Store(false) // its alarm has been cleared
	}
	identity := resp.Responses[0].GetResponseRange().GetKvs()
	if err := s.sawFormat(resp.Responses[2].GetResponseRange().GetKvs()); err != nil {
		s.guard.replaced.Store(true)
		s.fatal(err)
		return
	}
	switch before := found(resp, 1); {
	case !s.sameIdentity(identity):
		_ = s.isReplaced("it has another identity")
	case before < s.guard.mark:
		_ = s.isReplaced(fmt.Sprintf("its high-water mark is of revision %d and was of %d: it was put back to an older copy", before, s.guard.mark))
	case s.revision.Load() > before && s.guard.clock.now()-s.guard.marked > int64(s.options.MarkInterval):
		s.writeMark()
	}
}

// sameIdentity compares the stored identity with the known one. A damaged identity proves nothing:
// the next start creates another.
func (s *Store) sameIdentity(kvs []*mvccpb.KeyValue) bool {
	if len(kvs) != 1 {
		return false
	}
	value, err := openEnvelope(kvs[0])
	return err != nil || identityIn(value) == s.guard.identity
}

// diagnose determines why the cluster cannot be reached, while a probe waits for a connection. end
// stops it.
func (s *Store) diagnose() (end func()) {
	if s.member != nil {
		return func() {}
	}
	ctx, cancel := context.WithCancel(s.ctx)
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
			_, err := etcdserverpb.NewKVClient(s.client.ActiveConnection()).
				Range(ctx, &etcdserverpb.RangeRequest{Key: []byte(epochKey), CountOnly: true}, grpc.WaitForReady(false))
			if err != nil && ctx.Err() == nil && unsent(err) {
				s.guard.cause.Store(&err)
			}
		}
	}()
	return func() { cancel(); <-done }
}

// writeMark periodically stores the highest revision that this process has seen: an older copy that
// was written to since then does not have it.
func (s *Store) writeMark() {
	resp, err := s.transact(s.ctx, func(t clientv3.Txn) clientv3.Txn {
		return t.Then(putValue(markKey, strconv.AppendInt(nil, s.revision.Load(), 10)))
	})
	if err == nil {
		s.guard.mark, s.guard.marked = resp.Header.Revision, s.guard.clock.now()
	}
}

// attempted records the result of a write that began at a time. A timeout of the caller says
// nothing about the store, nor does the failure of a write that began before another one that
// succeeded.
func (g *guard) attempted(ctx context.Context, began int64, err error) {
	switch worked := g.worked.Load(); {
	case ctx.Err() != nil && err != nil:
	case err == nil, errors.Is(classify(err, true), ErrInvalid), errors.Is(classify(err, true), ErrFull):
		for began > worked && !g.worked.CompareAndSwap(worked, began) {
			worked = g.worked.Load()
		}
		g.troubleSince.Store(0)
		g.cause.Store(nil)
	case began < worked:
	default:
		// A timeout is less specific than a known cause.
		if !errors.Is(err, context.DeadlineExceeded) || g.cause.Load() == nil {
			g.cause.Store(&err)
		}
		g.troubleSince.CompareAndSwap(0, began)
	}
}

// stalled returns nil while writes are answered. A single failure does not count: writes may fail
// or take as long as patience.
func (g *guard) stalled() error {
	now := g.clock.now()
	lasted := func(since int64) time.Duration {
		if since == 0 {
			return 0
		}
		return time.Duration(now - since)
	}
	d := max(lasted(g.troubleSince.Load()), lasted(g.probing.Load()))
	if d <= g.patience {
		return nil
	}
	stalled := &StalledError{For: d}
	if cause := g.cause.Load(); cause != nil {
		stalled.Cause = *cause
	}
	return stalled
}

// Writable returns nil while writes work. Otherwise it says for how long they have failed or not
// been answered, and why.
func (s *Store) Writable() error {
	switch {
	case s.guard.replaced.Load():
		return errReplaced
	case s.lowSpace():
		return fmt.Errorf("%w: too little of the disk is free in %s", ErrFull, s.options.DataDir)
	case s.noSpace.Load(), s.overQuota.Load():
		return fmt.Errorf("%w: its quota is used up", ErrFull)
	}
	return s.guard.stalled()
}

// fileGuard records the files and directories of the embedded member as they were opened. If a name
// later refers to another file, somebody has restored a copy, and further writes go to deleted
// files.
type fileGuard map[string]os.FileInfo

// newFileGuard records the files of a data directory.
func newFileGuard(dataDir string) (fileGuard, error) {
	member := filepath.Join(memberDir(dataDir), "member")
	g := fileGuard{}
	for _, path := range []string{dataDir, member, filepath.Join(member, "wal"), filepath.Join(member, "snap")} {
		info, err := os.Stat(path)
		if err != nil {
			return nil, err
		}
		g[path] = info
	}
	return g, nil
}

// changed returns a name that refers to another file, or "".
func (g fileGuard) changed() string {
	for path, opened := range g {
		info, err := os.Stat(path)
		switch {
		case errors.Is(err, os.ErrNotExist):
			return fmt.Sprintf("%s is gone", path)
		case err == nil && !os.SameFile(info, opened):
			return fmt.Sprintf("%s is another file than the one that was opened", path)
		}
	}
	return ""
}
