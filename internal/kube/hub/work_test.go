package hub

import (
	"context"
	"errors"
	"maps"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/faketime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// TestWork makes keys due while they are being worked on, and while that fails.
func TestWork(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var mu sync.Mutex
		done, failed, refuse := map[string]int{}, 0, true
		w := NewWork(nil, func(key string) string { return key }, func(_ context.Context, key string) error {
			mu.Lock()
			defer mu.Unlock()
			if key == "bad" && refuse {
				return errors.New("refused")
			}
			done[key]++
			return nil
		}, func(string, error) { mu.Lock(); defer mu.Unlock(); failed++ })
		ctx, cancel := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			if err := w.Run(ctx); err != nil {
				t.Error(err)
			}
		}()
		counts := func(when string, want map[string]int, waiting, failing int) {
			t.Helper()
			synctest.Wait()
			mu.Lock()
			defer mu.Unlock()
			if gotWaiting, gotFailing := w.Count(); !maps.Equal(done, want) || gotWaiting != waiting || gotFailing != failing {
				t.Errorf("%s: done %v, %d wait, %d fail; want %v, %d, %d", when, done, gotWaiting, gotFailing, want, waiting, failing)
			}
		}
		w.Due("a")
		w.Due("bad")
		counts("at once", map[string]int{"a": 1}, 2, 1)
		for range 100 {
			w.Due("a")
		}
		counts("not again within a second", map[string]int{"a": 1}, 2, 1)
		faketime.Sleep(Apart)
		counts("all of it together", map[string]int{"a": 2}, 2, 1)
		faketime.Sleep(time.Minute)
		counts("nothing more is due", map[string]int{"a": 2}, 1, 1)
		mu.Lock()
		if refuse = false; failed != 1 {
			t.Errorf("the failures were said %d times, want once", failed)
		}
		mu.Unlock()
		faketime.Sleep(time.Minute)
		counts("it was tried again", map[string]int{"a": 2, "bad": 1}, 0, 0)
		cancel()
		<-ended
	})
}
