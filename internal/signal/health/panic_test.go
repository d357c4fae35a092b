package health

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// poisoned panics on one cluster: when it is probed, or when its status is stored.
type poisoned struct {
	*world
	mu     sync.Mutex
	probes bool
	writes bool
}

func (p *poisoned) RoundTrip(r *http.Request) (*http.Response, error) {
	p.mu.Lock()
	panics := p.probes && r.URL.Host == "poison"
	p.mu.Unlock()
	if panics {
		panic("over the probe")
	}
	return p.site.RoundTrip(r)
}

func (p *poisoned) WriteOne(ctx context.Context, write status.Write) (int64, error) {
	p.mu.Lock()
	panics := p.writes && write.Object.Meta().Name == "poison"
	p.mu.Unlock()
	if panics {
		panic("over the status")
	}
	return p.world.WriteOne(ctx, write)
}

func (p *poisoned) set(probes, writes bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.probes, p.writes = probes, writes
}

// A panic on one cluster does not affect the others, and that cluster is retried after a delay.
func TestPanicOnAClusterAffectsOnlyThatCluster(t *testing.T) {
	for name, c := range map[string]struct{ probes, writes bool }{"probe": {probes: true}, "write": {writes: true}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite()
				s.set("good", http.StatusOK)
				s.set("poison", http.StatusOK)
				w := newWorld(t, s)
				recorder := recovery.New(nil)
				p := &poisoned{world: w}
				w.Faults, w.client.Transport, w.Writer = recorder.Component("health"), p, p
				p.set(c.probes, c.writes)
				stop := w.run()
				poison := probedCluster("poison")
				poison.Spec.Health.URL = "http://poison"
				good := probedCluster("good")
				good.Spec.Health.URL = "http://good"
				w.put(poison)
				w.put(good)
				faketime.Sleep(5 * time.Minute)
				synctest.Wait()
				w.expect("good", api.StateOnline)
				text := recorder.Faulted(clusterKey("poison"))
				if len(text) != 1 || !strings.Contains(text[0], "health failed with a fault of the server: over the") {
					t.Errorf("fault of the cluster %v", text)
				}
				if probes, _ := s.seen("poison"); probes > 100 {
					t.Errorf("%d probes in 5 minutes, want a back-off", probes)
				}
				p.set(false, false)
				faketime.Sleep(5 * time.Minute)
				synctest.Wait()
				w.expect("poison", api.StateOnline)
				if text := recorder.Faulted(clusterKey("poison")); len(text) != 0 {
					t.Errorf("fault %v after the recovery, want none", text)
				}
				stop()
			})
		})
	}
}

// After a heartbeat that panics, nothing stays locked: the next one is accepted.
func TestPanicInAHeartbeatReleasesLocks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.put(named("eu"))
		synctest.Wait() // wait until the monitor is idle
		now, broken := w.Now, true
		w.Now = func() time.Time {
			if broken {
				panic("over the time")
			}
			return now()
		}
		if recovery.Confine("", func() error { _, err := w.Heartbeat(t.Context(), "eu", api.Heartbeat{}); return err }) == nil {
			t.Fatal("no panic occurred")
		}
		broken = false
		w.beat("eu", api.Heartbeat{})
		w.expect("eu", api.StateOnline)
	})
}
