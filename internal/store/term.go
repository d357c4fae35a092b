package store

import (
	"sync"

	clientv3 "go.etcd.io/etcd/client/v3"
)

// Term is a time in which this process leads: only in a term does it write derived
// state, and each such write is compared with the fence of the term. Whatever a
// process believes that was stopped for an hour, its writes are refused once
// another one leads.
type Term struct {
	fence fence
	over  chan struct{}
	ended sync.Once
	// resign gives the leadership up; nil where nobody else can take it.
	resign func()
}

// newTerm begins a term.
func newTerm(f fence, resign func()) *Term {
	return &Term{fence: f, over: make(chan struct{}), resign: resign}
}

// Over is closed when the term has ended: the lease ran out, another process leads,
// or Resign was called.
func (t *Term) Over() <-chan struct{} { return t.over }

// Resign ends the term, so that another server can lead at once. It is called when
// nothing is derived any more.
func (t *Term) Resign() {
	t.end()
	if t.resign != nil {
		t.resign()
	}
}

func (t *Term) end() { t.ended.Do(func() { close(t.over) }) }

func (t *Term) isOver() bool {
	select {
	case <-t.over:
		return true
	default:
		return false
	}
}

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
