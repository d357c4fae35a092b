package openstack

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/firstread"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// world is a Clouds with a store that the test can inspect and break.
type world struct {
	*Clouds
	t       *testing.T
	stack   *recorded
	tracker *firstread.Tracker

	mu       sync.Mutex
	revision int64
	clouds   map[string]*api.Cloud
	specs    map[string]int64
	writes   int
	broken   error
}

func newWorld(t *testing.T, stack *recorded) *world {
	w := &world{t: t, stack: stack, tracker: firstread.New(), clouds: map[string]*api.Cloud{}, specs: map[string]int64{}}
	w.Clouds = New(Options{Network: addresspolicy.OnLoopback(), Writer: w, Tracker: w.tracker, RoundTripper: stack, Concurrency: 2})
	return w
}

// start runs it until the end of the test.
func (w *world) start() *world {
	w.t.Cleanup(w.run())
	return w
}

func (w *world) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- w.Run(ctx) }()
	return func() {
		cancel()
		if err := <-done; err != nil {
			w.t.Error(err)
		}
	}
}

// restart starts a new Clouds on the same store, with everything loaded.
func (w *world) restart() *world {
	n := newWorld(w.t, w.stack)
	n.revision, n.clouds, n.specs = w.revision, w.clouds, w.specs
	for name, c := range n.clouds {
		n.Put(c, n.specs[name], n.specs[name], n.specs[name])
	}
	n.tracker.Advance(n.revision)
	return n
}

func (w *world) WriteOne(_ context.Context, write status.Write) (int64, error) {
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
	w.clouds[name] = write.Object.(*api.Cloud)
	return w.revision, nil
}

func (w *world) breakStore(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.broken = err
}

// put stores a cloud, as a user would.
func (w *world) put(name string, spec *api.OpenStackSpec) int64 {
	w.mu.Lock()
	w.revision++
	revision := w.revision
	c := &api.Cloud{Metadata: api.Metadata{Name: name, UID: "uid-" + name}, Spec: api.CloudSpec{OpenStack: spec}}
	c.SetDefaults()
	if old := w.clouds[name]; old != nil {
		c.Status, c.Metadata.Generation = old.Status, old.Metadata.Generation
	}
	c.Metadata.Generation++
	w.clouds[name], w.specs[name] = c, revision
	w.mu.Unlock()
	w.Put(c, revision, revision, revision)
	w.tracker.Advance(revision)
	return revision
}

// remove deletes a cloud, as a user would.
func (w *world) remove(name string) int64 {
	w.mu.Lock()
	w.revision++
	revision := w.revision
	delete(w.clouds, name)
	delete(w.specs, name)
	w.mu.Unlock()
	w.Remove(name, revision)
	w.tracker.Advance(revision)
	return revision
}

// settle waits as a write does.
func (w *world) settle(revision int64) {
	w.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	if _, err := w.tracker.Wait(ctx, revision); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) status(name string) api.CloudStatus {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.clouds[name].Status
}

func (w *world) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.writes
}

// collected formats the condition in one line.
func (w *world) collected(name string) string {
	c := api.FindCondition(w.status(name).Conditions, api.ConditionCollected)
	if c == nil {
		return ""
	}
	return fmt.Sprint(c.Status, " ", c.Reason, ": ", c.Message)
}

func (w *world) expectCollected(name, want string) {
	w.t.Helper()
	if got := w.collected(name); got != want {
		w.t.Errorf("%s: got  %s\nwant %s", name, got, want)
	}
}

const (
	isCurrent   = "True Collected: the capacity of every region is current"
	isRefused   = `False Unauthorized: logging in at http://127.0.0.1:5000/v3: the user "admin" of the domain "Default" is rejected: correct openstack.password, or the names of the user and of the project`
	isFailing   = "False RegionFailed: listing the aggregates: the response is 500 Internal Server Error"
	isAwaiting  = "Unknown AwaitingCollector: the cloud has no credentials, and no collector has pushed its capacity"
	aggregates  = "/v2.1/os-aggregates"
	hypervisors = "/v2.1/os-hypervisors/detail"
)

