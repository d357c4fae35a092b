package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/faketime"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
)

// receiver takes pushes in as a server does, and may be out of reach.
type receiver struct {
	*world
	mu     sync.Mutex
	pushed []api.CloudReport
	asked  int
	// refresh is the time between two pushes of everything; years, where a test is of
	// something else.
	refresh time.Duration
	limit   int // of a report, in bytes; 0 = none
	down    bool
	mute    bool // takes reports in, and the answer gets lost
}

var errDown = errors.New("connection refused")

func (r *receiver) send(ctx context.Context, report api.CloudReport) error {
	r.mu.Lock()
	down, mute := r.down, r.mute
	switch asks := len(report.Regions) == 0 && report.Error == "" && !report.Full; {
	case down:
	case asks:
		r.asked++ // whether the figures are here
	default:
		r.pushed = append(r.pushed, report)
	}
	r.mu.Unlock()
	if down {
		return errDown
	}
	if limit := r.limit; limit > 0 && length(report) > limit {
		return ErrTooLarge
	}
	if err := report.Validate().Err(); err != nil {
		return err
	}
	_, _, err := r.Report(ctx, "paris", report)
	if _, wrong := errors.AsType[*SequenceError](err); wrong {
		return fmt.Errorf("%w: %w", ErrOutOfOrder, err)
	}
	if mute {
		return errDown
	}
	return err
}

func (r *receiver) set(down, mute bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.down, r.mute = down, mute
}

// since returns the reports that came after the first n.
func (r *receiver) since(n int) []api.CloudReport {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.pushed[n:]
}

// newReceiver starts a server that knows the cloud without credentials.
func newReceiver(t *testing.T) *receiver {
	r := &receiver{world: newWorld(t, newRecorded(t)).start(), refresh: 1 << 58}
	r.settle(r.put("paris", &api.OpenStackSpec{AuthURL: keystoneURL}))
	return r
}

// collect starts a collector that pushes.
func (r *receiver) collect(t *testing.T, name string, stack *recorded, spec *api.OpenStackSpec) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Push(ctx, PushOptions{Network: netpolicy.OnLoopback(), Cloud: "paris", Access: spec, Collector: name, Send: r.send, RoundTripper: stack, Refresh: r.refresh})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// zonesIn lists what a report has figures of.
func zonesIn(report api.CloudReport) string {
	var out []string
	for _, r := range report.Regions {
		for _, z := range r.Zones {
			out = append(out, r.Name+"/"+z.Name)
		}
	}
	return strings.Join(out, " ")
}

// moreUsed is the recorded OpenStack with so many processors more in use in az-b.
func moreUsed(t *testing.T, stack *recorded, n int) {
	c := loadCapture(t, "nova-hypervisors-detail-2.87")
	stack.reply(hypervisors, says(200, strings.Replace(string(c.Body), `"vcpus_used": 16`, fmt.Sprintf(`"vcpus_used": %d`, 16+n), 1)))
}

// TestPush: the first report is full; after that only what changed is sent, and
// nothing when nothing did.
func TestPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		stack.regions = []string{"RegionTwo"}
		defer r.collect(t, "c", stack, access())()
		faketime.Sleep(time.Hour)
		first := r.since(0)
		if len(first) != 1 || !first[0].Full || first[0].Sequence != 1 || zonesIn(first[0]) != "RegionOne/az-a RegionOne/az-b RegionTwo/az-a RegionTwo/az-b" {
			t.Fatalf("pushed in an hour without news: %d reports, %s", len(first), zonesIn(first[0]))
		}
		r.expectCollected("paris", isCurrent)
		s := r.status("paris")
		expectZones(t, s.Region("RegionTwo"), recordedZones())

		c := loadCapture(t, "nova-hypervisors-detail-2.87")
		stack.reply("regiontwo"+hypervisors, says(200, strings.Replace(string(c.Body), `"vcpus_used": 5`, `"vcpus_used": 9`, 1)))
		faketime.Sleep(time.Minute)
		synctest.Wait()
		second := r.since(1)
		if len(second) != 1 || second[0].Full || second[0].Sequence != 2 || zonesIn(second[0]) != "RegionTwo/az-a" {
			t.Fatalf("pushed after a change of one zone: %+v", second)
		}
		wire, err := json.Marshal(second[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"az-b", "RegionOne", "flavors", "volume_types", "observed_at"} {
			if strings.Contains(string(wire), other) {
				t.Errorf("%s is pushed although it did not change: %s", other, wire)
			}
		}
		s = r.status("paris")
		if got := s.Region("RegionTwo").Zone("az-a").Available["cpu"]; got != "495" {
			t.Errorf("available cpu: %s, want 495", got)
		}
	})
}

