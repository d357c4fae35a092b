package store

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
)

// runBatcher runs a batcher until the test ends.
func runBatcher(t testing.TB, s *Store) *Batcher {
	b := NewBatcher(s)
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("run: %v", err)
		}
	})
	return b
}

func TestBatcherAnswersEachWriter(t *testing.T) {
	s := open(t)
	b := runBatcher(t, s)
	const n = 300
	revisions := fill(t, s, n)
	for i := range n {
		if i%10 == 0 {
			put(t, s, placement(i), "newer")
		}
	}
	var wg sync.WaitGroup
	for i := range n {
		wg.Go(func() {
			ctx := timeout(t)
			revision, err := b.Submit(ctx, StatusWrite{Key: placement(i), Value: []byte(fmt.Sprint(i)), SpecRevision: revisions[i]})
			if i%10 == 0 {
				var conflict *ConflictError
				if !errors.As(err, &conflict) || len(conflict.Keys) != 1 || conflict.Keys[0] != placement(i) {
					t.Errorf("placement %d, which has changed: error %v, want a conflict", i, err)
				}
				return
			}
			if err != nil {
				t.Error(err)
				return
			}
			_, status, err := s.Read(ctx, placement(i))
			if err != nil || status.ModRevision != revision || string(status.Value) != fmt.Sprint(i) {
				t.Errorf("placement %d: got %v, %v, want revision %d", i, status, err, revision)
			}
		})
	}
	wg.Wait()
}

func TestBatcherKeepsTheOrderOfOneObject(t *testing.T) {
	s := open(t)
	revisions := fill(t, s, 1)
	b := NewBatcher(s)
	var last int64
	answers := make(chan int64, 20)
	var wg sync.WaitGroup
	for i := range cap(answers) {
		sub := submission{StatusWrite{Key: placement(0), Value: []byte(fmt.Sprint(i)), SpecRevision: revisions[0]}, make(chan outcome, 1)}
		b.queue <- sub
		wg.Go(func() {
			o := <-sub.done
			answers <- o.revision
			if o.err != nil || o.conflict != nil {
				t.Errorf("write %d: unexpected outcome %+v", i, o)
			}
		})
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- b.Run(ctx) }()
	wg.Wait()
	cancel()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	close(answers)
	seen := map[int64]bool{}
	for revision := range answers {
		last = max(last, revision)
		seen[revision] = true
	}
	_, status, err := s.Read(timeout(t), placement(0))
	if err != nil || string(status.Value) != "19" || status.ModRevision != last || len(seen) != 20 {
		t.Fatalf("status %v, %v, revisions %v", status, err, seen)
	}
}

func TestBatcherThatStoppedRefuses(t *testing.T) {
	s := open(t)
	b := NewBatcher(s)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if err := b.Run(ctx); err != nil {
		t.Fatal(err)
	}
	_, err := b.Submit(t.Context(), StatusWrite{Key: placement(1), Value: []byte("v"), SpecRevision: 1})
	if !errors.Is(err, ErrUnavailable) {
		t.Fatalf("error %v, want ErrUnavailable", err)
	}
}