// TestPutSettles checks that the write of a cloud returns when its amounts have been collected.
func TestPutSettles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t)).start()
		w.settle(w.put("paris", access()))
		w.expectCollected("paris", isCurrent)
		s := w.status("paris")
		expectZones(t, &s.Regions[0], recordedZones())
		if s.ObservedGeneration != 1 || s.Regions[0].ObservedAt == nil || s.Regions[0].Zones[0].ObservedAt == nil {
			t.Errorf("got %+v", s)
		}
		// Unchanged amounts are not written again.
		writes := w.count()
		faketime.Sleep(time.Hour)
		if w.count() != writes {
			t.Errorf("%d writes in an hour without a change", w.count()-writes)
		}
		if n := w.stack.requests(hypervisors); n < 60 || n > 70 {
			t.Errorf("%d collections in an hour, want one every 54 to 60 seconds", n)
		}
	})
}

// TestUnrelatedChangesCollectNothing checks that a write that does not change the access collects nothing.
func TestUnrelatedChangesCollectNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t)).start()
		w.settle(w.put("paris", access()))
		w.settle(w.put("paris", access()))
		if n := w.stack.requests("/v3/auth/tokens"); n != 1 {
			t.Errorf("%d logins, want 1", n)
		}
		if s := w.status("paris"); s.ObservedGeneration != 2 || len(s.Regions) != 1 {
			t.Errorf("got %+v", s)
		}
		faketime.Sleep(10 * time.Minute)
		if n := w.stack.requests(hypervisors); n < 10 || n > 13 {
			t.Errorf("%d collections in ten minutes, want 10 to 13", n)
		}
	})
}

// TestCloudChangesAreCollected checks that a new machine shows within one interval, and that only its zone changes.
func TestCloudChangesAreCollected(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t)).start()
		w.settle(w.put("paris", access()))
		before := w.status("paris").Regions[0]
		c := loadCapture(t, "nova-hypervisors-detail-2.87")
		w.stack.reply(hypervisors, says(200, strings.Replace(string(c.Body), `"vcpus_used": 16`, `"vcpus_used": 20`, 1)))
		faketime.Sleep(time.Minute)
		synctest.Wait()
		after := w.status("paris").Regions[0]
		if got := after.Zone("az-b").Available["cpu"]; got != "492" {
			t.Errorf("available cpu of az-b: %s, want 492", got)
		}
		if !after.Zone("az-b").ObservedAt.After(*before.Zone("az-b").ObservedAt) || !after.Zone("az-a").ObservedAt.Equal(*before.Zone("az-a").ObservedAt) || !after.ObservedAt.After(*before.ObservedAt) {
			t.Errorf("az-a observed at %s, az-b at %s", after.Zone("az-a").ObservedAt, after.Zone("az-b").ObservedAt)
		}
	})
}

// TestFailures checks that failures are counted, that the amounts stay, and that a success ends it. Nothing is written
// while nothing changes.
func TestFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t)).start()
		w.settle(w.put("paris", access()))
		before := w.status("paris")
		w.stack.reply(aggregates, says(500, ""))
		for i := int64(1); i <= 7; i++ {
			faketime.Sleep(time.Minute)
			synctest.Wait()
			r := w.status("paris").Regions[0]
			if i <= 4 && (r.Failures < i || r.Unreachable() != (r.Failures >= 5)) || r.FailingSince == nil || r.Message == "" || len(r.Zones) != 2 {
				t.Errorf("after %d minutes: unexpected region %+v", i, r)
			}
		}
		w.expectCollected("paris", isFailing)
		if !w.status("paris").Regions[0].Unreachable() {
			t.Error("the region is not unreachable after 7 failures")
		}
		writes := w.count()
		faketime.Sleep(time.Hour)
		synctest.Wait()
		if w.count() != writes {
			t.Errorf("%d writes in an hour of the same failure", w.count()-writes)
		}
		w.stack.reply(aggregates, nil)
		faketime.Sleep(time.Minute)
		synctest.Wait()
		w.expectCollected("paris", isCurrent)
		after := w.status("paris").Regions[0]
		if after.Failures != 0 || after.FailingSince != nil || after.Message != "" || after.Reason != "" || !after.ObservedAt.Equal(*before.Regions[0].ObservedAt) {
			t.Errorf("after the recovery: unexpected region %+v", after)
		}
	})
}