// TestPushRegionGoes: a region that is no longer there is gone at the server, too.
func TestPushRegionGoes(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		stack.regions = []string{"RegionTwo"}
		defer r.collect(t, "c", stack, access())()
		faketime.Sleep(time.Minute)
		stack.mu.Lock()
		stack.regions = nil
		stack.mu.Unlock()
		faketime.Sleep(2 * loginAgain)
		synctest.Wait()
		moreUsed(t, stack, 4)
		faketime.Sleep(time.Minute)
		synctest.Wait()
		if s := r.status("paris"); len(s.Regions) != 1 || s.Regions[0].Name != "RegionOne" {
			t.Errorf("the server has %d regions", len(s.Regions))
		}
		if reports := r.since(0); len(reports) != 3 || !reports[1].Full || reports[2].Full {
			t.Errorf("%d reports, want a full one when the region went, and one of what changed", len(reports))
		}
	})
}

// TestPushOutage: what changes while the server is out of reach, or does not say
// that it has a report, arrives in full afterwards.
func TestPushOutage(t *testing.T) {
	for name, mute := range map[string]bool{"down": false, "answers get lost": true} {
		inBubble(t, name, func(t *testing.T) {
			r, stack := newReceiver(t), newRecorded(t)
			defer r.collect(t, "c", stack, access())()
			faketime.Sleep(5 * time.Minute)
			r.set(!mute, mute)
			moreUsed(t, stack, 4)
			faketime.Sleep(5 * time.Minute)
			moreUsed(t, stack, 8)
			faketime.Sleep(5 * time.Minute)
			n := len(r.since(0))
			r.set(false, false)
			faketime.Sleep(pushAgain.Most + time.Second)
			synctest.Wait()
			s := r.status("paris")
			if got := s.Region("RegionOne").Zone("az-b").Available["cpu"]; got != "488" {
				t.Errorf("available cpu: %s, want 488", got)
			}
			if after := r.since(n); len(after) != 1 || !after[0].Full {
				t.Errorf("after the outage %d reports were pushed: %+v", len(after), after)
			}
		})
	}
}

// TestPushServerForgot: a server that does not know the collector any more gets a
// full report.
func TestPushServerForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		defer r.collect(t, "c", stack, access())()
		faketime.Sleep(5*time.Minute + 30*time.Second) // between two looks
		synctest.Wait()
		if _, _, err := r.Report(t.Context(), "paris", api.CloudReport{Collector: "intruder", Sequence: 7, Full: true}); err != nil {
			t.Fatal(err)
		}
		n := len(r.since(0))
		moreUsed(t, stack, 4)
		faketime.Sleep(time.Minute)
		synctest.Wait()
		after := r.since(n)
		// Whether it asks first or has news first is a matter of a moment.
		if len(after) > 2 || !slices.ContainsFunc(after, func(r api.CloudReport) bool { return r.Full }) {
			t.Errorf("pushed %d reports, none of them full or too many", len(after))
		}
		s := r.status("paris")
		if got := s.Region("RegionOne").Zone("az-b").Available["cpu"]; got != "492" || s.Collector.Name != "c" {
			t.Errorf("available cpu: %s, collector %+v", got, s.Collector)
		}
	})
}

