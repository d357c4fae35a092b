package terraform

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A decision waits for what is written beside it, and for nothing else.
func TestChangesBesideADecision(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var c changes
		c.begin(api.KindCluster)()
		time.Sleep(time.Second)
		start := time.Now()
		if c.settled(t.Context(), c.mark()) || time.Since(start) != 0 {
			t.Errorf("what was written before is waited for, %s", time.Since(start))
		}
		mark := c.mark()
		c.begin(api.KindWorkload)()
		if c.settled(t.Context(), mark) {
			t.Error("a workload moves others")
		}
		first, second := c.begin(api.KindCluster), func() {}
		go func() {
			time.Sleep(2 * time.Second)
			first()
			second = c.begin(api.KindMetric)
			time.Sleep(2 * time.Second)
			second()
		}()
		start = time.Now()
		if !c.settled(t.Context(), mark) || time.Since(start) != 4*time.Second+pauseTime {
			t.Errorf("two writes are waited for %s", time.Since(start))
		}
		endless := c.begin(api.KindCluster)
		start = time.Now()
		if !c.settled(t.Context(), mark) || time.Since(start) != longestSettling {
			t.Errorf("a write without end is waited for %s", time.Since(start))
		}
		endless()
	})
}