// TestFailingRegionDoesNotAffectOthers checks that a region that fails or hangs does not affect others, and that the write of the cloud
// waits for both.
func TestFailingRegionDoesNotAffectOthers(t *testing.T) {
	for name, c := range map[string]struct {
		answer func(*http.Request) (int, []byte)
		want   string
	}{
		"fails": {says(500, ""), `False RegionFailed: region "RegionTwo": listing the aggregates: the response is 500 Internal Server Error`},
		"hangs": {hangs, `False RegionFailed: region "RegionTwo": listing the aggregates: no response in time`},
	} {
		inBubble(t, name, func(t *testing.T) {
			stack := newRecorded(t)
			stack.regions = []string{"RegionTwo"}
			stack.reply("regiontwo"+aggregates, c.answer)
			w := newWorld(t, stack).start()
			w.settle(w.put("paris", access()))
			w.expectCollected("paris", c.want)
			s := w.status("paris")
			one := s.Region("RegionOne")
			expectZones(t, one, recordedZones())
			begun := stack.requests(hypervisors)
			faketime.Sleep(10 * time.Minute)
			if n := stack.requests(hypervisors) - begun; n < 19 {
				t.Errorf("%d collections of two regions in ten minutes, want at least 19", n)
			}
			stack.reply("regiontwo"+aggregates, nil)
			faketime.Sleep(time.Minute + 10*time.Second)
			synctest.Wait()
			w.expectCollected("paris", isCurrent)
		})
	}
}

// TestWrongPassword checks that the condition says what to correct, and that correcting it suffices. Failures of a
// region that the spec names are counted.
func TestWrongPassword(t *testing.T) {
	for name, regions := range map[string][]string{"any region": nil, "one region": {"RegionOne"}} {
		inBubble(t, name, func(t *testing.T) {
			w := newWorld(t, newRecorded(t)).start()
			spec := access()
			spec.Password, spec.Regions = api.NewSecret("wrong"), regions
			w.settle(w.put("paris", spec))
			w.expectCollected("paris", isRefused)
			if r := w.status("paris").Regions; len(r) != len(regions) || len(r) == 1 && r[0].Failures != 1 {
				t.Errorf("got the regions %+v", r)
			}
			right := access()
			right.Regions = regions
			w.settle(w.put("paris", right))
			w.expectCollected("paris", isCurrent)
			// After the password has been changed in OpenStack, the token may remain valid for a while.
			w.stack.setPassword("another")
			w.stack.expire()
			faketime.Sleep(time.Minute)
			synctest.Wait()
			if got := w.collected("paris"); !strings.HasPrefix(got, "False Unauthorized: ") || !strings.Contains(got, ": correct openstack.password") {
				t.Errorf("got %s", got)
			}
			rotated := access()
			rotated.Password, rotated.Regions = api.NewSecret("another"), regions
			w.settle(w.put("paris", rotated))
			w.expectCollected("paris", isCurrent)
		})
	}
}

// TestSlowCloud checks that a cloud that does not respond only delays its own write.
func TestSlowCloud(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stack := newRecorded(t)
		w := newWorld(t, stack).start()
		stack.reply("/v3/auth/tokens", hangs)
		slow := w.put("slow", access())
		begun := time.Now()
		w.settle(w.put("other", &api.OpenStackSpec{AuthURL: keystoneURL}))
		if d := time.Since(begun); d > 2*time.Second {
			t.Errorf("a write of another cloud took %s", d)
		}
		w.settle(slow)
		if d := time.Since(begun); d > 11*time.Second {
			t.Errorf("the write took %s, want the 10s of the time limit", d)
		}
		w.expectCollected("slow", "False RegionFailed: logging in at http://127.0.0.1:5000/v3: no response in time")
	})
}