// TestPushFailures: what cannot be collected is counted at the server as here.
func TestPushFailures(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		stop := r.collect(t, "c", stack, access())
		faketime.Sleep(time.Minute)
		stack.reply(aggregates, says(500, ""))
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		r.expectCollected("paris", isFailing)
		if got := r.status("paris").Regions[0]; got.Failures < 2 || got.Failures > 3 || len(got.Zones) != 2 {
			t.Errorf("after two minutes: %+v", got)
		}
		r.set(true, false)
		faketime.Sleep(10 * time.Minute)
		r.set(false, false)
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := r.status("paris").Regions[0]; !got.Unreachable() || len(got.Zones) != 2 {
			t.Errorf("after twelve minutes: %+v", got)
		}
		n := len(r.since(0))
		faketime.Sleep(time.Hour)
		if more := r.since(n); len(more) != 0 {
			t.Errorf("%d reports in an hour of the same failure", len(more))
		}
		stop()
		// Another start knows nothing of the figures, and what it does not know does
		// not make them go.
		defer r.collect(t, "d", stack, access())()
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := r.status("paris").Regions[0]; len(got.Zones) != 2 || got.Failures == 0 {
			t.Errorf("after another start: %+v", got)
		}
		stack.reply(aggregates, says(200, `{"aggregates":[]}`))
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		r.expectCollected("paris", isCurrent)
		if got := r.status("paris").Regions[0]; len(got.Zones) != 1 || got.Zones[0].Name != defaultZone {
			t.Errorf("after the recovery: %+v", got)
		}
	})
}

// TestPushWrongPassword: a collector that is not let in says so.
func TestPushWrongPassword(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		stop := r.collect(t, "c", stack, access())
		faketime.Sleep(time.Minute)
		stop()
		stack.setPassword("another")
		defer r.collect(t, "d", stack, access())()
		faketime.Sleep(10 * time.Minute)
		synctest.Wait()
		r.expectCollected("paris", isRefused)
		if got := r.status("paris").Regions[0]; !got.Unreachable() || len(got.Zones) != 2 {
			t.Errorf("got %+v", got)
		}
		stack.setPassword("right")
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		r.expectCollected("paris", isCurrent)
	})
}

// TestPushAfterTheServerLostTheFigures: nothing changes at the OpenStack, and yet a
// cloud that was deleted and created again, and a server with an empty store, have
// all figures within an interval.
func TestPushAfterTheServerLostTheFigures(t *testing.T) {
	for name, lose := range map[string]func(r *receiver){
		"deleted and created again": func(r *receiver) {
			r.remove("paris")
			r.settle(r.put("paris", &api.OpenStackSpec{AuthURL: keystoneURL}))
		},
		"deleted, and created later": func(r *receiver) {
			r.remove("paris")
			faketime.Sleep(20 * time.Minute)
			r.settle(r.put("paris", &api.OpenStackSpec{AuthURL: keystoneURL}))
		},
	} {
		inBubble(t, name, func(t *testing.T) {
			r, stack := newReceiver(t), newRecorded(t)
			defer r.collect(t, "c", stack, access())()
			faketime.Sleep(5 * time.Minute)
			n, writes := len(r.since(0)), r.count()
			faketime.Sleep(5 * time.Minute)
			if got := r.count(); got != writes {
				t.Errorf("asking whether the figures are there wrote %d times", got-writes)
			}
			lose(r)
			faketime.Sleep(2 * time.Minute)
			synctest.Wait()
			r.expectCollected("paris", isCurrent)
			s := r.status("paris")
			if got := s.Region("RegionOne"); got == nil || len(got.Zones) != 2 {
				t.Errorf("got %+v", got)
			}
			for _, report := range r.since(n) {
				if !report.Full {
					t.Errorf("report %d is not full", report.Sequence)
				}
			}
		})
	}
}

// TestPushEverythingAtIntervals, whatever the server says.
func TestPushEverythingAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		r.refresh = 0 // the default
		defer r.collect(t, "c", stack, access())()
		faketime.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		reports := r.since(0)
		if len(reports) < 6 || len(reports) > 7 {
			t.Errorf("%d reports in an hour", len(reports))
		}
		for _, report := range reports {
			if !report.Full || len(report.Regions) != 1 {
				t.Errorf("got %+v", report)
			}
		}
	})
}

// TestPushKeepsToTheLimitOfTheServer, whatever that is.
func TestPushKeepsToTheLimitOfTheServer(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		r.limit = 5 << 10
		defer r.collect(t, "c", stack, access())()
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		r.expectCollected("paris", isCurrent)
		s := r.status("paris")
		expectZones(t, s.Region("RegionOne"), recordedZones())
	})
}
