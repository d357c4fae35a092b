package store

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestPagesShowOneRevisionWhileWritesGoOn(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	const n = 95
	revisions := fill(t, s, n)
	if _, err := s.Derive(ctx, statuses(revisions[:50], "first")); err != nil {
		t.Fatal(err)
	}
	stop, cancel := context.WithCancel(ctx)
	var wg sync.WaitGroup
	wg.Go(func() {
		for i := 0; stop.Err() == nil; i++ {
			key := placement(i % n)
			if i%3 == 0 {
				_, _ = s.Commit(stop, Write{Key: key, Expect: Any})
			} else {
				_, _ = s.Commit(stop, Write{Key: key, Value: []byte("later"), Expect: Any}, Write{Key: key, Part: Status, Value: []byte("later"), Expect: Any},
					Write{Key: placement(n + i), Value: []byte("later"), Expect: Any})
			}
		}
	})
	defer wg.Wait()
	defer cancel()
	// The first page fixes the revision. All pages together must equal one read at that revision.
	var specs []Record
	all := map[api.Key]Record{}
	first, next, at := true, "", int64(0)
	for first || next != "" {
		page, statuses, more, revision, err := s.Page(ctx, api.KindPlacement, "", next, 10, at)
		if err != nil {
			t.Fatal(err)
		}
		if !first && revision != at {
			t.Fatalf("a page of revision %d, but the first one of %d", revision, at)
		}
		specs, next, at, first = append(specs, page...), more, revision, false
		for key, status := range statuses {
			all[key] = status
		}
	}
	whole, wholeStatuses, next, revision, err := s.Page(ctx, api.KindPlacement, "", "", 0, at)
	if err != nil || next != "" || revision != at {
		t.Fatalf("single page: %q, %d, %v", next, revision, err)
	}
	sameRecord := func(a, b Record) bool {
		return a.Key == b.Key && a.ModRevision == b.ModRevision && string(a.Value) == string(b.Value)
	}
	if !slices.EqualFunc(specs, whole, sameRecord) {
		t.Fatalf("%d objects in pages, but %d in a single page", len(specs), len(whole))
	}
	if len(all) != len(wholeStatuses) {
		t.Fatalf("%d statuses in pages, but %d in a single page", len(all), len(wholeStatuses))
	}
	if len(specs) < n/2 {
		t.Fatalf("only %d objects", len(specs))
	}
}

func TestPageOfOneNamespace(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	for _, namespace := range []string{"", "a", "a-b", "b"} {
		for i := range 3 {
			key := api.Key{Kind: api.KindMetric, Namespace: namespace, Name: fmt.Sprintf("m%d", i)}
			r := put(t, s, key, "spec")
			if _, err := s.Derive(ctx, []StatusWrite{{Key: key, Value: []byte("of " + namespace), SpecRevision: r}}); err != nil {
				t.Fatal(err)
			}
		}
	}
	put(t, s, api.Key{Kind: api.KindMetricsProvider, Namespace: "a", Name: "m0"}, "spec")
	for namespace, want := range map[string]int{"": 12, "a": 3, "a-b": 3, "none": 0} {
		t.Run("namespace "+namespace, func(t *testing.T) {
			var got []Record
			next, at := "", int64(0)
			for {
				specs, statuses, more, revision, err := s.Page(ctx, api.KindMetric, namespace, next, 2, at)
				if err != nil {
					t.Fatal(err)
				}
				for _, spec := range specs {
					if status, ok := statuses[spec.Key]; !ok || string(status.Value) != "of "+spec.Key.Namespace {
						t.Fatalf("the status of %s is %v", spec.Key, status)
					}
				}
				got = append(got, specs...)
				if next, at = more, revision; next == "" {
					break
				}
			}
			if len(got) != want {
				t.Fatalf("%d objects, want %d", len(got), want)
			}
			for _, r := range got {
				if r.Key.Kind != api.KindMetric || namespace != "" && r.Key.Namespace != namespace {
					t.Fatalf("unexpected object %s", r.Key)
				}
			}
		})
	}
	if _, _, _, _, err := s.Page(ctx, api.KindMetric, "b", "a/m0", 2, 0); !errors.Is(err, ErrInvalid) {
		t.Fatalf("page token of another namespace: error %v, want ErrInvalid", err)
	}
}

func TestCompactedRevisionIsGone(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	old := put(t, s, placement(1), "1")
	now := put(t, s, placement(1), "2")
	if err := s.Compact(ctx, now); err != nil {
		t.Fatal(err)
	}
	if _, _, _, _, err := s.Page(ctx, api.KindPlacement, "", "", 10, old); !errors.Is(err, ErrCompacted) {
		t.Fatalf("error %v, want ErrCompacted", err)
	}
	if _, _, _, _, err := s.Page(ctx, api.KindPlacement, "", "", 10, now+1000); !errors.Is(err, ErrCompacted) {
		t.Fatalf("revision of another store: error %v, want ErrCompacted", err)
	}
	if err := s.Compact(ctx, old); err != nil {
		t.Fatalf("second compaction: %v", err)
	}
}