// TestHangingClouds checks that a healthy cloud is collected in time, however many others hang.
func TestHangingClouds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stack := newRecorded(t)
		stack.regions = []string{"RegionTwo"}
		stack.reply("127.0.0.1"+aggregates, hangs)
		stack.reply("silent/v3/auth/tokens", hangs)
		w := newWorld(t, stack).start()
		paris := access()
		paris.Regions = []string{"RegionTwo"}
		w.settle(w.put("paris", paris))
		w.expectCollected("paris", isCurrent)
		for i := range 30 {
			hanging, silent := access(), access()
			hanging.Regions = []string{"RegionOne"}
			silent.AuthURL = "http://silent:5000/v3"
			w.put(fmt.Sprint("hanging-", i), hanging)
			w.put(fmt.Sprint("silent-", i), silent)
		}
		faketime.Sleep(10 * time.Minute)
		before := stack.requests("regiontwo" + aggregates)
		faketime.Sleep(10 * time.Minute)
		if n := stack.requests("regiontwo"+aggregates) - before; n < 9 {
			t.Errorf("%d collections in ten minutes, want one a minute", n)
		}
	})
}

// TestRegionsFollow checks that regions disappear that are no longer in the spec or the catalog.
func TestRegionsFollow(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stack := newRecorded(t)
		stack.regions = []string{"RegionTwo"}
		w := newWorld(t, stack).start()
		w.settle(w.put("paris", access()))
		if n := len(w.status("paris").Regions); n != 2 {
			t.Fatalf("%d regions, want 2", n)
		}
		one := access()
		one.Regions = []string{"RegionTwo"}
		w.settle(w.put("paris", one))
		if r := w.status("paris").Regions; len(r) != 1 || r[0].Name != "RegionTwo" {
			t.Errorf("got %+v", r)
		}
		w.settle(w.put("paris", access()))
		stack.mu.Lock()
		stack.regions = nil
		stack.mu.Unlock()
		faketime.Sleep(2 * loginAgain)
		synctest.Wait()
		if r := w.status("paris").Regions; len(r) != 1 || r[0].Name != "RegionOne" {
			t.Errorf("got %+v", r)
		}
		w.expectCollected("paris", isCurrent)
	})
}

// TestRestart checks that the stored amounts stay valid, and that collections are spread over time.
func TestRestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t))
		stop := w.run()
		for i := range 20 {
			w.settle(w.put(fmt.Sprint("cloud-", i), access()))
		}
		stop()
		writes := w.writes
		n := w.restart().start()
		n.settle(n.revision)
		synctest.Wait()
		at := n.stack.requests(hypervisors)
		faketime.Sleep(startWithin + time.Second)
		if got := n.stack.requests(hypervisors) - at; got < 15 {
			t.Errorf("%d of 20 clouds were collected later than at once, but within %s", got, startWithin)
		}
		if n.writes != 0 || writes == 0 {
			t.Errorf("%d writes after a restart without a change", n.writes)
		}
	})
}

// TestStoreBreaks checks that amounts that could not be stored are stored later.
func TestStoreBreaks(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t)).start()
		w.breakStore(errors.New("the store is full"))
		revision := w.put("paris", access())
		faketime.Sleep(10 * time.Minute)
		w.breakStore(nil)
		w.settle(revision)
		faketime.Sleep(2 * time.Second)
		synctest.Wait()
		w.expectCollected("paris", isCurrent)
	})
}

// TestRemove checks that a deleted cloud is no longer collected, and that no write waits for it.
func TestRemove(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t)).start()
		w.stack.reply(aggregates, hangs)
		w.put("paris", access())
		faketime.Sleep(time.Second)
		w.settle(w.remove("paris"))
		synctest.Wait()
		asked := w.stack.requests(hypervisors)
		faketime.Sleep(time.Hour)
		if n := w.stack.requests(hypervisors); n != asked {
			t.Errorf("%d requests after the cloud was deleted", n-asked)
		}
		if _, _, err := w.Report(t.Context(), "paris", api.CloudReport{Collector: "c", Sequence: 1, Full: true}); !errors.Is(err, ErrNotFound) {
			t.Errorf("got %v, want ErrNotFound", err)
		}
	})
}

