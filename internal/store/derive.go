package store

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The size of a derived transaction: 100 objects and the fence fit the 128
// operations every etcd accepts, 512 KiB stay well below its request limit.
const (
	maxDeriveWrites     = 100
	maxDeriveBytes      = 512 << 10
	maxDeriveConcurrent = 4
)

// StatusWrite is a new Status part. It is written only while the Spec part of
// the object has the revision it was derived from.
type StatusWrite struct {
	Key          api.Key
	Value        []byte // nil deletes the part
	SpecRevision int64
}

// outcome is what became of one status write.
type outcome struct {
	revision int64     // > 0: written
	conflict *Conflict // the Spec part changed
	err      error     // anything else
}

// Derive writes status parts, in transactions of up to 100 objects, and returns
// the highest revision written (0 when none was). A *ConflictError lists the
// objects whose Spec part was changed or deleted meanwhile; every other one is
// written. After ErrFenced this process must not decide anything any more. A key
// may occur only once.
func (s *Store) Derive(ctx context.Context, writes []StatusWrite) (int64, error) {
	if err := checkStatusWrites(writes); err != nil {
		return 0, err
	}
	var revision int64
	var conflicts []Conflict
	var errs []error
	for _, o := range s.derive(ctx, writes) {
		revision = max(revision, o.revision)
		if o.conflict != nil {
			conflicts = append(conflicts, *o.conflict)
		}
		// The writes of one transaction share their error.
		if o.err != nil && (len(errs) == 0 || !errors.Is(errs[len(errs)-1], o.err)) {
			errs = append(errs, o.err)
		}
	}
	if len(conflicts) > 0 {
		errs = append(errs, newConflictError(conflicts))
	}
	if len(errs) == 1 {
		return revision, errs[0]
	}
	return revision, errors.Join(errs...)
}

func checkStatusWrites(writes []StatusWrite) error {
	seen := make(map[api.Key]bool, len(writes))
	for _, w := range writes {
		if err := checkStatusWrite(w); err != nil {
			return err
		}
		if seen[w.Key] {
			return fmt.Errorf("%w: the status of %s is written twice", ErrInvalid, w.Key)
		}
		seen[w.Key] = true
	}
	return nil
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

// derive writes distinct, checked status writes and says for each what became
// of it.
func (s *Store) derive(ctx context.Context, writes []StatusWrite) []outcome {
	outcomes := make([]outcome, len(writes))
	var group errgroup.Group
	group.SetLimit(maxDeriveConcurrent)
	for begin := 0; begin < len(writes); {
		end, bytes := begin, 0
		for end < len(writes) && end-begin < maxDeriveWrites {
			bytes += len(writes[end].Value) + len(writes[end].Key.Name) + 64
			if end > begin && bytes > maxDeriveBytes {
				break
			}
			end++
		}
		from, to := begin, end
		group.Go(func() error {
			s.deriveChunk(ctx, writes[from:to], outcomes[from:to])
			return nil
		})
		begin = end
	}
	_ = group.Wait()
	return outcomes
}

// deriveChunk writes one transaction. Where objects have changed, it leaves them
// out and tries the others again: a failed comparison is a definite answer, so
// nothing is written twice.
func (s *Store) deriveChunk(ctx context.Context, writes []StatusWrite, outcomes []outcome) {
	pending := make([]int, len(writes))
	for i := range writes {
		pending[i] = i
	}
	fail := func(err error) {
		for _, i := range pending {
			outcomes[i].err = err
		}
	}
	for len(pending) > 0 {
		if s.fenced.Load() {
			fail(ErrFenced)
			return
		}
		resp, err := s.deriveTxn(ctx, writes, pending)
		if err != nil {
			fail(fmt.Errorf("write the status of %d objects: %w", len(pending), err))
			return
		}
		if resp.Succeeded {
			for _, i := range pending {
				outcomes[i].revision = resp.Header.Revision
			}
			return
		}
		if found(resp, 0) != s.epoch {
			s.fenced.Store(true)
			fail(ErrFenced)
			return
		}
		var rest []int
		for n, i := range pending {
			if actual := found(resp, n+1); actual != writes[i].SpecRevision {
				outcomes[i].conflict = &Conflict{writes[i].Key, Spec, writes[i].SpecRevision, actual}
			} else {
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

func (s *Store) deriveTxn(ctx context.Context, writes []StatusWrite, pending []int) (*clientv3.TxnResponse, error) {
	ifs := make([]clientv3.Cmp, 0, len(pending)+1)
	thens := make([]clientv3.Op, 0, len(pending))
	elses := make([]clientv3.Op, 0, len(pending)+1)
	ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(epochKey), "=", s.epoch))
	elses = append(elses, clientv3.OpGet(epochKey, clientv3.WithKeysOnly()))
	bytes := 0
	for _, i := range pending {
		w := writes[i]
		spec, status := etcdKey(w.Key, Spec), etcdKey(w.Key, Status)
		ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(spec), "=", w.SpecRevision))
		elses = append(elses, clientv3.OpGet(spec, clientv3.WithKeysOnly()))
		if w.Value == nil {
			thens = append(thens, clientv3.OpDelete(status))
			continue
		}
		thens = append(thens, clientv3.OpPut(status, string(w.Value)))
		bytes += len(status) + len(w.Value)
	}
	return s.commit(ctx, bytes, func(t clientv3.Txn) clientv3.Txn {
		return t.If(ifs...).Then(thens...).Else(elses...)
	})
}

// found is the revision that the nth read of a transaction's answer found.
func found(resp *clientv3.TxnResponse, n int) int64 {
	if kvs := resp.Responses[n].GetResponseRange().GetKvs(); len(kvs) == 1 {
		return kvs[0].ModRevision
	}
	return 0
}
