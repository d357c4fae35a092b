package store

import (
	"context"
	"fmt"
	"slices"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// write stores the Spec parts of keys, many in a transaction.
func write(t testing.TB, s *Store, keys []api.Key) {
	t.Helper()
	for batch := range slices.Chunk(keys, 100) {
		ops := make([]clientv3.Op, len(batch))
		for i, key := range batch {
			ops[i] = clientv3.OpPut(etcdKey(key, Spec), "{}")
		}
		if _, err := s.client.Txn(t.Context()).Then(ops...).Commit(); err != nil {
			t.Fatal(err)
		}
	}
}

// For any names and page sizes, a list contains every object exactly once and in order, and a page has a continuation
// only if there is another one.
func TestPagesHaveEveryObjectOnce(t *testing.T) {
	s := open(t)
	round := 0
	rapid.Check(t, func(r *rapid.T) {
		round++
		kind := api.Kind(fmt.Sprintf("thing%d", round))
		names := rapid.SliceOfNDistinct(rapid.StringMatching(`[ab][a-b0-1-]{0,6}|p-00[0-9]{1,4}`), 0, 150, rapid.ID).Draw(r, "names")
		spaces := rapid.SliceOfN(rapid.SampledFrom([]string{"", "a", "ab", "b"}), len(names), len(names)).Draw(r, "namespaces")
		keys := make([]api.Key, len(names))
		for i, name := range names {
			keys[i] = api.Key{Kind: kind, Namespace: spaces[i], Name: name}
		}
		write(t, s, append(slices.Clone(keys), api.Key{Kind: kind + "s", Name: "other"}))
		namespace := rapid.SampledFrom([]string{"", "a", "b"}).Draw(r, "namespace")
		limit := rapid.IntRange(1, 20).Draw(r, "limit")
		var want, got []string
		for _, key := range keys {
			if namespace == "" || key.Namespace == namespace {
				want = append(want, etcdKey(key, Spec))
			}
		}
		slices.Sort(want)
		after, at := "", int64(0)
		for {
			specs, _, next, revision, err := s.Page(t.Context(), kind, namespace, after, limit, at)
			if err != nil {
				t.Fatal(err)
			}
			for _, spec := range specs {
				got = append(got, etcdKey(spec.Key, Spec))
			}
			if next == "" {
				break
			}
			if len(specs) != limit {
				t.Fatalf("page of %d objects with limit %d, but it is not the last one", len(specs), limit)
			}
			after, at = next, revision
		}
		if !slices.Equal(got, want) {
			t.Fatalf("pages of %d: got %v, want %v", limit, got, want)
		}
	})
}

// counting adds up the keys that etcd counts for its responses.
type counting struct {
	clientv3.KV
	counted, asked atomic.Int64
}

func (c *counting) Get(ctx context.Context, key string, options ...clientv3.OpOption) (*clientv3.GetResponse, error) {
	resp, err := c.KV.Get(ctx, key, options...)
	if err == nil {
		c.counted.Add(resp.Count)
		c.asked.Add(1)
	}
	return resp, err
}

// The cost of loading and paging grows with the number of objects, not with its square. If each page were read to the
// end of the range, 60,000 objects would cost 210,000 in pages of 10,000, and 18 million in pages of 100.
func TestReadingCountsEveryKeyAFewTimes(t *testing.T) {
	s := open(t)
	const n = 60_000
	keys := make([]api.Key, n)
	for i := range keys {
		keys[i] = api.Key{Kind: "placement", Namespace: fmt.Sprintf("team-%d", i%3), Name: fmt.Sprintf("web-%06d", i)}
	}
	write(t, s, keys)
	kv, _ := interpose(t, s, func(kv clientv3.KV) *counting { return &counting{KV: kv} })
	loaded := 0
	if _, err := s.Load(t.Context(), 0, func(Record) error { loaded++; return nil }); err != nil || loaded != n {
		t.Fatal(loaded, err)
	}
	t.Logf("load: %d keys counted in %d requests", kv.counted.Load(), kv.asked.Load())
	if kv.counted.Load() > 5*n || kv.asked.Load() > 500 {
		t.Errorf("loading %d objects counted %d keys in %d requests", n, kv.counted.Load(), kv.asked.Load())
	}
	kv.counted.Store(0)
	kv.asked.Store(0)
	listed := 0
	for after, at := "", int64(0); ; {
		specs, _, next, revision, err := s.Page(t.Context(), "placement", "", after, 100, at)
		if err != nil {
			t.Fatal(err)
		}
		listed += len(specs)
		if next == "" {
			break
		}
		after, at = next, revision
	}
	t.Logf("list: %d keys counted in %d requests", kv.counted.Load(), kv.asked.Load())
	if listed != n || kv.counted.Load() > 20*n || kv.asked.Load() > 20*n/100 {
		t.Errorf("listing %d of %d objects counted %d keys in %d requests", listed, n, kv.counted.Load(), kv.asked.Load())
	}
}
