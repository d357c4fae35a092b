package health

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/firstread"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// site responds to the probes, by host.
type site struct {
	mu      sync.Mutex
	answers map[string]int // status; 0 = refuses the connection, -1 = hangs
	probes  map[string]int
	present int
	most    int
}

func (s *site) RoundTrip(r *http.Request) (*http.Response, error) {
	s.mu.Lock()
	host := r.URL.Host
	s.probes[host]++
	s.present++
	s.most = max(s.most, s.present)
	code := s.answers[host]
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.present--
	}()
	switch code {
	case 0:
		return nil, errors.New("connection refused")
	case -1:
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	return &http.Response{StatusCode: code, Status: fmt.Sprint(code, " x"), Header: http.Header{}, Body: io.NopCloser(strings.NewReader("body")), Request: r}, nil
}

// seen returns how often a host was probed, and the maximum number of concurrent probes.
func (s *site) seen(host string) (probes, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.probes[host], s.most
}

func (s *site) set(host string, code int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers[host] = code
}

// world is a monitor with a store that the test can inspect and break.
type world struct {
	*Monitor
	t       *testing.T
	site    *site
	tracker *firstread.Tracker

	mu       sync.Mutex
	revision int64
	clusters map[string]*api.Cluster
	specs    map[string]int64
	writes   int
	broken   error
	delay    time.Duration
}

func newWorld(t *testing.T, s *site) *world {
	w := &world{t: t, site: s, tracker: firstread.New(), clusters: map[string]*api.Cluster{}, specs: map[string]int64{}}
	w.Monitor = New(Options{Network: addresspolicy.OnLoopback(), Writer: w, Tracker: w.tracker, RoundTripper: s, Concurrency: 8})
	return w
}

func newSite() *site { return &site{answers: map[string]int{}, probes: map[string]int{}} }

func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(w.t.Context())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

// restart starts a new monitor on the same store, with everything loaded.
func (w *world) restart() *world {
	n := newWorld(w.t, w.site)
	n.revision, n.clusters, n.specs = w.revision, w.clusters, w.specs
	for name, c := range n.clusters {
		n.Put(c, n.specs[name], n.specs[name], n.specs[name])
	}
	n.tracker.Advance(n.revision)
	return n
}

func (w *world) WriteOne(ctx context.Context, write status.Write) (int64, error) {
	if w.delay > 0 {
		faketime.Sleep(w.delay)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.broken != nil {
		return 0, w.broken
	}
	name := write.Object.Meta().Name
	if w.specs[name] != write.SpecRevision {
		return 0, &status.StaleError{Keys: []api.Key{api.KeyOf(write.Object)}}
	}
	w.revision++
	w.writes++
	w.clusters[name] = write.Object.(*api.Cluster)
	return w.revision, nil
}

func (w *world) put(c *api.Cluster) int64 {
	w.mu.Lock()
	w.revision++
	revision := w.revision
	name := c.Metadata.Name
	c.Metadata.UID = "uid"
	now := time.Now().UTC()
	c.Metadata.ModifiedAt = &now
	c.SetDefaults()
	if old := w.clusters[name]; old != nil {
		c.Status, c.Metadata.Generation = old.Status, old.Metadata.Generation
	}
	c.Metadata.Generation++
	w.clusters[name], w.specs[name] = c, revision
	w.mu.Unlock()
	w.Put(c, revision, revision, revision)
	w.tracker.Advance(revision)
	return revision
}

func (w *world) settle(revision int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(w.t.Context(), time.Minute)
	defer cancel()
	if _, err := w.tracker.Wait(ctx, revision); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) status(name string) api.ClusterStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clusters[name].Status
}

// shown returns the status as readers see it.
func (w *world) shown(name string) api.ClusterStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.Beats.Show(w.clusters[name]).Status
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

