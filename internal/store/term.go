package store

import (
	"context"

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
}

func newTerm(f fence, began int64, resign func()) *Term {
	t := &Term{Began: began, fence: f, resign: resign}
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

func (t *Term) isOver() bool { return t.ctx.Err() != nil }

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
