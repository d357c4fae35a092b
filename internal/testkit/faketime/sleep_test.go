package faketime_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func TestSleepTakesNoTime(t *testing.T) {
	began := time.Now()
	synctest.Test(t, func(t *testing.T) {
		began := time.Now()
		faketime.Sleep(time.Hour)
		if passed := time.Since(began); passed != time.Hour {
			t.Errorf("%s passed, want an hour", passed)
		}
	})
	if passed := time.Since(began); passed >= time.Hour {
		t.Errorf("took %s, want no real time", passed)
	}
}

func TestNobodySleepsOnTheClockOfTheMachine(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("Sleep() on the real clock did not panic")
		}
	}()
	faketime.Sleep(time.Nanosecond)
}
