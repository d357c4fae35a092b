package main

import (
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/logtest"
)

// A slow start logs what it is doing, again and again. A start that has ended, or is fast, logs nothing.
func TestLongStartSaysWhatItIsDoing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var out logtest.Buffer
		s := beginStarting(slog.New(slog.NewTextHandler(&out, nil)))
		s.doing("opening the store")
		faketime.Sleep(quietStart - time.Second)
		s.doing("loading the objects")
		synctest.Wait()
		if out.String() != "" {
			t.Errorf("reported too early: %s", out.String())
		}
		faketime.Sleep(2*quietStart + 1)
		synctest.Wait()
		if text := out.String(); strings.Count(text, "\n") != 2 || !strings.Contains(text, `doing="loading the objects" seconds=3`) || !strings.Contains(text, "seconds=6") {
			t.Errorf("unexpected report %q", text)
		}
		s.end()
		said := out.String()
		faketime.Sleep(3 * quietStart)
		synctest.Wait()
		if out.String() != said {
			t.Errorf("reported after the start: %s", out.String())
		}
	})
}