func (w *world) expect(name string, state api.ClusterState) {
	w.t.Helper()
	s := w.status(name)
	if s.State != state {
		w.t.Errorf("%s: state %q, want %q", name, s.State, state)
	}
	ready := api.FindCondition(s.Conditions, api.ConditionReady)
	if state == "" {
		if ready != nil {
			w.t.Errorf("%s: condition %+v without a state", name, ready)
		}
	} else if ready == nil || (ready.Status == api.ConditionTrue) != (state == api.StateOnline) || ready.Reason == "" || ready.Message == "" {
		w.t.Errorf("%s: state %q with condition %+v", name, state, ready)
	}
}

func (w *world) beat(name string, hb api.Heartbeat) int64 {
	w.t.Helper()
	revision, err := w.Heartbeat(w.t.Context(), name, hb)
	if err != nil {
		w.t.Fatal(err)
	}
	return revision
}

func named(name string) *api.Cluster { return &api.Cluster{Metadata: api.Metadata{Name: name}} }

func probedCluster(name string) *api.Cluster {
	c := named(name)
	c.Spec.Health = &api.HealthSpec{URL: "http://" + name + "/healthz", Interval: "10s"}
	return c
}

func TestProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.set("good", 204)
		s.set("sick", 503)
		w := newWorld(t, s)
		defer w.run()()
		w.settle(w.put(probedCluster("good")))
		w.expect("good", api.StateOnline)
		w.settle(w.put(probedCluster("sick")))
		w.expect("sick", api.StatePending)
		w.settle(w.put(probedCluster("down")))
		w.expect("down", api.StatePending)
		if took := time.Since(time.Date(2000, 1, 1, 0, 0, 0, 0, time.UTC)); took != 0 {
			t.Errorf("took %s, want no wait", took)
		}
		faketime.Sleep(21 * time.Second)
		w.expect("sick", api.StateUnhealthy)
		w.expect("down", api.StateOffline)
		if c := api.FindCondition(w.status("sick").Conditions, api.ConditionReady); !strings.Contains(c.Message, "503 Service Unavailable") {
			t.Errorf("unexpected message %q", c.Message)
		}
		// An hour without changes causes no writes.
		before := w.count()
		faketime.Sleep(time.Hour)
		if n := w.count() - before; n != 0 {
			t.Errorf("%d writes without a change", n)
		}
		if n, _ := s.seen("good"); n < 360 || n > 410 {
			t.Errorf("%d probes in an hour at an interval of 10s", n)
		}
		s.set("down", 200)
		w.nextProbe("down")
		w.expect("down", api.StateConnecting)
		w.nextProbe("down")
		w.expect("down", api.StateOnline)
		if n := w.count() - before; n != 2 {
			t.Errorf("%d writes for two changes, want 2", n)
		}
	})
}

// nextProbe waits for the next probe of a host, whose time is random.
func (w *world) nextProbe(host string) {
	w.t.Helper()
	before, _ := w.site.seen(host)
	for range 200 {
		faketime.Sleep(100 * time.Millisecond)
		if n, _ := w.site.seen(host); n > before {
			synctest.Wait()
			return
		}
	}
	w.t.Fatalf("no probe of %s", host)
}

func TestUnwatchedClusterHasNoStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.settle(w.put(named("plain")))
		faketime.Sleep(time.Hour)
		if w.count() != 0 {
			t.Errorf("%d writes, want none", w.count())
		}
		// Add a health block, and remove it again. What runs there is not moved before the check has failed as often as
		// the threshold.
		w.settle(w.put(probedCluster("plain")))
		w.expect("plain", api.StateOnline)
		faketime.Sleep(time.Minute)
		w.expect("plain", api.StateOffline)
		w.settle(w.put(named("plain")))
		w.expect("plain", "")
	})
}

func TestHangingProbesDoNotDelayOthers(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		w := newWorld(t, s)
		stop := w.run()
		for i := range 100 {
			name := fmt.Sprint("hangs-", i)
			s.set(name, -1)
			w.put(probedCluster(name))
		}
		// The first probes share the slots of the healthy clusters ...
		faketime.Sleep(5 * time.Minute)
		// ... but later ones have their own.
		for i := range 50 {
			name := fmt.Sprint("good-", i)
			s.set(name, 200)
			began := time.Now()
			w.settle(w.put(probedCluster(name)))
			w.expect(name, api.StateOnline)
			if took := time.Since(began); took != 0 {
				t.Fatalf("%s took %s", name, took)
			}
		}
		if _, most := s.seen(""); most > 16 {
			t.Errorf("%d concurrent probes, want at most 2 x 8", most)
		}
		stop()
	})
}

func TestHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		c := named("edge")
		c.Spec.Health = &api.HealthSpec{Interval: "10s"}
		w.settle(w.put(c))
		faketime.Sleep(time.Hour)
		w.expect("edge", api.StatePending)
		w.beat("edge", api.Heartbeat{})
		w.expect("edge", api.StateOnline)
		for range 10 {
			faketime.Sleep(29 * time.Second)
			w.beat("edge", api.Heartbeat{})
			w.expect("edge", api.StateOnline)
		}
		faketime.Sleep(31 * time.Second)
		w.expect("edge", api.StateOffline)
		w.beat("edge", api.Heartbeat{})
		w.expect("edge", api.StateConnecting)
		faketime.Sleep(31 * time.Second)
		w.expect("edge", api.StateOffline)
		w.beat("edge", api.Heartbeat{})
		w.beat("edge", api.Heartbeat{})
		w.expect("edge", api.StateOnline)
	})
}

func TestHeartbeatOfAClusterWithoutHealthBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		stop := w.run()
		w.settle(w.put(named("edge")))
		w.beat("edge", api.Heartbeat{})
		w.expect("edge", api.StateOnline)
		faketime.Sleep(89 * time.Second)
		w.expect("edge", api.StateOnline)
		stop()
		// A restart grants a full grace period, whatever happened before.
		faketime.Sleep(time.Hour)
		w = w.restart()
		defer w.run()()
		faketime.Sleep(89 * time.Second)
		w.expect("edge", api.StateOnline)
		faketime.Sleep(2 * time.Second)
		w.expect("edge", api.StateOffline)
	})
}

func TestHeartbeatReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.settle(w.put(named("edge")))
		w.beat("edge", api.Heartbeat{Capacity: api.Quantities{"cpu": "8"}, Allocatable: api.Quantities{"cpu": "7"}, Allocated: api.Quantities{"cpu": "1"}})
		reported := time.Now().UTC()
		faketime.Sleep(10 * time.Second)
		writes := w.count()
		revision := w.beat("edge", api.Heartbeat{})
		s := w.shown("edge")
		if s.Capacity["cpu"] != "8" || s.Allocatable["cpu"] != "7" || s.Allocated["cpu"] != "1" {
			t.Errorf("an empty heartbeat changed the report: %+v", s)
		}
		if !s.CapacityReportedAt.Equal(reported) || !s.LastHeartbeatAt.Equal(time.Now()) {
			t.Errorf("reported at %s, heartbeat at %s", s.CapacityReportedAt, s.LastHeartbeatAt)
		}
		if revision != 0 || w.count() != writes {
			t.Errorf("revision %d and %d writes without news", revision, w.count()-writes)
		}
		if _, err := w.Heartbeat(t.Context(), "nobody", api.Heartbeat{}); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

func TestHeartbeatOfAProbedClusterLeavesTheState(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.settle(w.put(probedCluster("down")))
		faketime.Sleep(30 * time.Second)
		w.beat("down", api.Heartbeat{})
		w.beat("down", api.Heartbeat{})
		w.expect("down", api.StateOffline)
	})
}

func TestHeartbeatIsDurableOrAnError(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.settle(w.put(named("edge")))
		w.mu.Lock()
		w.broken = errors.New("store is not available")
		w.mu.Unlock()
		if _, err := w.Heartbeat(t.Context(), "edge", api.Heartbeat{}); err == nil {
			t.Error("a heartbeat that was not stored was acknowledged")
		}
		w.mu.Lock()
		w.broken = nil
		w.mu.Unlock()
		// Many at once: each is in the store when the call returns.
		w.delay = 10 * time.Millisecond
		var group sync.WaitGroup
		for range 20 {
			group.Go(func() {
				at := time.Now()
				revision, err := w.Heartbeat(t.Context(), "edge", api.Heartbeat{})
				if err != nil || revision == 0 {
					t.Errorf("revision %d, error %v", revision, err)
				}
				if w.status("edge").LastHeartbeatAt.Before(at) {
					t.Error("the heartbeat was acknowledged before it was stored")
				}
			})
		}
		group.Wait()
	})
}

func TestHeartbeatDuringAChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		c := named("edge")
		w.settle(w.put(c))
		w.mu.Lock()
		w.specs["edge"] = 50 // committed, but not seen yet
		w.mu.Unlock()
		go func() {
			faketime.Sleep(20 * time.Millisecond)
			w.Put(c, 50, 50, 50)
		}()
		w.beat("edge", api.Heartbeat{})
		w.expect("edge", api.StateOnline)
	})
}

func TestRestartKeepsStates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.set("good", 200)
		w := newWorld(t, s)
		stop := w.run()
		w.settle(w.put(probedCluster("good")))
		w.put(probedCluster("down"))
		faketime.Sleep(30 * time.Second)
		w.expect("down", api.StateOffline)
		stop()
		s.set("good", 0)
		w = w.restart()
		defer w.run()()
		faketime.Sleep(14 * time.Second)
		w.expect("good", api.StateOnline) // two failures; the threshold is three
		w.expect("down", api.StateOffline)
		if w.count() != 0 {
			t.Errorf("%d writes, want none", w.count())
		}
		faketime.Sleep(16 * time.Second)
		w.expect("good", api.StateOffline)
	})
}

// TestStoppedProcess checks that deadlines that pass while the process is stopped have no effect on the clusters.
func TestStoppedProcess(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		var mu sync.Mutex
		var slept time.Duration
		w.Now = func() time.Time {
			mu.Lock()
			defer mu.Unlock()
			return time.Now().Add(slept)
		}
		defer w.run()()
		w.settle(w.put(named("edge")))
		w.beat("edge", api.Heartbeat{})
		synctest.Wait()
		mu.Lock()
		slept = time.Hour
		mu.Unlock()
		faketime.Sleep(91 * time.Second)
		w.expect("edge", api.StateOnline)
		faketime.Sleep(91 * time.Second)
		w.expect("edge", api.StateOffline)
	})
}

func TestCapacityReportBySpec(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		stop := w.run()
		c := named("a")
		c.Spec.Allocated = api.Quantities{"cpu": "1"}
		w.settle(w.put(c))
		first := w.status("a").CapacityReportedAt
		if first == nil || !first.Equal(*c.Metadata.ModifiedAt) {
			t.Fatalf("reported at %v, want the modification at %s", first, c.Metadata.ModifiedAt)
		}
		w.expect("a", "")
		faketime.Sleep(time.Minute)
		labelled := named("a")
		labelled.Spec.Allocated = api.Quantities{"cpu": "1"}
		labelled.Metadata.Labels = map[string]string{"x": "y"}
		w.settle(w.put(labelled))
		if got := w.status("a"); !got.CapacityReportedAt.Equal(*first) || got.ObservedGeneration != 2 {
			t.Errorf("status %+v after a change of a label, want the report unchanged", got)
		}
		changed := named("a")
		changed.Spec.Allocated = api.Quantities{"cpu": "2"}
		w.settle(w.put(changed))
		second := w.status("a").CapacityReportedAt
		if !second.Equal(*changed.Metadata.ModifiedAt) {
			t.Errorf("reported at %s, want the modification at %s", second, changed.Metadata.ModifiedAt)
		}
		stop()
		// A restart does not count as a report.
		w = w.restart()
		stop = w.run()
		faketime.Sleep(time.Minute)
		if w.count() != 0 {
			t.Errorf("%d writes after a restart, want none", w.count())
		}
		stop()
		// A change that the stopped server has not handled counts as a report.
		faketime.Sleep(time.Minute)
		missed := named("a")
		missed.Spec.Allocated = api.Quantities{"cpu": "3"}
		revision := w.put(missed)
		w = w.restart()
		defer w.run()()
		w.settle(revision)
		if got := w.status("a").CapacityReportedAt; !got.Equal(*missed.Metadata.ModifiedAt) {
			t.Errorf("reported at %s, want the modification at %s", got, missed.Metadata.ModifiedAt)
		}
	})
}

