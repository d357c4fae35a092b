package store

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"testing"

	"go.etcd.io/etcd/api/v3/v3rpc/rpctypes"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/raft/v3"
)

// hesitantKV lets a test answer for etcd.
type hesitantKV struct {
	clientv3.KV

	// read and write are called with the number of an attempt, from 1 on, and with what asks etcd. Nil asks etcd.
	read, write func(attempt int64, ask func() error) error

	reads, writes atomic.Int64
}

func (k *hesitantKV) answer(write bool, ask func() error) error {
	switch {
	case write && k.write != nil:
		return k.write(k.writes.Add(1), ask)
	case !write && k.read != nil:
		return k.read(k.reads.Add(1), ask)
	}
	return ask()
}

func (k *hesitantKV) Get(ctx context.Context, key string, options ...clientv3.OpOption) (resp *clientv3.GetResponse, err error) {
	err = k.answer(false, func() (err error) {
		resp, err = k.KV.Get(ctx, key, options...)
		return err
	})
	return resp, err
}

func (k *hesitantKV) Txn(ctx context.Context) clientv3.Txn {
	return &hesitantTxn{Txn: k.KV.Txn(ctx), kv: k}
}

type hesitantTxn struct {
	clientv3.Txn

	kv     *hesitantKV
	writes bool
}

func (t *hesitantTxn) If(cs ...clientv3.Cmp) clientv3.Txn {
	t.Txn = t.Txn.If(cs...)
	return t
}

func (t *hesitantTxn) Then(ops ...clientv3.Op) clientv3.Txn { return t.with(t.Txn.Then, ops) }
func (t *hesitantTxn) Else(ops ...clientv3.Op) clientv3.Txn { return t.with(t.Txn.Else, ops) }

func (t *hesitantTxn) with(branch func(...clientv3.Op) clientv3.Txn, ops []clientv3.Op) clientv3.Txn {
	t.writes = t.writes || slices.ContainsFunc(ops, func(op clientv3.Op) bool { return !op.IsGet() })
	t.Txn = branch(ops...)
	return t
}

func (t *hesitantTxn) Commit() (resp *clientv3.TxnResponse, err error) {
	err = t.kv.answer(t.writes, func() (err error) {
		resp, err = t.Txn.Commit()
		return err
	})
	return resp, err
}

// A server on a busy machine ended at its start: "read the format of the store: leader changed".
func TestReadsThatEtcdGivesUpOnAreRepeated(t *testing.T) {
	for _, problem := range []error{rpctypes.ErrLeaderChanged, rpctypes.ErrTimeout, rpctypes.ErrTimeoutDueToLeaderFail} {
		t.Run(problem.Error(), func(t *testing.T) {
			var kv *hesitantKV
			s := open(t, func(o *Options) {
				o.interpose = func(sound clientv3.KV) clientv3.KV {
					kv = &hesitantKV{KV: sound, read: func(attempt int64, ask func() error) error {
						if attempt%2 == 1 {
							return problem
						}
						return ask()
					}}
					return kv
				}
			})
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
			if kv.reads.Load() < 8 {
				t.Errorf("%d reads", kv.reads.Load())
			}
		})
	}
}

