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
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// receiver accepts pushes as a server does, and can be made unreachable.
type receiver struct {
	*world
	mu     sync.Mutex
	pushed []api.CloudReport
	asked  int
	// refresh is the time between two full pushes. It is years, unless a test sets it.
	refresh time.Duration
	limit   int // size limit of a report in bytes; 0 = none
	down    bool
	mute    bool // accepts reports, but the response is lost
}

var errDown = errors.New("connection refused")

func (r *receiver) send(ctx context.Context, report api.CloudReport) error {
	r.mu.Lock()
	down, mute := r.down, r.mute
	switch asks := len(report.Regions) == 0 && report.Error == "" && !report.Full; {
	case down:
	case asks:
		r.asked++ // the request for the expected sequence
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

// since returns the reports after the first n.
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
		done <- Push(ctx, PushOptions{Network: addresspolicy.OnLoopback(), Cloud: "paris", Access: spec, Collector: name, Send: r.send, RoundTripper: stack, Refresh: r.refresh})
	}()
	return func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
}

// zonesIn lists the zones in a report.
func zonesIn(report api.CloudReport) string {
	var out []string
	for _, r := range report.Regions {
		for _, z := range r.Zones {
			out = append(out, r.Name+"/"+z.Name)
		}
	}
	return strings.Join(out, " ")
}

// moreUsed returns the recorded OpenStack with n more CPUs in use in az-b.
func moreUsed(t *testing.T, stack *recorded, n int) {
	c := loadCapture(t, "nova-hypervisors-detail-2.87")
	stack.reply(hypervisors, says(200, strings.Replace(string(c.Body), `"vcpus_used": 16`, fmt.Sprintf(`"vcpus_used": %d`, 16+n), 1)))
}

// TestPush checks that the first report is full, that later ones only contain changes, and that nothing is sent without
// changes.
func TestPush(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		stack.regions = []string{"RegionTwo"}
		defer r.collect(t, "c", stack, access())()
		faketime.Sleep(time.Hour)
		first := r.since(0)
		if len(first) != 1 || !first[0].Full || first[0].Sequence != 1 || zonesIn(first[0]) != "RegionOne/az-a RegionOne/az-b RegionTwo/az-a RegionTwo/az-b" {
			t.Fatalf("%d reports in an hour without a change, want a full one: %s", len(first), zonesIn(first[0]))
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
			t.Fatalf("unexpected reports after a change of one zone: %+v", second)
		}
		wire, err := json.Marshal(second[0])
		if err != nil {
			t.Fatal(err)
		}
		for _, other := range []string{"az-b", "RegionOne", "flavors", "volume_types", "observed_at"} {
			if strings.Contains(string(wire), other) {
				t.Errorf("%s was pushed although it did not change: %s", other, wire)
			}
		}
		s = r.status("paris")
		if got := s.Region("RegionTwo").Zone("az-a").Available["cpu"]; got != "495" {
			t.Errorf("available cpu %s, want 495", got)
		}
	})
}

// TestPushOfADeletedRegion checks that a deleted region disappears from the server, too.
func TestPushOfADeletedRegion(t *testing.T) {
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
			t.Errorf("the server has %d regions, want RegionOne", len(s.Regions))
		}
		if reports := r.since(0); len(reports) != 3 || !reports[1].Full || reports[2].Full {
			t.Errorf("%d reports, want a full one after the region was removed, and one with changes", len(reports))
		}
	})
}

// TestPushOutage checks that everything that changes while the server is unreachable, or does not confirm reports,
// arrives afterwards.
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
				t.Errorf("available cpu %s, want 488", got)
			}
			if after := r.since(n); len(after) != 1 || !after[0].Full {
				t.Errorf("%d reports after the outage, want a full one: %+v", len(after), after)
			}
		})
	}
}

// TestPushToAServerThatForgot checks that a server that no longer knows the collector gets a full report.
func TestPushToAServerThatForgot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		defer r.collect(t, "c", stack, access())()
		faketime.Sleep(5*time.Minute + 30*time.Second) // between two checks
		synctest.Wait()
		if _, _, err := r.Report(t.Context(), "paris", api.CloudReport{Collector: "intruder", Sequence: 7, Full: true}); err != nil {
			t.Fatal(err)
		}
		n := len(r.since(0))
		moreUsed(t, stack, 4)
		faketime.Sleep(time.Minute)
		synctest.Wait()
		after := r.since(n)
		// Either the check or a change may come first.
		if len(after) > 2 || !slices.ContainsFunc(after, func(r api.CloudReport) bool { return r.Full }) {
			t.Errorf("%d reports, want at most two, one of them full", len(after))
		}
		s := r.status("paris")
		if got := s.Region("RegionOne").Zone("az-b").Available["cpu"]; got != "492" || s.Collector.Name != "c" {
			t.Errorf("available cpu %s, collector %+v", got, s.Collector)
		}
	})
}

// TestPushFailures checks that failed collections are counted on the server, too.
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
			t.Errorf("after two minutes: unexpected region %+v", got)
		}
		r.set(true, false)
		faketime.Sleep(10 * time.Minute)
		r.set(false, false)
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := r.status("paris").Regions[0]; !got.Unreachable() || len(got.Zones) != 2 {
			t.Errorf("after twelve minutes: unexpected region %+v", got)
		}
		n := len(r.since(0))
		faketime.Sleep(time.Hour)
		if more := r.since(n); len(more) != 0 {
			t.Errorf("%d reports in an hour of the same failure, want none", len(more))
		}
		stop()
		// After a restart, a collector knows no amounts. Those it does not know must not be removed.
		defer r.collect(t, "d", stack, access())()
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		if got := r.status("paris").Regions[0]; len(got.Zones) != 2 || got.Failures == 0 {
			t.Errorf("after a restart: unexpected region %+v", got)
		}
		stack.reply(aggregates, says(200, `{"aggregates":[]}`))
		faketime.Sleep(2 * time.Minute)
		synctest.Wait()
		r.expectCollected("paris", isCurrent)
		if got := r.status("paris").Regions[0]; len(got.Zones) != 1 || got.Zones[0].Name != defaultZone {
			t.Errorf("after the recovery: unexpected region %+v", got)
		}
	})
}

// TestPushWrongPassword checks the error if the collector's login is rejected.
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

// TestPushAfterTheServerLostTheAmounts checks that, without changes in OpenStack, a cloud that was deleted and created
// again, and a server with an empty store, get all amounts within an interval.
func TestPushAfterTheServerLostTheAmounts(t *testing.T) {
	for name, lose := range map[string]func(r *receiver){
		"deleted and created again at once": func(r *receiver) {
			r.remove("paris")
			r.settle(r.put("paris", &api.OpenStackSpec{AuthURL: keystoneURL}))
		},
		"deleted, and created again later": func(r *receiver) {
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
				t.Errorf("%d writes by requests for the state, want none", got-writes)
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

// TestPushEverythingAtIntervals does not depend on the server's responses.
func TestPushEverythingAtIntervals(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r, stack := newReceiver(t), newRecorded(t)
		r.refresh = 0 // the default
		defer r.collect(t, "c", stack, access())()
		faketime.Sleep(time.Hour + time.Minute)
		synctest.Wait()
		reports := r.since(0)
		if len(reports) < 6 || len(reports) > 7 {
			t.Errorf("%d reports in an hour, want 6 or 7", len(reports))
		}
		for _, report := range reports {
			if !report.Full || len(report.Regions) != 1 {
				t.Errorf("got %+v", report)
			}
		}
	})
}

// TestPushKeepsToTheLimitOfTheServer works for any limit.
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
