package terraform

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// A create waits for the deletion of its name in the same run, for a limited time, and only once in vain.
func TestVacated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var d deletions
		key := func(name string) api.Key { return api.Key{Kind: api.KindCluster, Name: name} }
		wait := func(name string, want bool, took time.Duration) {
			t.Helper()
			began := time.Now()
			if got := d.vacated(t.Context(), key(name), 0); got != want || time.Since(began) != took {
				t.Errorf("%s: vacated is %t after %s, expected %t after %s", name, got, time.Since(began), want, took)
			}
		}
		go func() {
			faketime.Sleep(time.Second / 2)
			end := d.begin(key("a"))
			faketime.Sleep(3 * time.Second)
			end()
		}()
		wait("a", true, 3500*time.Millisecond)
		wait("a", true, 0)
		wait("b", false, longestVacating)
		wait("c", false, 0)
		end := d.begin(key("c"))
		go func() {
			faketime.Sleep(2 * time.Second)
			end()
		}()
		wait("c", true, 2*time.Second)
		if d.of(key("c")) != 1 || d.vacated(t.Context(), key("c"), 1) {
			t.Error("a deletion before the create counts")
		}
		d = deletions{}
		wait("a", false, firstVacating)
	})
}
