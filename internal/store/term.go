package store

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Term is a period in which this process leads. It writes derived state only during a term, and
// each such write is compared with the fence of the term. Even if a process was suspended for an
// hour and still believes that it leads, its writes are rejected once another one leads.
type Term struct {
	// Began is a revision after which no other process writes derived state.
	Began int64

	fence fence
	ctx   context.Context // done when the term ends
	end   context.CancelFunc
	// resign gives up the leadership; nil if nobody else can lead.
	resign func()

	mu sync.Mutex
	// ordered is the revision at which orderKey was last written, which every derived write is
	// compared with; guarded by mu. It is 0 if writes cannot overtake each other, as in the
	// embedded member.
	ordered int64
	// reorder says that orderKey must be written before the next derived write; guarded by mu.
	reorder bool
}

// newTerm begins a term. ordered is the revision at which orderKey was written for it; 0 if writes
// cannot overtake each other.
func newTerm(f fence, began, ordered int64, resign func()) *Term {
	t := &Term{Began: began, fence: f, ordered: ordered, resign: resign}
	t.ctx, t.end = context.WithCancel(context.Background())
	return t
}

// Context is done when the term ends: the lease has expired, another process leads, or this one has
// resigned.
func (t *Term) Context() context.Context { return t.ctx }

// Resign ends the term if another server can lead, which then does so at once. It must be called
// only when nothing is being derived.
func (t *Term) Resign() {
	if t.resign != nil {
		t.end()
		t.resign()
	}
}

// isOver reports whether the term has ended; a nil term never began.
func (t *Term) isOver() bool { return t == nil || t.ctx.Err() != nil }

// Derived writes of a term are applied in order. A write without a response may still be on its way
// to an etcd cluster: through a suspended member, or delayed by the network. If it were applied
// late, it would undo later decisions. Therefore orderKey is written before anything else is, and
// every derived write is compared with the revision of its last write: late writes are rejected.

// doubts records that the outcome of a write that was compared with a revision of orderKey is
// unknown.
func (t *Term) doubts(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reorder = t.reorder || t.ordered == at && at != 0
}

// ensureOrder returns the revision of orderKey that the next derived write is compared with. If
// necessary, it writes orderKey to exclude earlier writes that may still be on their way. The error
// is ErrFenced if another process leads.
func (t *Term) ensureOrder(ctx context.Context, s *Store) (int64, error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if !t.reorder {
		return t.ordered, nil
	}
	resp, err := s.commit(ctx, len(orderKey), true, func(txn clientv3.Txn) clientv3.Txn {
		return txn.If(t.fence.intact()).Then(s.putOrder()).Else(t.fence.look())
	})
	switch {
	case err != nil:
		return 0, err
	case !resp.Succeeded:
		return 0, ErrFenced
	}
	t.ordered, t.reorder = resp.Header.Revision, false
	return t.ordered, nil
}

func (s *Store) putOrder() clientv3.Op { return putValue(orderKey, []byte(s.id)) }

// kept returns the comparison of a derived write with a revision of orderKey.
func kept(at int64) clientv3.Cmp { return clientv3.Compare(clientv3.ModRevision(orderKey), "=", at) }

// fence is a key that is unchanged for as long as the process that wrote it leads.
type fence struct {
	key      string
	revision int64
	// created compares the revision at which the key was created, instead of its last write.
	created bool
}

// intact returns the comparison that every derived write makes.
func (f fence) intact() clientv3.Cmp {
	if f.created {
		return clientv3.Compare(clientv3.CreateRevision(f.key), "=", f.revision)
	}
	return clientv3.Compare(clientv3.ModRevision(f.key), "=", f.revision)
}

// look returns the read that isBroken evaluates.
func (f fence) look() clientv3.Op { return clientv3.OpGet(f.key, clientv3.WithKeysOnly()) }

// isBroken evaluates the nth read of a transaction's response.
func (f fence) isBroken(resp *clientv3.TxnResponse, n int) bool {
	kvs := resp.Responses[n].GetResponseRange().GetKvs()
	if len(kvs) != 1 {
		return true
	}
	if f.created {
		return kvs[0].CreateRevision != f.revision
	}
	return kvs[0].ModRevision != f.revision
}
