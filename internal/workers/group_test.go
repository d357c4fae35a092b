package workers

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// log records what work does.
type log struct {
	mu    sync.Mutex
	lines []string
}

func (l *log) say(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.lines = append(l.lines, fmt.Sprintf(format, args...))
}

// until returns work that runs until it is stopped, and then takes a second to end.
func (l *log) until(name string) Work {
	return func(ctx context.Context) error {
		l.say("%s begins", name)
		<-ctx.Done()
		faketime.Sleep(time.Second)
		l.say("%s ends", name)
		return nil
	}
}

func (l *log) expect(t *testing.T, want ...string) {
	t.Helper()
	synctest.Wait()
	l.mu.Lock()
	defer l.mu.Unlock()
	if !slices.Equal(l.lines, want) {
		t.Errorf("got %q, want %q", l.lines, want)
	}
	l.lines = nil
}

func newGroup() *Group[string] {
	return New(recovery.New(nil).Component("test"), func(key string) string { return key })
}

func run(g *Group[string]) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan struct{})
	go func() { _ = g.Run(ctx); close(done) }()
	return func() { cancel(); <-done }
}

// Replacing work starts when the previous work has ended, even if that was stopped first. If work is replaced several
// times, only the last replacement starts.
func TestReplaced(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		g, l := newGroup(), &log{}
		g.Start("a", l.until("never"))
		g.Start("a", l.until("first"))
		g.Start("b", l.until("stopped early"))
		g.Stop("b")
		l.expect(t)
		stop := run(g)
		l.expect(t, "first begins")
		g.Start("a", l.until("skipped"))
		g.Start("a", l.until("second"))
		l.expect(t)
		faketime.Sleep(time.Second)
		l.expect(t, "first ends", "second begins")
		g.Stop("a")
		g.Start("a", l.until("third"))
		l.expect(t)
		faketime.Sleep(time.Second)
		l.expect(t, "second ends", "third begins")
		stop()
		l.expect(t, "third ends")
		stop = run(g) // work that was not stopped continues
		l.expect(t, "third begins")
		g.Stop("a")
		stop()
		l.expect(t, "third ends")
		if len(g.tasks) != 0 {
			t.Errorf("tasks left: %v", g.tasks)
		}
	})
}

// A panic is contained in its key and reported, and the work is restarted.
func TestPanic(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		recorder := recovery.New(nil)
		g, l := New(recorder.Component("test"), func(key string) string { return key }), &log{}
		defer run(g)()
		times := 0
		g.Start("bad", func(ctx context.Context) error {
			if times++; times < 3 {
				panic("over it")
			}
			return l.until("third time")(ctx)
		})
		g.Start("good", l.until("good"))
		l.expect(t, "good begins")
		if len(recorder.Faulted("bad")) != 1 || len(recorder.Faulted("good")) != 0 {
			t.Errorf("faults of bad %q, of good %q", recorder.Faulted("bad"), recorder.Faulted("good"))
		}
		faketime.Sleep(time.Minute)
		l.expect(t, "third time begins")
	})
}

// In any sequence of starts and stops, at most one piece of work runs for a key, the last one that was started runs
// unless it was stopped, and nothing is left running.
func TestOneAtATime(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		steps := rapid.SliceOfN(rapid.IntRange(0, 5), 1, 40).Draw(rt, "steps")
		synctest.Test(t, func(t *testing.T) {
			g := newGroup()
			var mu sync.Mutex
			working := map[string]int{}
			wanted := map[string]int{}
			stop := func() {}
			ran := false
			for i, step := range steps {
				key := []string{"a", "b"}[step%2]
				switch step / 2 {
				case 0:
					wanted[key] = i + 1
					g.Start(key, func(ctx context.Context) error {
						mu.Lock()
						if working[key] != 0 {
							t.Errorf("%d and %d tasks for %s at once", working[key], i+1, key)
						}
						working[key] = i + 1
						mu.Unlock()
						<-ctx.Done()
						faketime.Sleep(time.Millisecond)
						mu.Lock()
						defer mu.Unlock()
						delete(working, key)
						return nil
					})
				case 1:
					delete(wanted, key)
					g.Stop(key)
				default:
					if stop(); ran {
						stop, ran = func() {}, false
					} else {
						stop, ran = run(g), true
					}
				}
			}
			if !ran {
				stop = run(g)
			}
			faketime.Sleep(time.Second)
			synctest.Wait()
			mu.Lock()
			if fmt.Sprint(working) != fmt.Sprint(wanted) {
				t.Errorf("working %v, want %v", working, wanted)
			}
			mu.Unlock()
			stop()
			g.Stop("a")
			g.Stop("b")
			if len(g.tasks) != 0 {
				t.Errorf("tasks left: %v", g.tasks)
			}
		})
	})
}

// BenchmarkMemory measures the memory of a key whose work mostly waits.
func BenchmarkMemory(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		ctx, cancel := context.WithCancel(b.Context())
		g := New[int](nil, strconv.Itoa)
		var waiting, running sync.WaitGroup
		waiting.Add(n)
		for key := range n {
			g.Start(key, func(ctx context.Context) error {
				timer := time.NewTimer(time.Hour)
				defer timer.Stop()
				waiting.Done()
				select {
				case <-timer.C:
				case <-ctx.Done():
				}
				return nil
			})
		}
		running.Go(func() { _ = g.Run(ctx) })
		waiting.Wait()
		runtime.GC()
		runtime.ReadMemStats(&after)
		used := (after.HeapAlloc + after.StackInuse) - (before.HeapAlloc + before.StackInuse)
		b.ReportMetric(float64(used)/n, "B/key")
		cancel()
		running.Wait()
	}
}
