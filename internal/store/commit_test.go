package store

import (
	"bytes"
	"context"
	"errors"
	"strconv"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestCompareAndSet(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	there, absent := placement(1), placement(2)
	r := put(t, s, there, "old")
	cases := []struct {
		name    string
		write   Write
		want    bool
		actual  int64
		message string
	}{
		{"create a missing object", Write{Key: placement(3), Value: []byte("v"), Expect: 0}, true, 0, ""},
		{"create an existing object", Write{Key: there, Value: []byte("v"), Expect: 0}, false, r, `conflict: placement "shop/p-00001" exists already, at revision ` + strconv.FormatInt(r, 10)},
		{"replace at another revision", Write{Key: there, Value: []byte("v"), Expect: r - 1}, false, r, `conflict: placement "shop/p-00001" is at revision ` + strconv.FormatInt(r, 10) + "; expected " + strconv.FormatInt(r-1, 10)},
		{"replace a missing object", Write{Key: absent, Value: []byte("v"), Expect: 7}, false, 0, `conflict: placement "shop/p-00002" does not exist; expected revision 7`},
		{"delete at another revision", Write{Key: there, Expect: r + 1}, false, r, `conflict: placement "shop/p-00001" is at revision ` + strconv.FormatInt(r, 10) + "; expected " + strconv.FormatInt(r+1, 10)},
		{"replace at its revision", Write{Key: there, Value: []byte("new"), Expect: r}, true, 0, ""},
		{"replace at any revision", Write{Key: there, Value: []byte("newer"), Expect: Any}, true, 0, ""},
		{"delete at any revision", Write{Key: there, Expect: Any}, true, 0, ""},
		{"delete a deleted object", Write{Key: there, Expect: Any}, true, 0, ""},
		{"create after the delete", Write{Key: there, Value: []byte("again"), Expect: 0}, true, 0, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			revision, err := s.Commit(ctx, c.write)
			if c.want {
				if err != nil || revision == 0 {
					t.Fatalf("revision %d, error %v", revision, err)
				}
				return
			}
			var conflict *ConflictError
			if !errors.As(err, &conflict) || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Actual != c.actual || conflict.Keys[0] != c.write.Key {
				t.Fatalf("unexpected error %v", err)
			}
			if err.Error() != c.message {
				t.Fatalf("message %q, want %q", err, c.message)
			}
		})
	}
}

func TestCommitIsAllOrNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	put(t, s, placement(1), "old")
	_, err := s.Commit(ctx,
		Write{Key: placement(2), Value: []byte("v"), Expect: 0},
		Write{Key: placement(1), Value: []byte("v"), Expect: 0},
		Write{Key: placement(3), Value: []byte("v"), Expect: 5})
	var conflict *ConflictError
	if !errors.As(err, &conflict) || len(conflict.Keys) != 2 || conflict.Keys[0] != placement(1) || conflict.Keys[1] != placement(3) {
		t.Fatalf("error %v, want two conflicts", err)
	}
	if spec, _, err := s.Read(ctx, placement(2)); err != nil || spec != nil {
		t.Fatalf("the write without a conflict was made: %v, %v", spec, err)
	}
}

func TestCommitRefusesWhatItCannotHold(t *testing.T) {
	s := open(t)
	many := make([]Write, maxTxnOps+1)
	for i := range many {
		many[i] = Write{Key: placement(i), Value: []byte("v"), Expect: Any}
	}
	cases := map[string][]Write{
		"nothing":           nil,
		"no name":           {{Key: api.Key{Kind: api.KindCluster}, Value: []byte("v")}},
		"no kind":           {{Key: api.Key{Name: "a"}, Value: []byte("v")}},
		"slash":             {{Key: api.Key{Kind: api.KindCluster, Name: "a/b"}, Value: []byte("v")}},
		"reserved":          {{Key: api.Key{Kind: api.KindMetric, Namespace: "-", Name: "a"}, Value: []byte("v")}},
		"empty value":       {{Key: placement(1), Value: []byte{}}},
		"twice":             {{Key: placement(1), Value: []byte("v")}, {Key: placement(1), Value: []byte("w")}},
		"too many":          many,
		"larger than a txn": {{Key: placement(1), Value: bytes.Repeat([]byte("v"), 2<<20), Expect: Any}},
	}
	for name, writes := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Commit(timeout(t), writes...); !errors.Is(err, ErrInvalid) {
				t.Fatalf("error %v, want ErrInvalid", err)
			}
		})
	}
}

