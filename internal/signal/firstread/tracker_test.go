package firstread

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var (
	a = api.Key{Kind: api.KindMetric, Name: "a"}
	b = api.Key{Kind: api.KindMetric, Name: "b"}
)

// waiting returns how long Wait takes, up to a minute.
func waiting(t *testing.T, tracker *Tracker, revision int64) (took time.Duration, answer int64) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	began := time.Now()
	answer, _ = tracker.Wait(ctx, revision)
	return time.Since(began), answer
}

func TestWait(t *testing.T) {
	for _, c := range []struct {
		name     string
		revision int64
		setUp    func(*Tracker)
		took     time.Duration
		answer   int64
	}{
		{"nothing pending", 5, func(s *Tracker) { s.Advance(5) }, 0, 5},
		{"change not seen yet", 5, func(s *Tracker) {
			s.Advance(4)
			time.AfterFunc(3*time.Second, func() { s.Advance(9) })
		}, 3 * time.Second, 5},
		{"answered by a write", 5, func(s *Tracker) {
			s.Open(a, 5, 5)
			s.Advance(5)
			time.AfterFunc(3*time.Second, func() { s.Close(a, 5, 7) })
		}, 3 * time.Second, 7},
		{"never answered", 5, func(s *Tracker) {
			s.Open(a, 5, 5)
			s.Advance(5)
		}, time.Minute, 5},
		{"other object, changed before", 6, func(s *Tracker) {
			s.Open(a, 5, 5)
			s.Advance(6)
		}, courtesy, 6},
		{"other object, changed afterwards", 4, func(s *Tracker) {
			s.Open(a, 5, 5)
			s.Advance(6)
		}, 0, 4},
		{"changed again, with an older answer", 5, func(s *Tracker) {
			s.Open(a, 5, 5)
			s.Open(a, 6, 6)
			s.Advance(6)
			s.Close(a, 5, 0)
			time.AfterFunc(3*time.Second, func() { s.Close(a, 6, 8) })
		}, 3 * time.Second, 8},
		{"one of two answered", 5, func(s *Tracker) {
			s.Open(a, 4, 5)
			s.Open(b, 4, 5)
			s.Advance(5)
			s.Close(a, 5, 6)
			time.AfterFunc(2*time.Second, func() { s.Close(b, 5, 0) })
		}, 2 * time.Second, 6},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := New()
				c.setUp(s)
				if took, answer := waiting(t, s, c.revision); took != c.took || answer != c.answer {
					t.Errorf("took %s with revision %d, want %s and %d", took, answer, c.took, c.answer)
				}
			})
		})
	}
}

func TestLatest(t *testing.T) {
	s := New()
	if s.Latest(a) != 0 {
		t.Error("Latest() of a settled object is not 0")
	}
	s.Open(a, 3, 3)
	s.Open(a, 5, 6)
	if s.Latest(a) != 6 {
		t.Errorf("latest is %d, want 6", s.Latest(a))
	}
}
