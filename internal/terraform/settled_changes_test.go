package terraform

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// A decision waits for what is written beside it, and for nothing else.
func TestChangesBesideADecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		session := &Session{}
		c := &session.changes
		c.begin()()
		faketime.Sleep(time.Second)
		start := time.Now()
		if c.settled(t.Context(), c.mark()) || time.Since(start) != 0 {
			t.Errorf("waited %s for earlier writes", time.Since(start))
		}
		mark := c.mark()
		moved := &Resource{session: session, Choice: &Choice{Moved: true}}
		moved.changes()()
		if c.settled(t.Context(), mark) {
			t.Error("changes by other clients count as settled")
		}
		first, second := c.begin(), func() {}
		go func() {
			faketime.Sleep(2 * time.Second)
			first()
			second = c.begin()
			faketime.Sleep(2 * time.Second)
			second()
		}()
		start = time.Now()
		if !c.settled(t.Context(), mark) || time.Since(start) != 4*time.Second+pauseTime {
			t.Errorf("waited %s for two writes", time.Since(start))
		}
		endless := c.begin()
		start = time.Now()
		if !c.settled(t.Context(), mark) || time.Since(start) != longestSettling {
			t.Errorf("waited %s for writes that never settle", time.Since(start))
		}
		endless()
	})
}
