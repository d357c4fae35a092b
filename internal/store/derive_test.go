package store

import (
	"bytes"
	"errors"
	"slices"
	"strconv"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// fill creates placements 0 to n-1 and returns the revision of each.
func fill(t testing.TB, s *Store, n int) []int64 {
	t.Helper()
	revisions := make([]int64, n)
	for begin := 0; begin < n; begin += maxDeriveWrites {
		var writes []Write
		for i := begin; i < min(n, begin+maxDeriveWrites); i++ {
			writes = append(writes, Write{Key: placement(i), Value: []byte("spec"), Expect: Any})
		}
		revision := commit(t, s, writes...)
		for i := range writes {
			revisions[begin+i] = revision
		}
	}
	return revisions
}

func statuses(revisions []int64, value string) []StatusWrite {
	writes := make([]StatusWrite, len(revisions))
	for i, revision := range revisions {
		writes[i] = StatusWrite{Key: placement(i), Value: []byte(value), SpecRevision: revision}
	}
	return writes
}

func TestChangedObjectsDoNotStopTheOthers(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	revisions := fill(t, s, 350)
	changed, deleted, never := 7, 120, len(revisions)
	put(t, s, placement(changed), "newer")
	remove(t, s, placement(deleted))
	revision, err := s.Derive(ctx, statuses(append(revisions, 99), "status"))
	var conflict *ConflictError
	if !errors.As(err, &conflict) {
		t.Fatalf("error %v, want conflicts", err)
	}
	slices.SortFunc(conflict.Keys, api.Key.Compare)
	if want := []api.Key{placement(changed), placement(deleted), placement(never)}; !slices.Equal(conflict.Keys, want) {
		t.Fatalf("conflicts %v, want %v", conflict.Keys, want)
	}
	highest := int64(0)
	for i := range len(revisions) + 1 {
		_, status, err := s.Read(ctx, placement(i))
		if err != nil {
			t.Fatal(err)
		}
		if written := i != changed && i != deleted && i != never; (status != nil) != written {
			t.Fatalf("placement %d: unexpected status %v", i, status)
		}
		if status != nil {
			highest = max(highest, status.ModRevision)
		}
	}
	if revision != highest {
		t.Fatalf("revision %d, the newest status has %d", revision, highest)
	}
}

func TestLargeStatusesAreSplit(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	revisions := fill(t, s, 40)
	value := string(bytes.Repeat([]byte("v"), 100<<10))
	if _, err := s.Derive(ctx, statuses(revisions, value)); err != nil {
		t.Fatalf("4 MiB of statuses: %v", err)
	}
	written := map[int64]int{}
	_, err := s.Load(ctx, 0, func(r Record) error {
		if r.Part == Status {
			written[r.ModRevision] += len(r.Value)
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	for revision, size := range written {
		if size > maxDeriveBytes {
			t.Errorf("the transaction of revision %d has %d bytes", revision, size)
		}
	}
}

func TestDeriveRefusesWhatItCannotHold(t *testing.T) {
	s := open(t)
	cases := map[string][]StatusWrite{
		"no spec revision": {{Key: placement(1), Value: []byte("v")}},
		"twice":            {{Key: placement(1), Value: []byte("v"), SpecRevision: 1}, {Key: placement(1), Value: []byte("w"), SpecRevision: 2}},
		"no name":          {{Key: api.Key{Kind: api.KindMetric}, Value: []byte("v"), SpecRevision: 1}},
		"empty":            {{Key: placement(1), Value: []byte{}, SpecRevision: 1}},
	}
	for name, writes := range cases {
		t.Run(name, func(t *testing.T) {
			if _, err := s.Derive(t.Context(), writes); !errors.Is(err, ErrInvalid) {
				t.Fatalf("error %v, want ErrInvalid", err)
			}
		})
	}
	if revision, err := s.Derive(t.Context(), nil); revision != 0 || err != nil {
		t.Fatalf("Derive() without writes = %d, %v", revision, err)
	}
}

// A status that is rejected, by the store or before, does not affect the others.
func TestDeriveWritesTheOthers(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	revisions := fill(t, s, 250)
	writes := statuses(revisions, "status")
	const large, unread = 130, 17
	writes[large].Value = make([]byte, 4*mebibyte)
	writes[unread].SpecRevision = 0
	revision, err := s.Derive(ctx, writes)
	var failed *DeriveError
	if !errors.As(err, &failed) || !errors.Is(err, ErrInvalid) || revision == 0 {
		t.Fatalf("revision %d, error %v", revision, err)
	}
	if len(failed.Failed) != 2 || failed.Failed[placement(large)] == nil || failed.Failed[placement(unread)] == nil {
		t.Errorf("failures %v, want placements %d and %d", err, large, unread)
	}
	for i := range writes {
		_, status, err := s.Read(ctx, placement(i))
		if err != nil {
			t.Fatal(err)
		}
		if refused := i == large || i == unread; (status == nil) != refused {
			t.Errorf("placement %d: unexpected status %v", i, status)
		}
	}
}

func TestSecondEpochFencesTheFirst(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	revisions := fill(t, s, 3)
	if _, err := s.Derive(ctx, statuses(revisions, "before")); err != nil {
		t.Fatal(err)
	}
	// What another process that opens the same store does.
	if _, err := s.client.Put(ctx, epochKey, "somebody else"); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if _, err := s.Derive(ctx, statuses(revisions, "after")); !errors.Is(err, ErrFenced) {
			t.Fatalf("error %v, want ErrFenced", err)
		}
	}
	if _, status, err := s.Read(ctx, placement(0)); err != nil || string(status.Value) != "before" {
		t.Fatalf("a fenced write was made: %v, %v", status, err)
	}
	put(t, s, placement(0), "users still write")
}

func TestFenceWinsOverConflicts(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	revisions := fill(t, s, 2)
	put(t, s, placement(0), "newer")
	if _, err := s.client.Put(ctx, epochKey, "somebody else"); err != nil {
		t.Fatal(err)
	}
	_, err := s.Derive(ctx, statuses(revisions, "after"))
	var conflict *ConflictError
	if !errors.Is(err, ErrFenced) || errors.As(err, &conflict) {
		t.Fatalf("error %v, want ErrFenced", err)
	}
}

func TestNewerFormatIsRefused(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	s := open(t, func(o *Options) { o.DataDir = dir })
	if _, err := s.client.Do(t.Context(), clientv3.OpPut(formatKey, strconv.Itoa(formatVersion+1))); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	_, err := Open(t.Context(), Options{DataDir: dir, NoFsync: true, MinFreeBytes: 1, RequestTimeout: storetest.Patience, Patience: storetest.Patience})
	if err == nil || err.Error() != "store: the data has format 4, this program knows formats up to 3: use a newer program" {
		t.Fatalf("unexpected error %v", err)
	}
}