func TestLoadShowsOneRevisionSpecsFirst(t *testing.T) {
	t.Parallel()
	s := open(t)
	ctx := timeout(t)
	const n = loadPage + 500
	revisions := fill(t, s, n)
	if _, err := s.Derive(ctx, statuses(revisions, "status")); err != nil {
		t.Fatal(err)
	}
	specs, derived := 0, 0
	revision, err := s.Load(ctx, 0, func(r Record) error {
		if specs+derived == 10 {
			put(t, s, placement(n-1), "changed while loading")
		}
		switch {
		case r.Part == Status:
			derived++
		case derived > 0:
			return fmt.Errorf("the spec of %s comes after a status", r.Key)
		default:
			specs++
		}
		if string(r.Value) == "changed while loading" {
			return errors.New("the reading is not of one revision")
		}
		return nil
	})
	if err != nil || specs != n || derived != n {
		t.Fatalf("%d specs, %d statuses, %v", specs, derived, err)
	}
	if now, err := s.Revision(ctx); err != nil || now != revision+1 {
		t.Fatalf("loaded revision %d, now %d, %v", revision, now, err)
	}
	stop := errors.New("enough")
	if _, err := s.Load(ctx, 0, func(Record) error { return stop }); !errors.Is(err, stop) {
		t.Fatalf("error %v, want the one of the callback", err)
	}
}

// TestLoadOfThePast loads what the store had, as long as it has it.
func TestLoadOfThePast(t *testing.T) {
	s := open(t)
	ctx := timeout(t)
	load := func(at int64) (values []string, err error) {
		revision, err := s.Load(ctx, at, func(r Record) error {
			values = append(values, string(r.Value))
			return nil
		})
		if err == nil && revision != at {
			t.Errorf("loaded revision %d, want %d", revision, at)
		}
		return values, err
	}
	first := put(t, s, placement(1), "a")
	second := put(t, s, placement(2), "b")
	third := put(t, s, placement(1), "c")
	last := remove(t, s, placement(2))
	for at, want := range map[int64][]string{first: {"a"}, second: {"a", "b"}, third: {"c", "b"}, last: {"c"}} {
		if got, err := load(at); err != nil || !slices.Equal(got, want) {
			t.Errorf("at revision %d: %q, want %q, %v", at, got, want, err)
		}
	}
	if _, err := s.client.Compact(ctx, third); err != nil {
		t.Fatal(err)
	}
	for at, kept := range map[int64]bool{first: false, second: false, third: true, last + 1: false} {
		if _, err := load(at); (err == nil) != kept || !kept && !errors.Is(err, ErrCompacted) {
			t.Errorf("at revision %d: error %v, kept: %t", at, err, kept)
		}
	}
}

func TestKeysSurviveTheLayout(t *testing.T) {
	for _, key := range []api.Key{
		{Kind: api.KindCluster, Name: "c"}, {Kind: api.KindMetric, Name: "-"}, {Kind: "token", Name: "t"},
		{Kind: api.KindPlacement, Namespace: "a-b", Name: "x"},
	} {
		for _, part := range []Part{Spec, Status} {
			got, gotPart, err := parseKey([]byte(etcdKey(key, part)))
			if err != nil || got != key || gotPart != part {
				t.Errorf("%s of %s became %s of %s after a round trip, %v", part, key, gotPart, got, err)
			}
		}
	}
	for _, text := range []string{"", "/v1/spec/", "/v1/spec/a/b", "/v1/spec/a/b/", "/v1/spec/a//c", "/v1/sys/epoch", "/v1/status/a/b/c/d"} {
		if key, part, err := parseKey([]byte(text)); err == nil {
			t.Errorf("parseKey(%q) = %s of %s, want an error", text, part, key)
		}
	}
}

// A busy machine may take longer to find millions of records than a request may take, and
// a server that gave up then could not start.
func TestReadsOfARangeHaveMoreTimeThanARequest(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct {
		options Options
		want    time.Duration
	}{
		"alone":                   {Options{RequestTimeout: 10 * time.Second}, time.Minute},
		"alone, and told to wait": {Options{RequestTimeout: 2 * time.Minute}, 2 * time.Minute},
		"on a cluster":            {Options{RequestTimeout: 10 * time.Second, Endpoints: []string{"http://127.0.0.1:1"}}, 10 * time.Second},
		"a member of a cluster":   {Options{RequestTimeout: 10 * time.Second, Cluster: &Cluster{}}, 10 * time.Second},
	} {
		s := &Store{options: tt.options}
		if got := s.rangeTimeout(); got != tt.want {
			t.Errorf("%s: a read of a range ends after %s, want %s", name, got, tt.want)
		}
	}
}
