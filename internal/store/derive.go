package store

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
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
	// History is a record of the decision, which is added to the history in the same transaction, or
	// not at all. Nil adds none. It must not contain secrets.
	History []byte
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

// deriver writes what is derived from the writes of users, in the terms in which this process leads.
type deriver struct {
	etcd       *connection
	transactor *transactor
	envelopes  *envelopes
	leadership *leadership
	historian  *historian
	tracer     *tracing.Tracer
}

// Derive writes status parts in transactions of up to 100 objects, and returns the highest revision
// written, or 0. A *ConflictError lists the objects of which a part that is compared was changed or
// deleted in the meantime, a *DeriveError those that could not be written; all others are written.
// After ErrFenced, this process must not make any more decisions. A key may occur only once.
func (d *deriver) Derive(ctx context.Context, writes []StatusWrite) (int64, error) {
	within, span := tracing.Start(ctx, "store derive")
	revision, err := d.deriveAll(within, writes)
	if span.Recording() && revision > 0 {
		ended(span, len(writes), revision)
		d.tracer.Caused(ctx, revision)
	}
	span.End(err)
	return revision, err
}

func (d *deriver) deriveAll(ctx context.Context, writes []StatusWrite) (int64, error) {
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
	for i, o := range d.derive(ctx, sound) {
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
func (d *deriver) derive(ctx context.Context, writes []StatusWrite) []outcome {
	outcomes := make([]outcome, len(writes))
	var group errgroup.Group
	group.SetLimit(maxDeriveConcurrent)
	for begin := 0; begin < len(writes); {
		end, bytes, compares := begin, 0, 0
		for end < len(writes) && compares+writes[end].compares() <= maxDeriveWrites {
			compares += writes[end].compares()
			bytes += len(writes[end].Value) + len(writes[end].History) + len(writes[end].Key.Name) + 64
			if end > begin && bytes > maxDeriveBytes {
				break
			}
			end++
		}
		from, to := begin, end
		group.Go(func() error {
			part := chunk{writes: writes, outcomes: outcomes, pending: make([]int, 0, to-from)}
			for i := from; i < to; i++ {
				part.pending = append(part.pending, i)
			}
			err := fault.Confine("", func() error { d.deriveChunk(ctx, part); return nil })
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

// chunk is a part of the writes that is written in one transaction.
type chunk struct {
	writes   []StatusWrite
	outcomes []outcome // of all writes
	pending  []int     // indexes of the writes of the chunk that have no outcome yet
	// earlier are the keys of the records of transactions that may have made some of the pending writes.
	earlier []string
}

// records returns those of the pending writes, for the history.
func (c *chunk) records() (records [][]byte) {
	for _, i := range c.pending {
		if record := c.writes[i].History; record != nil {
			records = append(records, record)
		}
	}
	return records
}

// fail makes an error the outcome of all pending writes.
func (c *chunk) fail(err error) {
	for _, i := range c.pending {
		c.outcomes[i].err = err
	}
}

// written makes a revision the outcome of all pending writes.
func (c *chunk) written(revision int64) {
	for _, i := range c.pending {
		c.outcomes[i].revision = revision
	}
}

// leaveOut makes a conflict the outcome of the pending writes whose objects have changed, and
// reports whether there are any. present are the revisions of the pending ones.
func (c *chunk) leaveOut(present []partRevisions) bool {
	var rest []int
	for n, i := range c.pending {
		w := &c.writes[i]
		switch actual := present[n]; {
		case actual.spec != w.SpecRevision:
			c.outcomes[i].conflict = &Conflict{w.Key, Spec, w.SpecRevision, actual.spec}
		case w.Over != nil && actual.status != *w.Over:
			c.outcomes[i].conflict = &Conflict{w.Key, Status, *w.Over, actual.status}
		default:
			rest = append(rest, i)
		}
	}
	changed := len(rest) < len(c.pending)
	c.pending = rest
	return changed
}

// deriveChunk writes the pending ones in one transaction. If objects have changed, it leaves them
// out and retries the others: a failed comparison is a definite answer, so nothing is written
// twice. If a status cannot be stored, it bisects until that status is isolated, so that the others
// are not affected.
func (d *deriver) deriveChunk(ctx context.Context, c chunk) {
	for len(c.pending) > 0 {
		again, err := d.attempt(ctx, &c)
		switch half := len(c.pending) / 2; {
		case errors.Is(err, ErrInvalid) && half > 0:
			d.deriveChunk(ctx, chunk{writes: c.writes, outcomes: c.outcomes, pending: c.pending[:half]})
			d.deriveChunk(ctx, chunk{writes: c.writes, outcomes: c.outcomes, pending: c.pending[half:]})
			return
		case errors.Is(err, ErrFenced):
			c.fail(ErrFenced)
			return
		case err != nil:
			c.fail(fmt.Errorf("write the status: %w", err))
			return
		case !again:
			return
		}
	}
}

// attempt makes one transaction with the pending writes. again says that it was not made, and that
// another one can be.
func (d *deriver) attempt(ctx context.Context, c *chunk) (again bool, err error) {
	term := d.leadership.term.Load()
	if term.isOver() {
		return false, ErrFenced
	}
	at, err := term.ensureOrder(ctx, d.transactor, d.leadership.putOrder)
	if errors.Is(err, ErrFenced) {
		term.end()
	}
	if err != nil {
		return false, err
	}
	if d.historian.unanswered.leaveOut(c) && len(c.pending) == 0 {
		return false, nil
	}
	if c.earlier = d.historian.unanswered.of(term, c); len(c.earlier) > maxUnanswered {
		return false, fmt.Errorf("%w: too many earlier transactions may have made it", ErrInvalid) // one by one
	}
	record := ""
	if len(c.records()) > 0 {
		record = historyPrefix + d.historian.HistoryKey(HistoryLog)
	}
	resp, err := d.deriveTxn(ctx, term.fence, at, record, c)
	if errors.Is(err, ErrUncertain) {
		term.doubts(at)
		if record != "" {
			d.historian.unanswered.add(term, record, c)
		}
	}
	switch {
	case err != nil:
		return false, err
	case resp.Succeeded:
		d.historian.unanswered.forget(c)
		c.written(resp.Header.Revision)
		return false, nil
	case term.fence.isBroken(resp, 0):
		term.end()
		return false, ErrFenced
	case at != 0 && found(resp, 1) != at:
		term.doubts(at) // an earlier attempt to write the order was applied late
		return true, nil
	case d.madeBefore(resp, c):
		return true, nil
	}
	present, err := d.partRevisions(ctx, c)
	if err != nil {
		return false, err
	}
	if !c.leaveOut(present) {
		return false, fmt.Errorf("%w: the transaction failed although every comparison holds", ErrUnavailable)
	}
	return true, nil
}

// madeBefore reports whether an earlier transaction has made some of the pending writes after all.
// The reads of the records of earlier ones are the last of the response.
func (d *deriver) madeBefore(resp *clientv3.TxnResponse, c *chunk) bool {
	for n, key := range c.earlier {
		if revision := found(resp, len(resp.Responses)-len(c.earlier)+n); revision != 0 {
			d.historian.unanswered.happened(key, revision)
		}
	}
	return d.historian.unanswered.leaveOut(c)
}

// deriveTxn writes the pending ones, with their records under a key, compared with the fence and
// with a revision of the order, 0 for none.
func (d *deriver) deriveTxn(ctx context.Context, fence fence, at int64, record string, c *chunk) (*clientv3.TxnResponse, error) {
	ifs := make([]clientv3.Cmp, 0, len(c.pending)+2+len(c.earlier))
	thens := make([]clientv3.Op, 0, len(c.pending)+1)
	ifs = append(ifs, fence.intact())
	elses := []clientv3.Op{fence.look()}
	if at != 0 {
		ifs = append(ifs, kept(at))
		elses = append(elses, clientv3.OpGet(orderKey, clientv3.WithKeysOnly()))
	}
	for _, key := range c.earlier {
		ifs = append(ifs, clientv3.Compare(clientv3.CreateRevision(key), "=", 0))
		elses = append(elses, clientv3.OpGet(key, clientv3.WithKeysOnly()))
	}
	bytes := 0
	type value struct {
		first  *byte
		length int
	}
	puts := map[value]clientv3.Op{} // by value: many of a pass are one
	for _, i := range c.pending {
		w := c.writes[i]
		spec, status := etcdKey(w.Key, Spec), etcdKey(w.Key, Status)
		ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(spec), "=", w.SpecRevision))
		if w.Over != nil {
			ifs = append(ifs, clientv3.Compare(clientv3.ModRevision(status), "=", *w.Over))
		}
		if w.Value == nil {
			thens = append(thens, clientv3.OpDelete(status))
			continue
		}
		is := value{&w.Value[0], len(w.Value)}
		put, again := puts[is]
		if again {
			put = putAgain(status, put)
		} else {
			put = d.envelopes.put(status, w.Value)
			puts[is] = put
		}
		thens = append(thens, put)
		bytes += len(status) + len(w.Value)
	}
	if record != "" {
		put := d.envelopes.put(record, joinRecords(c.records()))
		thens = append(thens, put)
		bytes += len(record) + len(put.ValueBytes())
	}
	return d.transactor.commit(ctx, bytes, bytes > 0, func(t clientv3.Txn) clientv3.Txn {
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
func (d *deriver) partRevisions(ctx context.Context, c *chunk) ([]partRevisions, error) {
	gets := make([]clientv3.Op, 0, len(c.pending))
	for _, i := range c.pending {
		gets = append(gets, clientv3.OpGet(etcdKey(c.writes[i].Key, Spec), clientv3.WithKeysOnly()))
		if c.writes[i].Over != nil {
			gets = append(gets, clientv3.OpGet(etcdKey(c.writes[i].Key, Status), clientv3.WithKeysOnly()))
		}
	}
	resp, err := d.etcd.getAll(ctx, gets...)
	if err != nil {
		return nil, fmt.Errorf("read the revisions of the objects: %w", err)
	}
	revisions, next := make([]partRevisions, len(c.pending)), 0
	read := func() int64 { next++; return found(resp, next-1) }
	for n, i := range c.pending {
		revisions[n].spec = read()
		if c.writes[i].Over != nil {
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
