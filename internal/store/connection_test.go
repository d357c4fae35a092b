package store

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// unsettledKV answers every other read that its leader has changed, as a member that is just elected may, and every
// write if refusing.
type unsettledKV struct {
	clientv3.KV

	refusing      bool
	reads, writes atomic.Int64
}

func (k *unsettledKV) settled() bool { return k.reads.Add(1)%2 == 0 }

func (k *unsettledKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	if !k.settled() {
		return nil, rpctypes.ErrLeaderChanged
	}
	return k.KV.Get(ctx, key, options...)
}

func (k *unsettledKV) Txn(ctx context.Context) clientv3.Txn {
	return &unsettledTxn{Txn: k.KV.Txn(ctx), kv: k}
}

type unsettledTxn struct {
	clientv3.Txn

	kv     *unsettledKV
	writes bool
}

func (t *unsettledTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cs...)
	return t
}

func (t *unsettledTxn) Then(ops ...clientv3.Op) clientv3.Txn {
	t.writes = t.writes || slices.ContainsFunc(ops, clientv3.Op.IsPut)
	t.Txn = t.Txn.Then(ops...)
	return t
}

func (t *unsettledTxn) Else(ops ...clientv3.Op) clientv3.Txn {
	t.writes = t.writes || slices.ContainsFunc(ops, clientv3.Op.IsPut)
	t.Txn = t.Txn.Else(ops...)
	return t
}

func (t *unsettledTxn) Commit() (*clientv3.TxnResponse, error) {
	if t.writes {
		t.kv.writes.Add(1)
	}
	if t.writes && t.kv.refusing || !t.writes && !t.kv.settled() {
		return nil, rpctypes.ErrLeaderChanged
	}
	return t.Txn.Commit()
}

// A server on a busy machine ended at its start: "read the format of the store: leader changed".
func TestReadsAreRepeatedWhenTheLeaderChanges(t *testing.T) {
	var kv *unsettledKV
	s := open(t, func(o *Options) {
		o.interpose = func(sound clientv3.KV) clientv3.KV {
			kv = &unsettledKV{KV: sound}
			return kv
		}
	})
	for range 3 {
		if _, err := s.get(t.Context(), s.options.RequestTimeout, formatKey); err != nil {
			t.Error(err)
		}
		if _, err := s.getAll(t.Context(), clientv3.OpGet(formatKey), clientv3.OpGet(epochKey)); err != nil {
			t.Error(err)
		}
		either := s.client.Txn(t.Context()).If(clientv3.Compare(clientv3.ModRevision(formatKey), "=", 0)).
			Then(clientv3.OpGet(formatKey)).Else(clientv3.OpGet(epochKey))
		if resp, err := either.Commit(); err != nil || resp.Succeeded {
			t.Error(resp, err)
		}
	}
	if kv.reads.Load() < 20 {
		t.Errorf("%d reads", kv.reads.Load())
	}
}

// Whether a write was done is not known when its answer is lost: only a read is repeated.
func TestWritesAreNotRepeatedWhenTheLeaderChanges(t *testing.T) {
	s := open(t)
	for name, txn := range map[string]func(clientv3.Txn) clientv3.Txn{
		"then": func(txn clientv3.Txn) clientv3.Txn {
			return txn.Then(clientv3.OpGet(formatKey), clientv3.OpPut("then", "")).Else(clientv3.OpGet(formatKey))
		},
		"else": func(txn clientv3.Txn) clientv3.Txn {
			return txn.Then(clientv3.OpGet(formatKey)).Else(clientv3.OpGet(formatKey), clientv3.OpPut("else", ""))
		},
	} {
		t.Run(name, func(t *testing.T) {
			kv, end := interpose(t, s, func(sound clientv3.KV) *unsettledKV { return &unsettledKV{KV: sound, refusing: true} })
			defer end()
			if _, err := txn(s.client.Txn(t.Context())).Commit(); !errors.Is(err, rpctypes.ErrLeaderChanged) {
				t.Errorf("error %v", err)
			}
			if kv.writes.Load() != 1 {
				t.Errorf("sent %d times", kv.writes.Load())
			}
		})
	}
}