// TestReport checks the sequence numbers of reports: a report out of sequence is rejected with the expected number, and
// a repeated one counts once.
func TestReport(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t)).start()
		w.settle(w.put("paris", &api.OpenStackSpec{AuthURL: keystoneURL}))
		w.expectCollected("paris", isAwaiting)
		zone := func(name, cpu string) api.CloudZone {
			return api.CloudZone{Name: name, Hosts: 1, Allocatable: api.Quantities{"cpu": api.Quantity(cpu)}, Allocated: api.Quantities{"cpu": "1"}}
		}
		regions := func(zones ...api.CloudZone) []api.CloudRegionReport {
			return []api.CloudRegionReport{{Name: "RegionOne", Zones: zones}}
		}
		send := func(report api.CloudReport) (bool, error) {
			t.Helper()
			revision, changed, err := w.Report(t.Context(), "paris", report)
			if err == nil && changed && (revision == 0 || w.revision != revision) {
				t.Errorf("revision %d, but the stored one is %d", revision, w.revision)
			}
			return changed, err
		}
		refused := func(report api.CloudReport, expected int64) {
			t.Helper()
			_, err := send(report)
			if wrong, ok := errors.AsType[*SequenceError](err); !ok || wrong.Expected != expected {
				t.Errorf("got %v, want that %d is expected", err, expected)
			}
		}
		accepted := func(report api.CloudReport, changed bool) {
			t.Helper()
			if got, err := send(report); err != nil || got != changed {
				t.Errorf("changed %t, %v; want %t", got, err, changed)
			}
		}
		refused(api.CloudReport{Collector: "c", Sequence: 1, Regions: regions(zone("a", "4"))}, 0)
		accepted(api.CloudReport{Collector: "c", Sequence: 1, Full: true, Regions: regions(zone("a", "4"), zone("b", "8"))}, true)
		w.expectCollected("paris", isCurrent)
		if got := w.status("paris").Regions[0].Zone("a").Available["cpu"]; got != "3" {
			t.Errorf("available is %q, want what allocatable and allocated leave: 3", got)
		}
		accepted(api.CloudReport{Collector: "c", Sequence: 1, Full: true, Regions: regions(zone("a", "4"), zone("b", "8"))}, false)
		accepted(api.CloudReport{Collector: "c", Sequence: 2, Regions: regions(zone("a", "6"))}, true)
		accepted(api.CloudReport{Collector: "c", Sequence: 2, Regions: regions(zone("a", "6"))}, false)
		accepted(api.CloudReport{Collector: "c", Sequence: 3, Regions: regions(zone("a", "6"))}, false)
		refused(api.CloudReport{Collector: "c", Sequence: 5, Regions: regions(zone("a", "7"))}, 4)
		refused(api.CloudReport{Collector: "c", Sequence: 2, Regions: regions(zone("a", "7"))}, 4)
		refused(api.CloudReport{Collector: "other", Sequence: 4, Regions: regions(zone("a", "7"))}, 0)
		// An error is accepted with any number, but does not close a gap: the missing reports are still unknown.
		accepted(api.CloudReport{Collector: "c", Sequence: 7, Error: "no response in time"}, true)
		w.expectCollected("paris", "False RegionFailed: no response in time")
		refused(api.CloudReport{Collector: "c", Sequence: 8, Regions: regions(zone("a", "7"))}, 4)
		accepted(api.CloudReport{Collector: "other", Sequence: 1, Error: "no response in time"}, true)
		refused(api.CloudReport{Collector: "other", Sequence: 2, Regions: regions(zone("a", "7"))}, 0)
		accepted(api.CloudReport{Collector: "c", Sequence: 4, Regions: []api.CloudRegionReport{{Name: "RegionOne", Error: "no response in time"}}}, true)
		w.expectCollected("paris", "False RegionFailed: no response in time")
		accepted(api.CloudReport{Collector: "c", Sequence: 5, Regions: []api.CloudRegionReport{{Name: "RegionOne"}}}, true)
		w.expectCollected("paris", isCurrent)
		accepted(api.CloudReport{Collector: "c", Sequence: 6, Regions: []api.CloudRegionReport{{Name: "RegionOne", RemovedZones: []string{"b"}}}}, true)
		if s := w.status("paris").Regions[0]; len(s.Zones) != 1 || s.Zones[0].Allocatable["cpu"] != "6" {
			t.Errorf("got %+v", s)
		}
		// A full report from another collector takes over, with any number.
		accepted(api.CloudReport{Collector: "other", Sequence: 9, Full: true, Regions: []api.CloudRegionReport{{Name: "RegionTwo", Zones: []api.CloudZone{zone("a", "4")}}}}, true)
		if s := w.status("paris"); len(s.Regions) != 1 || s.Regions[0].Name != "RegionTwo" || *s.Collector != (api.CollectorStatus{Name: "other", Sequence: 9}) {
			t.Errorf("got %+v", s)
		}
		// After a restart, the server still knows the number.
		n := w.restart().start()
		if _, changed, err := n.Report(t.Context(), "paris", api.CloudReport{Collector: "other", Sequence: 10, Regions: []api.CloudRegionReport{{Name: "RegionTwo", Zones: []api.CloudZone{zone("a", "5")}}}}); err != nil || !changed {
			t.Errorf("after a restart: changed %t, %v", changed, err)
		}
		// With credentials, the server collects on its own.
		n.settle(n.put("paris", access()))
		n.expectCollected("paris", isCurrent)
		if _, _, err := n.Report(t.Context(), "paris", api.CloudReport{Collector: "other", Sequence: 11}); !errors.Is(err, ErrCollected) || n.status("paris").Collector != nil {
			t.Errorf("got %v, collector %+v", err, n.status("paris").Collector)
		}
		// Without them it waits for reports again, and keeps what it knows.
		n.settle(n.put("paris", &api.OpenStackSpec{AuthURL: keystoneURL}))
		n.expectCollected("paris", isAwaiting)
		if len(n.status("paris").Regions[0].Zones) != 2 {
			t.Error("the capacity was lost with the credentials")
		}
	})
}