// If allocated amounts are declared after a heartbeat reported others, the newer ones count, never both.
func TestDeclaredReportReplacesTheHeartbeats(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.settle(w.put(named("edge")))
		w.beat("edge", api.Heartbeat{Allocated: api.Quantities{"cpu": "1"}})
		faketime.Sleep(time.Minute)
		declared := named("edge")
		declared.Spec.Allocated = api.Quantities{"cpu": "3"}
		w.settle(w.put(declared))
		if s := w.status("edge"); s.Allocated != nil || !s.CapacityReportedAt.Equal(*declared.Metadata.ModifiedAt) {
			t.Errorf("allocated %v, reported at %s", s.Allocated, s.CapacityReportedAt)
		}
		faketime.Sleep(time.Minute)
		w.beat("edge", api.Heartbeat{Allocated: api.Quantities{"cpu": "2"}})
		if s := w.status("edge"); s.Allocated["cpu"] != "2" {
			t.Errorf("allocated %v after the next heartbeat", s.Allocated)
		}
	})
}

func TestFailedWriteIsRepeated(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.set("good", 200)
		w := newWorld(t, s)
		w.broken = errors.New("store is not available")
		defer w.run()()
		revision := w.put(probedCluster("good"))
		faketime.Sleep(5 * time.Second)
		w.mu.Lock()
		w.broken = nil
		w.mu.Unlock()
		w.settle(revision)
		w.expect("good", api.StateOnline)
	})
}

func TestChangedURLIsProbedAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.set("hangs", -1)
		s.set("good", 200)
		w := newWorld(t, s)
		defer w.run()()
		w.put(probedCluster("hangs"))
		faketime.Sleep(time.Second) // the first probe is running
		c := probedCluster("hangs")
		c.Spec.Health.URL = "http://good/"
		began := time.Now()
		w.settle(w.put(c))
		w.expect("hangs", api.StateOnline)
		if took := time.Since(began); took != 0 {
			t.Errorf("took %s, want no wait", took)
		}
	})
}

// TestChangeWhileAProbeHangs checks that Settle does not wait for a running probe after a change that does not affect
// the check.
func TestChangeWhileAProbeHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.set("a", 200)
		w := newWorld(t, s)
		defer w.run()()
		w.settle(w.put(probedCluster("a")))
		s.set("a", -1)
		faketime.Sleep(11 * time.Second)
		labelled := probedCluster("a")
		labelled.Metadata.Labels = map[string]string{"x": "y"}
		began := time.Now()
		w.settle(w.put(labelled))
		if took := time.Since(began); took != 0 || w.status("a").ObservedGeneration != 2 {
			t.Errorf("took %s, status %+v", took, w.status("a"))
		}
	})
}

func TestRemovedClusterIsForgotten(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.set("a", -1)
		w := newWorld(t, s)
		defer w.run()()
		w.put(probedCluster("a"))
		faketime.Sleep(time.Second)
		w.Remove("a", 2)
		synctest.Wait()
		faketime.Sleep(time.Hour)
		if n, _ := s.seen("a"); n != 1 || len(w.Monitor.clusters) != 0 || len(w.queue) != 0 {
			t.Errorf("%d probes, %d clusters, %d in the queue", n, len(w.Monitor.clusters), len(w.queue))
		}
		if _, err := w.Heartbeat(t.Context(), "a", api.Heartbeat{}); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

// An existing cluster without a check gets a full grace period when heartbeats are configured.
func TestHeartbeatsConfiguredLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.settle(w.put(named("edge")))
		watched := named("edge")
		watched.Spec.Health = &api.HealthSpec{Interval: "10s"}
		w.settle(w.put(watched))
		w.expect("edge", api.StateOnline)
		faketime.Sleep(29 * time.Second)
		w.expect("edge", api.StateOnline)
		faketime.Sleep(2 * time.Second)
		w.expect("edge", api.StateOffline)
	})
}
