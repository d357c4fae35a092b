package store

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// Size of a derived transaction: 100 objects, the fence and the order are within the 128 operations
// that every etcd accepts, and 512 KiB are well below its request limit.
const (
	maxDeriveWrites     = 100
	maxDeriveBytes      = 512 << 10
	maxDeriveConcurrent = 4
)

// StatusWrite is a new Status part. It is written only if the Spec part of the object still has the
// revision that the status was derived from.
type StatusWrite struct {
	Key          api.Key
	Value        []byte // nil deletes the part
	SpecRevision int64
	// Over is the revision of the Status part that it was made from, 0 where there was
	// none: it is written only while that one is there. Nil replaces any.
	Over *int64
}

// compares is how many comparisons the write takes.
func (w *StatusWrite) compares() int {
	if w.Over != nil {
		return 2
	}
	return 1
}

// outcome is the result of one status write.
type outcome struct {
	revision int64     // > 0: written
	conflict *Conflict // the Spec part changed, or the Status part that it was made from
	err      error     // any other error
}

// Derive writes status parts in transactions of up to 100 objects, and returns the highest revision
// written, or 0. A *ConflictError lists the objects of which a part that is compared was changed or
// deleted in the meantime, a *DeriveError those that could not be written; all others are written.
// After ErrFenced, this process must not make any more decisions. A key may occur only once.
func (s *Store) Derive(ctx context.Context, writes []StatusWrite) (int64, error) {
	within, span := tracing.Start(ctx, "store derive")
	revision, err := s.deriveAll(within, writes)
	if span.Recording() && revision > 0 {
		ended(span, len(writes), revision)
		s.options.Tracer.Caused(ctx, revision)
	}
	span.End(err)
	return revision, err
}

func (s *Store) deriveAll(ctx context.Context, writes []StatusWrite) (int64, error) {
	failed := map[api.Key]error{}
	seen := make(map[api.Key]bool, len(writes))
	sound := make([]StatusWrite, 0, len(writes))
	for _, w := range writes {
		if seen[w.Key] {
			return 0, fmt.Errorf("%w: the status of %s is written twice", ErrInvalid, w.Key)
		}
		seen[w.Key] = true
		if err := checkStatusWrite(w); err != nil {
			failed[w.Key] = err
			continue
		}
		sound = append(sound, w)
	}
	var revision int64
	var conflicts []Conflict
	for i, o := range s.derive(ctx, sound) {
		revision = max(revision, o.revision)
		if o.conflict != nil {
			conflicts = append(conflicts, *o.conflict)
		}
		if o.err != nil {
			failed[sound[i].Key] = o.err
		}
	}
	var errs []error
	if len(failed) > 0 {
		errs = append(errs, &DeriveError{failed})
	}
	if len(conflicts) > 0 {
		errs = append(errs, newConflictError(conflicts))
	}
	if len(errs) == 1 {
		return revision, errs[0]
	}
	return revision, errors.Join(errs...)
}

func checkStatusWrite(w StatusWrite) error {
	if err := checkKey(w.Key); err != nil {
		return fmt.Errorf("%w: %w", ErrInvalid, err)
	}
	if w.SpecRevision <= 0 {
		return fmt.Errorf("%w: the status of %s names no revision of the spec it was derived from", ErrInvalid, w.Key)
	}
	if w.Value != nil && len(w.Value) == 0 {
		return fmt.Errorf("%w: the status of %s is empty; nil deletes it", ErrInvalid, w.Key)
	}
	return nil
}

// derive writes distinct, validated status writes and returns the outcome of each.
func (s *Store) derive(ctx context.Context, writes []StatusWrite) []outcome {
	outcomes := make([]outcome, len(writes))
	var group errgroup.Group
	group.SetLimit(maxDeriveConcurrent)
	for begin := 0; begin < len(writes); {
		end, bytes, compares := begin, 0, 0
		for end < len(writes) && compares+writes[end].compares() <= maxDeriveWrites {
			compares += writes[end].compares()
			bytes += len(writes[end].Value) + len(writes[end].Key.Name) + 64
			if end > begin && bytes > maxDeriveBytes {
				break
			}
			end++
		}
		from, to := begin, end
		group.Go(func() error {
			pending := make([]int, 0, to-from)
			for i := from; i < to; i++ {
				pending = append(pending, i)
			}
			err := recovery.Confine("", func() error { s.deriveChunk(ctx, writes, outcomes, pending); return nil })
			for i := from; i < to && err != nil; i++ {
				if outcomes[i] == (outcome{}) {
					outcomes[i].err = err
				}
			}
			return nil
		})
		begin = end
	}
	_ = group.Wait()
	return outcomes
}

