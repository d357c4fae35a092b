package store

import (
	"context"
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Term is a time in which this process leads: only in a term does it write derived
// state, and each such write is compared with the fence of the term. Whatever a
// process believes that was stopped for an hour, its writes are refused once
// another one leads.
type Term struct {
	// Began is a revision from which on no other process writes derived state.
	Began int64

	fence fence
	ctx   context.Context // ends with the term
	end   context.CancelFunc
	// resign gives the leadership up; nil where nobody else can take it.
	resign func()

	mu sync.Mutex
	// ordered is the revision at which orderKey was last written, which every derived
	// write is compared with; guarded by mu. 0 where writes cannot overtake each other,
	// as in the embedded member.
	ordered int64
	// reorder says that orderKey has to be written before the next derived write; guarded
	// by mu.
	reorder bool
}

// newTerm begins a term. ordered is the revision at which orderKey was written for it; 0
// where writes cannot overtake each other.
func newTerm(f fence, began, ordered int64, resign func()) *Term {
	t := &Term{Began: began, fence: f, ordered: ordered, resign: resign}
	t.ctx, t.end = context.WithCancel(context.Background())
	return t
}

// Context ends with the term: the lease ran out, another process leads, or this one
// has resigned.
func (t *Term) Context() context.Context { return t.ctx }

// Resign ends the term where another server can lead, which then does at once. It is
// called when nothing is derived any more.
func (t *Term) Resign() {
	if t.resign != nil {
		t.end()
		t.resign()
	}
}

// isOver reports that the term has ended; a nil term never began.
func (t *Term) isOver() bool { return t == nil || t.ctx.Err() != nil }

// The derived writes of a term stay in the order in which they were made. A write
// without an answer may still be on its way to an etcd cluster: through a member that
// stands still, or held up by the network. Done late, it would undo what was decided
// since. So orderKey is written before anything else is, and every derived write is
// compared with the revision at which that was last done: what is late is refused.

// doubts notes that nobody can tell what became of a write that was compared with a
// revision of orderKey.
func (t *Term) doubts(at int64) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.reorder = t.reorder || t.ordered == at && at != 0
}

// ensureOrder returns the revision of orderKey to compare the next derived write with. It
// excludes what may still be on its way, where there is such a thing. The error is
// ErrFenced where another process leads.
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

func (s *Store) putOrder() clientv3.Op { return s.envelopes.put(orderKey, []byte(s.id)) }

// kept is the comparison that a derived write makes with a revision of orderKey.
func kept(at int64) clientv3.Cmp { return clientv3.Compare(clientv3.ModRevision(orderKey), "=", at) }

// fence is a key that is as the process wrote it for as long as it leads.
type fence struct {
	key      string
	revision int64
	// created compares the revision at which the key was created, else that of its
	// last write.
	created bool
}

// intact is the comparison that every derived write makes.
func (f fence) intact() clientv3.Cmp {
	if f.created {
		return clientv3.Compare(clientv3.CreateRevision(f.key), "=", f.revision)
	}
	return clientv3.Compare(clientv3.ModRevision(f.key), "=", f.revision)
}

// look reads what isBroken judges.
func (f fence) look() clientv3.Op { return clientv3.OpGet(f.key, clientv3.WithKeysOnly()) }

// isBroken judges the nth read of a transaction's answer.
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