// TestWritesThatEtcdGivesUpOn has etcd give up on transactions that are done, or are not.
func TestWritesThatEtcdGivesUpOn(t *testing.T) {
	gaveUp := func(n int64, done bool) func(int64, func() error) error {
		return func(attempt int64, ask func() error) error {
			if attempt > n {
				return ask()
			}
			if done {
				if err := ask(); err != nil {
					return err
				}
			}
			return rpctypes.ErrTimeout
		}
	}
	dropped := func(attempt int64, ask func() error) error {
		if attempt > 2 {
			return ask()
		}
		return raft.ErrProposalDropped
	}
	full := func(done bool) func(int64, func() error) error {
		return func(_ int64, ask func() error) error {
			if done {
				if err := ask(); err != nil {
					return err
				}
			}
			return rpctypes.ErrNoSpace
		}
	}
	there, absent := etcdKey(placement(1), Spec), etcdKey(placement(2), Spec)
	created := func(key, value string) func(clientv3.Txn) clientv3.Txn {
		return func(txn clientv3.Txn) clientv3.Txn {
			return txn.If(clientv3.Compare(clientv3.ModRevision(key), "=", 0)).Then(putValue(key, []byte(value)))
		}
	}
	deleted := func(txn clientv3.Txn) clientv3.Txn {
		return txn.If(clientv3.Compare(clientv3.Version(there), "=", 1)).Then(clientv3.OpDelete(there))
	}
	for name, c := range map[string]struct {
		txn      func(clientv3.Txn) clientv3.Txn
		write    func(int64, func() error) error
		read     func(int64, func() error) error
		members  bool // it is one of several
		attempts int64
		refused  bool  // a comparison failed
		err      error // nil if it is known what became of it
	}{
		"not done":          {txn: created(absent, "a"), write: gaveUp(1, false), attempts: 2},
		"not done twice":    {txn: created(absent, "a"), write: gaveUp(2, false), attempts: 3},
		"done":              {txn: created(absent, "a"), write: gaveUp(1, true), attempts: 2},
		"done, given up on": {txn: created(absent, "a"), write: gaveUp(2, true), attempts: 3},
		"there before":      {txn: created(there, "b"), write: gaveUp(1, false), attempts: 2, err: rpctypes.ErrTimeout},
		"the same before":   {txn: created(there, "a"), write: gaveUp(1, false), attempts: 2, err: rpctypes.ErrTimeout},
		"answered":          {txn: created(there, "b"), attempts: 1, refused: true, write: gaveUp(0, false)},
		"deleted":           {txn: deleted, write: gaveUp(1, false), attempts: 2},
		"deleted, done":     {txn: deleted, write: gaveUp(1, true), attempts: 2, err: rpctypes.ErrTimeout},
		"leader changed": {
			txn: created(absent, "a"), attempts: 1, err: rpctypes.ErrLeaderChanged,
			write: func(int64, func() error) error { return rpctypes.ErrLeaderChanged },
		},
		"done, then refused": {
			txn: created(absent, "a"), attempts: 2, err: rpctypes.ErrTimeout,
			write: func(attempt int64, ask func() error) error {
				if attempt > 1 {
					return rpctypes.ErrTooManyRequests
				}
				if err := ask(); err != nil {
					return err
				}
				return rpctypes.ErrTimeout
			},
		},
		"dropped":                   {txn: created(absent, "a"), write: dropped, attempts: 3},
		"dropped by one of several": {txn: created(absent, "a"), write: dropped, members: true, attempts: 3},
		"full":                      {txn: created(absent, "a"), write: full(false), attempts: 1, err: rpctypes.ErrNoSpace},
		"full, deleted":             {txn: deleted, write: full(false), attempts: 1, err: rpctypes.ErrNoSpace},
		"full, done":                {txn: created(absent, "a"), write: full(true), attempts: 1},
		"full, not to be told": {
			txn: created(absent, "a"), write: full(true), attempts: 1, err: ErrUncertain,
			read: func(int64, func() error) error { return rpctypes.ErrTooManyRequests },
		},
		"one of several": {txn: created(absent, "a"), write: gaveUp(1, false), members: true, attempts: 1, err: rpctypes.ErrTimeout},
	} {
		t.Run(name, func(t *testing.T) {
			s := open(t)
			put(t, s, placement(1), "a")
			kv, sound := interpose(t, s, func(sound clientv3.KV) *hesitantKV { return &hesitantKV{KV: sound, write: c.write, read: c.read} })
			defer sound()
			client := s.client.KV
			if c.members {
				client = repeatingKV{kv, &Store{options: Options{Cluster: &Cluster{}}}}
			}
			resp, err := c.txn(client.Txn(t.Context())).Commit()
			if !errors.Is(err, c.err) || c.err == nil && err != nil {
				t.Fatalf("error %v, want %v", err, c.err)
			}
			if kv.writes.Load() != c.attempts {
				t.Errorf("sent %d times, want %d", kv.writes.Load(), c.attempts)
			}
			if c.err == nil && resp.Succeeded == c.refused {
				t.Errorf("succeeded: %t, want %t", resp.Succeeded, !c.refused)
			}
		})
	}
}