func TestConcurrentWritersLoseNothing(t *testing.T) {
	t.Parallel()
	s := open(t)
	const writers, rounds = 16, 20
	put(t, s, placement(0), "0")
	var wg sync.WaitGroup
	for range writers {
		wg.Go(func() {
			ctx := timeout(t)
			for done := 0; done < rounds; {
				spec, _, err := s.Read(ctx, placement(0))
				if err != nil {
					t.Error(err)
					return
				}
				n, _ := strconv.Atoi(string(spec.Value))
				_, err = s.Commit(ctx, Write{Key: placement(0), Value: []byte(strconv.Itoa(n + 1)), Expect: spec.ModRevision})
				var conflict *ConflictError
				switch {
				case err == nil:
					done++
				case !errors.As(err, &conflict):
					t.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	spec, _, err := s.Read(timeout(t), placement(0))
	if err != nil || string(spec.Value) != strconv.Itoa(writers*rounds) {
		t.Fatalf("counter %s, %v, want %d", spec.Value, err, writers*rounds)
	}
}

func TestClosedStoreRefuses(t *testing.T) {
	s := open(t)
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := s.Commit(t.Context(), Write{Key: placement(1), Value: []byte("v"), Expect: Any})
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
}

func TestEndedContextWritesNothing(t *testing.T) {
	s := open(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if _, err := s.Commit(ctx, Write{Key: placement(1), Value: []byte("v"), Expect: Any}); err == nil || errors.Is(err, ErrUncertain) {
		t.Fatalf("error %v, want a failure that is not uncertain", err)
	}
	if spec, _, err := s.Read(timeout(t), placement(1)); err != nil || spec != nil {
		t.Fatalf("read %v, %v", spec, err)
	}
}

func score(cluster, name string) api.Key {
	return api.Key{Kind: api.KindPlacementScore, Namespace: cluster, Name: name}
}

func TestDeletingAClusterDeletesWhatBelongsToIt(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	cluster := api.Key{Kind: api.KindCluster, Name: "c1"}
	put(t, s, cluster, "{}")
	var gone []api.Key
	for i := range 300 { // more operations than a transaction allows
		gone = append(gone, score("c1", "s"+strconv.Itoa(i)))
		put(t, s, gone[i], "{}")
	}
	neighbours := []api.Key{score("c10", "s"), score("c", "s"), {Kind: api.KindPlacement, Namespace: "c1", Name: "p"}}
	for _, key := range neighbours {
		put(t, s, key, "{}")
	}
	watched := s.Watch(ctx, mustRevision(t, s)+1)
	revision, err := s.Commit(ctx, Write{Key: cluster, Expect: Any})
	if err != nil {
		t.Fatal(err)
	}
	deleted := map[api.Key]bool{}
	for len(deleted) <= len(gone) {
		batch, ok := <-watched
		if !ok || batch.Err != nil {
			t.Fatalf("the watch ended: %v", batch.Err)
		}
		for _, record := range batch.Records {
			if record.Value != nil || record.ModRevision != revision {
				t.Fatalf("unexpected record %+v", record)
			}
			deleted[record.Key] = true
		}
	}
	for _, key := range append(gone, cluster) {
		if !deleted[key] {
			t.Errorf("%s still exists", key)
		}
	}
	for _, key := range neighbours {
		if spec, _, err := s.Read(ctx, key); err != nil || spec == nil {
			t.Errorf("%s was deleted, too (%v)", key, err)
		}
	}
}

func TestACheckGuardsTheOtherWrites(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	cluster := api.Key{Kind: api.KindCluster, Name: "c1"}
	r := put(t, s, cluster, "{}")
	write := Write{Key: score("c1", "s"), Value: []byte("{}"), Expect: Any}
	for name, check := range map[string]Write{
		"another revision": {Key: cluster, Expect: r - 1, CheckOnly: true},
		"absence":          {Key: cluster, Expect: 0, CheckOnly: true},
	} {
		_, err := s.Commit(ctx, write, check)
		var conflict *ConflictError
		if !errors.As(err, &conflict) || len(conflict.Keys) != 1 || conflict.Keys[0] != cluster {
			t.Errorf("%s: %v", name, err)
		}
	}
	if spec, _, err := s.Read(ctx, write.Key); err != nil || spec != nil {
		t.Errorf("the write was made in spite of the conflict (%v)", err)
	}
	if _, err := s.Commit(ctx, write, Write{Key: cluster, Expect: r, CheckOnly: true}); err != nil {
		t.Error(err)
	}
	if spec, _, err := s.Read(ctx, cluster); err != nil || spec == nil || spec.ModRevision != r {
		t.Errorf("the check wrote to the cluster: %+v (%v)", spec, err)
	}
	for name, wrong := range map[string]Write{
		"any revision": {Key: cluster, Expect: Any, CheckOnly: true},
		"with a value": {Key: cluster, Expect: r, Value: []byte("{}"), CheckOnly: true},
	} {
		if _, err := s.Commit(ctx, write, wrong); !errors.Is(err, ErrInvalid) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func mustRevision(t *testing.T, s *Store) int64 {
	t.Helper()
	revision, err := s.Revision(timeout(t))
	if err != nil {
		t.Fatal(err)
	}
	return revision
}