// deriveChunk writes the pending ones in one transaction. If objects have changed, it leaves them
// out and retries the others: a failed comparison is a definite answer, so nothing is written
// twice. If a status cannot be stored, it bisects until that status is isolated, so that the others
// are not affected.
func (s *Store) deriveChunk(ctx context.Context, writes []StatusWrite, outcomes []outcome, pending []int) {
	fail := func(err error) {
		for _, i := range pending {
			outcomes[i].err = err
		}
	}
	for len(pending) > 0 {
		term := s.term.Load()
		if term.isOver() {
			fail(ErrFenced)
			return
		}
		at, err := term.ensureOrder(ctx, s)
		if errors.Is(err, ErrFenced) {
			term.end()
			fail(ErrFenced)
			return
		}
		if err != nil {
			fail(fmt.Errorf("write the status: %w", err))
			return
		}
		resp, err := s.deriveTxn(ctx, term.fence, at, writes, pending)
		if errors.Is(err, ErrUncertain) {
			term.doubts(at)
		}
		switch half := len(pending) / 2; {
		case errors.Is(err, ErrInvalid) && half > 0:
			s.deriveChunk(ctx, writes, outcomes, pending[:half])
			s.deriveChunk(ctx, writes, outcomes, pending[half:])
			return
		case err != nil:
			fail(fmt.Errorf("write the status: %w", err))
			return
		}
		if resp.Succeeded {
			for _, i := range pending {
				outcomes[i].revision = resp.Header.Revision
			}
			return
		}
		if term.fence.isBroken(resp, 0) {
			term.end()
			fail(ErrFenced)
			return
		}
		if at != 0 && found(resp, 1) != at {
			term.doubts(at) // an earlier attempt to write the order was applied late
			continue
		}
		present, err := s.partRevisions(ctx, writes, pending)
		if err != nil {
			fail(fmt.Errorf("write the status: %w", err))
			return
		}
		var rest []int
		for n, i := range pending {
			w := &writes[i]
			switch actual := present[n]; {
			case actual.spec != w.SpecRevision:
				outcomes[i].conflict = &Conflict{w.Key, Spec, w.SpecRevision, actual.spec}
			case w.Over != nil && actual.status != *w.Over:
				outcomes[i].conflict = &Conflict{w.Key, Status, *w.Over, actual.status}
			default:
				rest = append(rest, i)
			}
		}
		if len(rest) == len(pending) {
			fail(fmt.Errorf("%w: the transaction failed although every comparison holds", ErrUnavailable))
			return
		}
		pending = rest
	}
}

// deriveTxn writes the pending ones, compared with the fence and with a revision of the order, 0
// for none.
func (s *Store) deriveTxn(ctx context.Context, fence fence, at int64, writes []StatusWrite, pending []int) (*clientv3.TxnResponse, error) {
	ifs := make([]clientv3.Cmp, 0, len(pending)+2)
	thens := make([]clientv3.Op, 0, len(pending))
	ifs = append(ifs, fence.intact())
	elses := []clientv3.Op{fence.look()}
	if at != 0 {
		ifs = append(ifs, kept(at))
		elses = append(elses, clientv3.OpGet(orderKey, clientv3.WithKeysOnly()))
	}
	bytes := 0
	for _, i := range pending {
		w := writes[i]
		spec, status := etcdKey(w.Key, Spec), etcdKey(w.Key, Status)
		ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(spec), "=", w.SpecRevision))
		if w.Over != nil {
			ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(status), "=", *w.Over))
		}
		if w.Value == nil {
			thens = append(thens, clientv3.OpDelete(status))
			continue
		}
		thens = append(thens, putValue(status, w.Value))
		bytes += len(status) + len(w.Value)
	}
	return s.commit(ctx, bytes, bytes > 0, func(t clientv3.Txn) clientv3.Txn {
		return t.If(ifs...).Then(thens...).Else(elses...)
	})
}

// partRevisions are the revisions of the two parts of an object, 0 for one that is not
// there.
type partRevisions struct{ spec, status int64 }

// partRevisions are those of the objects that are pending; of the Status part where it is
// compared. They are asked for only where a comparison failed: a transaction that
// carried the questions would cost half as much again. One that failed then differs still,
// as no revision comes back.
func (s *Store) partRevisions(ctx context.Context, writes []StatusWrite, pending []int) ([]partRevisions, error) {
	gets := make([]clientv3.Op, 0, len(pending))
	for _, i := range pending {
		gets = append(gets, clientv3.OpGet(etcdKey(writes[i].Key, Spec), clientv3.WithKeysOnly()))
		if writes[i].Over != nil {
			gets = append(gets, clientv3.OpGet(etcdKey(writes[i].Key, Status), clientv3.WithKeysOnly()))
		}
	}
	resp, err := s.getAll(ctx, gets...)
	if err != nil {
		return nil, fmt.Errorf("read the revisions of the objects: %w", err)
	}
	revisions, next := make([]partRevisions, len(pending)), 0
	read := func() int64 { next++; return found(resp, next-1) }
	for n, i := range pending {
		revisions[n].spec = read()
		if writes[i].Over != nil {
			revisions[n].status = read()
		}
	}
	return revisions, nil
}

// found returns the revision in the nth read of a transaction's response.
func found(resp *clientv3.TxnResponse, n int) int64 {
	if kvs := resp.Responses[n].GetResponseRange().GetKvs(); len(kvs) == 1 {
		return kvs[0].ModRevision
	}
	return 0
}