// TestReportNotStored checks that a report whose write failed is stored when it is repeated.
func TestReportNotStored(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newRecorded(t)).start()
		w.settle(w.put("paris", &api.OpenStackSpec{AuthURL: keystoneURL}))
		report := api.CloudReport{Collector: "c", Sequence: 1, Full: true, Regions: []api.CloudRegionReport{{Name: "RegionOne", Zones: []api.CloudZone{{Name: "a"}}}}}
		w.breakStore(errors.New("the store is full"))
		if _, _, err := w.Report(t.Context(), "paris", report); err == nil {
			t.Error("a report that could not be stored was accepted")
		}
		w.breakStore(nil)
		if _, changed, err := w.Report(t.Context(), "paris", report); err != nil || !changed {
			t.Errorf("retry: changed %t, %v", changed, err)
		}
		w.expectCollected("paris", isCurrent)
	})
}

// TestRegionsNotCollectedYetArePending checks that, while one region is collected, the others are pending, so that they do
// not count as deleted.
func TestRegionsNotCollectedYetArePending(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stack := newRecorded(t)
		stack.regions = []string{"RegionTwo"}
		stack.reply("regiontwo"+hypervisors, hangs)
		w := newWorld(t, stack).start()
		answered := w.put("paris", access())
		faketime.Sleep(time.Second)
		synctest.Wait()
		s := w.status("paris")
		one, two := s.Region("RegionOne"), s.Region("RegionTwo")
		if one == nil || !one.Observed() || one.Pending() || two == nil || two.Observed() || !two.Pending() {
			t.Fatalf("unexpected regions %+v", s.Regions)
		}
		w.expectCollected("paris", `Unknown Pending: region "RegionTwo": not collected yet`)
		w.settle(answered)
		s = w.status("paris")
		if two := s.Region("RegionTwo"); two.Observed() || two.Pending() || two.Failures != 1 {
			t.Errorf("after a failure: unexpected region %+v", two)
		}
	})
}
