package health

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// TestUnchangedHeartbeatIsNotWritten checks that it counts nevertheless, and that readers see its time.
func TestUnchangedHeartbeatIsNotWritten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		var reserved bool
		w.Reserved = func(string) bool { return reserved }
		defer w.run()()
		c := named("edge")
		c.Spec.Health = &api.HealthSpec{Interval: "15s", FailureThreshold: 2, SuccessThreshold: 1}
		w.settle(w.put(c))
		report := func() api.Heartbeat {
			return api.Heartbeat{Capacity: api.Quantities{"cpu": "8"}, Allocatable: api.Quantities{"cpu": "7"}, Allocated: api.Quantities{"cpu": "1"}}
		}
		w.beat("edge", report())
		stored, writes := w.status("edge"), w.count()
		for range 100 {
			faketime.Sleep(15 * time.Second)
			for _, beat := range []api.Heartbeat{report(), {}} {
				if revision := w.beat("edge", beat); revision != 0 {
					t.Fatalf("revision %d for a heartbeat without news, want 0", revision)
				}
			}
			if s := w.shown("edge"); s.State != api.StateOnline || !s.LastHeartbeatAt.Equal(time.Now()) || !s.CapacityReportedAt.Equal(time.Now()) {
				t.Fatalf("state %s, heartbeat %s, report %s; want online, now, now", s.State, s.LastHeartbeatAt, s.CapacityReportedAt)
			}
		}
		if w.count() != writes || !w.status("edge").LastHeartbeatAt.Equal(*stored.LastHeartbeatAt) {
			t.Fatalf("%d writes for a heartbeat without news", w.count()-writes)
		}
		// A heartbeat that reports a change is written, with its time.
		inUse := api.Heartbeat{Allocated: api.Quantities{"cpu": "2"}}
		for _, news := range []struct {
			name     string
			reserved bool
			beat     api.Heartbeat
			reported bool
		}{
			{"more allocated", false, inUse, true},
			{"decision since the last report", true, inUse, true},
			{"less allocatable", false, api.Heartbeat{Allocatable: api.Quantities{"cpu": "6"}}, false},
		} {
			faketime.Sleep(10 * time.Second)
			writes, reserved = w.count(), news.reserved
			before := w.status("edge").CapacityReportedAt
			revision := w.beat("edge", news.beat)
			s := w.status("edge")
			if w.count() != writes+1 || revision == 0 || !s.LastHeartbeatAt.Equal(time.Now()) {
				t.Errorf("%s: %d writes, revision %d, heartbeat at %s", news.name, w.count()-writes, revision, s.LastHeartbeatAt)
			}
			if at := *s.CapacityReportedAt; news.reported != at.Equal(time.Now()) || !news.reported && !at.Equal(*before) {
				t.Errorf("%s: reported at %s", news.name, at)
			}
		}
		last := time.Now()
		faketime.Sleep(31 * time.Second)
		if s := w.status("edge"); s.State != api.StateOffline || !s.LastHeartbeatAt.Equal(last) {
			t.Errorf("stored state %s and heartbeat %s, want offline and %s", s.State, s.LastHeartbeatAt, last)
		}
	})
}
