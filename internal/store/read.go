package store

import (
	"context"
	"fmt"
	"strings"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// loadPage is how many records Load reads at a time.
const loadPage = 10_000

// Read returns both parts of an object, linearizably and at the same revision. A part that does not
// exist is nil.
func (s *Store) Read(ctx context.Context, key api.Key) (spec, status *Record, err error) {
	if err := checkKey(key); err != nil {
		return nil, nil, err
	}
	resp, err := s.getAll(ctx, clientv3.OpGet(etcdKey(key, Spec)), clientv3.OpGet(etcdKey(key, Status)))
	if err != nil {
		return nil, nil, fmt.Errorf("read %s: %w", key, err)
	}
	parts := [2]*Record{}
	for i, r := range resp.Responses {
		if kvs := r.GetResponseRange().GetKvs(); len(kvs) == 1 {
			record, err := toRecord(kvs[0])
			if err != nil {
				return nil, nil, err
			}
			parts[i] = &record
		}
	}
	return parts[0], parts[1], nil
}

// Load calls fn with every record at one revision, all Spec parts before any Status part, and
// returns that revision: the newest if it is 0. Watch from the next revision to continue. It returns
// ErrCompacted for a revision that the store no longer has.
func (s *Store) Load(ctx context.Context, revision int64, fn func(Record) error) (int64, error) {
	rest := newSweep(specPrefix, systemPrefix, revision)
	for !rest.done() {
		kvs, err := rest.next(ctx, s, loadPage)
		if err != nil {
			return 0, fmt.Errorf("load the objects: %w", err)
		}
		for _, kv := range kvs {
			record, err := toRecord(kv)
			if err != nil {
				return 0, err
			}
			if err := fn(record); err != nil {
				return 0, err
			}
		}
	}
	return rest.revision, nil
}

// rangeTimeout limits one read of a range. A member that is alone reads from its own
// memory, so whoever waits for it waits for nothing but the machine: with millions of
// records on a busy one, for longer than a request may take.
func (s *Store) rangeTimeout() time.Duration {
	if s.options.alone() {
		return max(s.options.RequestTimeout, time.Minute)
	}
	return s.options.RequestTimeout
}

func (s *Store) getRange(ctx context.Context, from, to string, limit int, revision int64) (*clientv3.GetResponse, error) {
	return s.get(ctx, s.rangeTimeout(), from, clientv3.WithRange(to), clientv3.WithLimit(int64(limit)), clientv3.WithRev(revision))
}

// Page returns up to limit objects of a kind in one namespace, or ("") in all, in etcd's key order:
// the Spec parts, and the existing Status parts. after is "" for the first page, then the next
// value of the previous page; an empty next ends the list. at is 0 for the first page, then the
// revision that it returned: all pages show the objects at that revision. ErrCompacted says that
// this revision is gone and the list must start over. limit 0 means no limit.
func (s *Store) Page(ctx context.Context, kind api.Kind, namespace, after string, limit int, at int64) (specs []Record, statuses map[api.Key]Record, next string, revision int64, err error) {
	path := string(kind) + "/"
	if namespace != "" {
		path += namespace + "/"
	}
	specRoot := specPrefix + path
	rest := newSweep(specRoot, clientv3.GetPrefixRangeEnd(specRoot), at)
	if after != "" {
		last := specPrefix + string(kind) + "/" + after
		if !strings.HasPrefix(last, specRoot) {
			return nil, nil, "", 0, fmt.Errorf("%w: %q does not continue a list of this kind and namespace", ErrInvalid, after)
		}
		rest = resumeSweep(specRoot, last, at)
	}
	specs = []Record{}
	for !rest.done() && (limit == 0 || len(specs) < limit) {
		kvs, err := rest.next(ctx, s, max(limit-len(specs), 0))
		if err != nil {
			return nil, nil, "", 0, fmt.Errorf("list objects of kind %s: %w", kind, err)
		}
		for _, kv := range kvs {
			record, err := toRecord(kv)
			if err != nil {
				return nil, nil, "", 0, err
			}
			specs = append(specs, record)
		}
	}
	revision = rest.revision
	statuses = make(map[api.Key]Record, len(specs))
	if len(specs) == 0 {
		return specs, statuses, "", revision, nil
	}
	first, last := specs[0].Key, specs[len(specs)-1].Key
	if err := rest.skipEmpty(ctx, s); err != nil {
		return nil, nil, "", 0, fmt.Errorf("list objects of kind %s: %w", kind, err)
	}
	if !rest.done() {
		next = PageAfter(last)
	}
	resp, err := s.getRange(ctx, etcdKey(first, Status), etcdKey(last, Status)+"\x00", 0, revision)
	if err != nil {
		return nil, nil, "", 0, fmt.Errorf("list the statuses of kind %s: %w", kind, err)
	}
	for _, kv := range resp.Kvs {
		record, err := toRecord(kv)
		if err != nil {
			return nil, nil, "", 0, err
		}
		statuses[record.Key] = record
	}
	return specs, statuses, next, revision, nil
}
