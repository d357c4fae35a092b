package recovery

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func countOf(t *testing.T, c prometheus.Collector) float64 {
	t.Helper()
	metrics := make(chan prometheus.Metric, 10)
	c.Collect(metrics)
	close(metrics)
	sum := 0.0
	for m := range metrics {
		var out dto.Metric
		if err := m.Write(&out); err != nil {
			t.Fatal(err)
		}
		sum += out.GetCounter().GetValue() + out.GetGauge().GetValue()
	}
	return sum
}

func TestPanicBecomesAnError(t *testing.T) {
	var log bytes.Buffer
	r := New(slog.New(slog.NewTextHandler(&log, nil)))
	err := r.Component("decisions").Do("placement web", func() error { panic("one\x1b[31m\ntwo" + strings.Repeat("é", 500)) })
	p, ok := errors.AsType[*Panic](err)
	if !ok || p.Component != "decisions" || p.Object != "placement web" || !strings.Contains(string(p.Stack), "TestPanicBecomesAnError") {
		t.Fatalf("got %+v", err)
	}
	if text := err.Error(); !strings.HasPrefix(text, "a fault of the server: one [31m two") || len([]rune(text)) > 250 {
		t.Errorf("unexpected error %q", text)
	}
	if !strings.Contains(log.String(), "placement web") || !strings.Contains(log.String(), "TestPanicBecomesAnError") {
		t.Errorf("unexpected log %q", log.String())
	}
	if n := countOf(t, r.panics); n != 1 {
		t.Errorf("%v panics counted, want 1", n)
	}
	want := errors.New("no panic")
	if err := r.Component("x").Do("", func() error { return want }); err != want { //nolint:errorlint // the same error
		t.Errorf("error %v, want it unchanged", err)
	}
	if n := countOf(t, r.panics); n != 1 {
		t.Errorf("%v panics counted after an error, want 1", n)
	}
}

// A panic is contained even if nothing records it.
func TestPanicWithoutARecorder(t *testing.T) {
	var none *Recorder
	if none.Component("x").Go("y", func() { panic("z") }) || len(none.Down()) > 0 {
		t.Error("Go() returned true after a panic")
	}
	var component *Component
	if component.Go("y", func() { panic("z") }) {
		t.Error("Go() returned true after a panic")
	}
}

// A component that panics is started again, ever more slowly, and says that it is
// down meanwhile.
func TestAComponentIsStartedAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := New(nil)
		var starts []time.Duration
		began := time.Now()
		want := errors.New("done")
		err := make(chan error, 1)
		go func() {
			err <- r.Component("signals").Supervise(t.Context(), func(context.Context) error {
				starts = append(starts, time.Since(began))
				if len(starts) == 4 {
					return want
				}
				panic("again")
			})
		}()
		faketime.Sleep(pauses.First / 2)
		synctest.Wait()
		if down := r.Down(); len(down) != 1 || down[0] != "signals" || countOf(t, r.down) != 1 {
			t.Errorf("unexpected components down: %v", down)
		}
		if got := <-err; !errors.Is(got, want) {
			t.Errorf("error %v, want that of the last attempt", got)
		}
		for i, at := range []time.Duration{0, pauses.First, 3 * pauses.First, 7 * pauses.First} {
			if starts[i] != at {
				t.Errorf("start %d after %s, want after %s", i, starts[i], at)
			}
		}
		if len(r.Down()) != 0 || countOf(t, r.down) != 0 || countOf(t, r.panics) != 3 {
			t.Errorf("down %v, %v panics, want none down and 3 panics", r.Down(), countOf(t, r.panics))
		}
	})
}
