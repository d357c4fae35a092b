package store

import (
	"context"
	"errors"
	"fmt"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Declare makes all writes in one transaction, or none, as Commit does, but only while this process
// leads: the transaction is compared with the fence and the order of derived writes. So nothing is
// declared twice by a former leader, however late its write is applied. After ErrFenced, this
// process must not declare anything more.
func (d *deriver) Declare(ctx context.Context, writes ...Write) (int64, error) {
	plan, err := d.envelopes.planCommit(writes)
	if err != nil {
		return 0, err
	}
	if plan.grows {
		if err := d.transactor.room.quotaLeft(); err != nil {
			return 0, err
		}
	}
	term := d.leadership.term.Load()
	if term.isOver() {
		return 0, ErrFenced
	}
	at, err := term.ensureOrder(ctx, d.transactor, d.leadership.putOrder)
	if errors.Is(err, ErrFenced) {
		term.end()
	}
	if err != nil {
		return 0, err
	}
	ifs, elses := append(plan.ifs, term.fence.intact()), append(plan.elses, term.fence.look())
	if at != 0 {
		ifs = append(ifs, kept(at))
	}
	resp, err := d.transactor.commit(ctx, plan.bytes, plan.grows, func(t clientv3.Txn) clientv3.Txn {
		return t.If(ifs...).Then(plan.thens...).Else(elses...)
	})
	if errors.Is(err, ErrUncertain) {
		term.doubts(at)
	}
	switch {
	case err != nil:
		return 0, fmt.Errorf("declare %s: %w", writes[0].Key, err)
	case resp.Succeeded:
		return resp.Header.Revision, nil
	case term.fence.isBroken(resp, len(plan.elses)):
		term.end()
		return 0, ErrFenced
	}
	var conflicts []Conflict
	for i, guarded := range plan.guarded {
		if actual := found(resp, i); actual != guarded.Expect {
			conflicts = append(conflicts, Conflict{guarded.Key, guarded.Part, guarded.Expect, actual})
		}
	}
	if len(conflicts) == 0 { // the order: an earlier write was applied late
		term.doubts(at)
		return 0, fmt.Errorf("declare %s: %w", writes[0].Key, ErrUnavailable)
	}
	return 0, newConflictError(conflicts)
}
