package store

import (
	"context"
	"fmt"
	"slices"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// Any is the Expect of a write without precondition.
const Any = -1

// maxTxnOps is the default limit of etcd servers for one transaction: for each of comparisons,
// writes and reads.
const maxTxnOps = 128

// Write is a change of one part of an object.
type Write struct {
	Key   api.Key
	Part  Part
	Value []byte // nil deletes the part
	// Expect is the ModRevision that the part must have: 0 = it must not exist, Any = no
	// precondition.
	Expect int64
	// CheckOnly only compares: the other writes happen only if this part is at Expect.
	CheckOnly bool
}

// partKey identifies a stored value.
type partKey struct {
	key  api.Key
	part Part
}

// Commit makes all writes in one transaction, or none, and returns its revision. It returns a
// *ConflictError with every failed comparison. Deleting a Spec part also deletes its Status part
// and, for a cluster, all objects that belong to the cluster, so that a later object of the same
// name starts afresh.
func (s *Store) Commit(ctx context.Context, writes ...Write) (int64, error) {
	within, span := tracing.Start(ctx, "store commit")
	revision, err := s.commitAll(within, writes)
	if span.Recording() && err == nil {
		span.Object(string(writes[0].Key.Kind), writes[0].Key.Namespace, writes[0].Key.Name)
		ended(span, len(writes), revision)
		s.options.Tracer.Caused(ctx, revision)
	}
	span.End(err)
	return revision, err
}

// ended describes a transaction that was made.
func ended(span tracing.Span, objects int, revision int64) {
	span.Text("db.system.name", "etcd")
	span.Number(tracing.ObjectsKey, int64(objects))
	span.Number(tracing.RevisionKey, revision)
}

func (s *Store) commitAll(ctx context.Context, writes []Write) (int64, error) {
	plan, err := planCommit(writes)
	if err != nil {
		return 0, err
	}
	if plan.grows && s.overQuota.Load() {
		return 0, fmt.Errorf("%w: the objects use more than %d %% of its quota of %d MiB; delete some", ErrFull, quotaStopPercent, s.options.QuotaBytes/mebibyte)
	}
	resp, err := s.commit(ctx, plan.bytes, plan.grows, func(t clientv3.Txn) clientv3.Txn {
		return t.If(plan.ifs...).Then(plan.thens...).Else(plan.elses...)
	})
	if err != nil {
		return 0, fmt.Errorf("commit %s: %w", writes[0].Key, err)
	}
	if resp.Succeeded {
		return resp.Header.Revision, nil
	}
	var conflicts []Conflict
	for i, guarded := range plan.guarded {
		if actual := found(resp, i); actual != guarded.Expect {
			conflicts = append(conflicts, Conflict{guarded.Key, guarded.Part, guarded.Expect, actual})
		}
	}
	return 0, newConflictError(conflicts)
}

// commitPlan is a commit as etcd operations.
type commitPlan struct {
	ifs     []clientv3.Cmp
	thens   []clientv3.Op
	elses   []clientv3.Op // read the revision of each key in guarded
	guarded []Write
	bytes   int
	grows   bool
}

func planCommit(writes []Write) (*commitPlan, error) {
	if !slices.ContainsFunc(writes, func(w Write) bool { return !w.CheckOnly }) {
		return nil, fmt.Errorf("%w: there is nothing to write", ErrInvalid)
	}
	plan := &commitPlan{}
	seen := make(map[partKey]bool, len(writes))
	for _, w := range writes {
		if err := checkKey(w.Key); err != nil {
			return nil, fmt.Errorf("%w: %w", ErrInvalid, err)
		}
		if w.CheckOnly && (w.Value != nil || w.Expect < 0) {
			return nil, fmt.Errorf("%w: the check of the %s part of %s needs a revision and no value", ErrInvalid, w.Part, w.Key)
		}
		if w.Value != nil && len(w.Value) == 0 {
			return nil, fmt.Errorf("%w: the %s part of %s is empty; nil deletes it", ErrInvalid, w.Part, w.Key)
		}
		if seen[partKey{w.Key, w.Part}] {
			return nil, fmt.Errorf("%w: the %s part of %s is written twice", ErrInvalid, w.Part, w.Key)
		}
		seen[partKey{w.Key, w.Part}] = true
	}
	for _, w := range writes {
		if w.CheckOnly {
			delete(seen, partKey{w.Key, w.Part}) // a status that is only checked is deleted with its spec
		}
	}
	for _, w := range writes {
		plan.add(w)
		if w.Part != Spec || w.Value != nil || w.CheckOnly {
			continue
		}
		if status := (partKey{w.Key, Status}); !seen[status] {
			seen[status] = true
			plan.add(Write{Key: w.Key, Part: Status, Expect: Any})
		}
		if w.Key.Kind == api.KindCluster {
			plan.deleteBelongings(w.Key.Name)
		}
	}
	if n := max(len(plan.ifs), len(plan.thens)); n > maxTxnOps {
		return nil, fmt.Errorf("%w: %d changes at once, at most %d are possible", ErrInvalid, n, maxTxnOps)
	}
	return plan, nil
}

func (p *commitPlan) add(w Write) {
	key := etcdKey(w.Key, w.Part)
	if w.Expect >= 0 {
		p.ifs = append(p.ifs, clientv3.Compare(clientv3.ModRevision(key), "=", w.Expect))
		p.elses = append(p.elses, clientv3.OpGet(key, clientv3.WithKeysOnly()))
		p.guarded = append(p.guarded, w)
	}
	if w.CheckOnly {
		return
	}
	if w.Value == nil {
		p.thens = append(p.thens, clientv3.OpDelete(key))
		return
	}
	p.thens = append(p.thens, putValue(key, w.Value))
	p.bytes += len(key) + len(w.Value)
	p.grows = true
}

// deleteBelongings deletes all objects that belong to a cluster: a range is one operation
// regardless of their number, and leaves no gap in which another object could be created.
func (p *commitPlan) deleteBelongings(cluster string) {
	for _, info := range api.Kinds {
		if info.Scope != api.OfCluster {
			continue
		}
		for _, part := range []Part{Spec, Status} {
			root := partPrefix(part) + string(info.Kind) + "/" + cluster + "/"
			p.thens = append(p.thens, clientv3.OpDelete(root, clientv3.WithPrefix()))
		}
	}
}
