package openstack

import (
	"context"
	"errors"
	"math/rand/v2"
	"net/http"
	"slices"
	"sync"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
	"github.com/scheduler/terraform-provider-scheduler/internal/workers"
)

const (
	// startWithin is the time over which the first collections after a restart are spread.
	startWithin = 5 * time.Second
	// jitter is the fraction by which an interval is randomly shortened.
	jitter = 0.1
	// loginAgain is how often the catalog is refreshed: a new region appears only in a new token.
	loginAgain = 30 * time.Minute
)

// collector reads one OpenStack cloud, each region at its own pace: a slow or broken region delays
// no other.
type collector struct {
	name         string // of the cloud
	spec         *api.OpenStackSpec
	network      *addresspolicy.Policy
	roundTripper http.RoundTripper
	now          func() time.Time
	lanes        *lanes
	figures      *metrics
	faults       *recovery.Component
	tracer       *tracing.Tracer
	// known says that there is data from before, so that there is no hurry.
	known bool
	// keep accepts results: change returns the new status of the cloud. answered says that every
	// region has been tried once.
	keep func(ctx context.Context, change func(api.CloudStatus) api.CloudStatus, answered bool)

	// Only used by run.
	refused  bool // the last login failed
	loggedIn time.Time

	mu      sync.Mutex
	session *session
	untried map[string]bool // regions not tried yet; nil = unknown
}

// run collects until ctx is done.
func (c *collector) run(ctx context.Context) {
	ctx, stop := context.WithCancel(ctx)
	var running sync.WaitGroup
	defer running.Wait()
	defer func() {
		if s := c.current(); s != nil {
			s.close()
		}
	}()
	defer stop() // also where it panics
	regions := workers.New(c.faults, func(string) string { return api.Key{Kind: api.KindCloud, Name: c.name}.String() })
	running.Go(func() { _ = regions.Run(ctx) }) // it has no error of its own
	followed := map[string]bool{}
	interval := c.spec.Interval.Or(time.Minute)
	if c.known && !backoff.Wait(ctx, time.Duration(rand.Float64()*float64(min(startWithin, interval)))) {
		return
	}
	for {
		names, err := c.regions(ctx)
		switch {
		case ctx.Err() != nil:
			return
		case err != nil:
			c.unreachable(ctx, failureOf("logging in at "+c.spec.AuthURL, err))
		default:
			c.expect(ctx, names)
			for name := range followed {
				if !slices.Contains(names, name) {
					regions.Stop(name)
					delete(followed, name)
				}
			}
			for _, name := range names {
				if !followed[name] {
					regions.Start(name, func(ctx context.Context) error { c.follow(ctx, name, interval); return nil })
					followed[name] = true
				}
			}
		}
		if !backoff.Wait(ctx, jittered(interval)) {
			return
		}
	}
}

// regions returns the sorted names of the regions to collect. It logs in if the last login is too
// old.
func (c *collector) regions(ctx context.Context) ([]string, error) {
	if c.current() == nil || c.now().Sub(c.loggedIn) > loginAgain {
		s, err := c.login(ctx)
		c.refused = err != nil
		if err != nil && c.current() == nil {
			return nil, err
		}
		// If login fails, continue with the old token while it is valid; after that, each region
		// reports the failure.
		if err == nil {
			c.replace(s)
		}
	}
	if len(c.spec.Regions) > 0 {
		return slices.Sorted(slices.Values(c.spec.Regions)), nil
	}
	names := c.current().regions()
	if len(names) == 0 {
		return nil, failed("the identity service at %s lists no compute service", c.spec.AuthURL)
	}
	return names, nil
}

// login waits for its turn, and then has the timeout of a collection.
func (c *collector) login(ctx context.Context) (_ *session, err error) {
	leave, err := c.lanes.enter(ctx, c.refused)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, c.spec.Timeout.Or(time.Minute))
	defer cancel()
	ctx, span := c.tracer.Begin(ctx, "log in to cloud", time.Now())
	defer func() { span.End(err) }()
	span.Object(string(api.KindCloud), "", c.name)
	return login(ctx, c.spec, c.network, c.roundTripper)
}

func (c *collector) current() *session {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.session
}

func (c *collector) replace(s *session) {
	c.mu.Lock()
	old := c.session
	c.session = s
	c.mu.Unlock()
	c.loggedIn = c.now()
	if old != nil {
		old.close()
	}
}

// unreachable records that OpenStack cannot be queried at all.
func (c *collector) unreachable(ctx context.Context, f *Failure) {
	c.figures.failed(c.name, "")
	c.keep(ctx, func(old api.CloudStatus) api.CloudStatus {
		report := api.CloudReport{Error: f.Message, Reason: f.Reason}
		if len(c.spec.Regions) > 0 {
			// The regions are configured, so they are known without a query.
			report = api.CloudReport{}
			for _, name := range c.spec.Regions {
				report.Regions = append(report.Regions, api.CloudRegionReport{Name: name, Error: f.Message, Reason: f.Reason})
			}
		}
		return apply(old, report, c.now())
	}, true)
}

// expect records which regions exist. Others are gone; those that were not collected yet are
// pending, to distinguish them from missing ones.
func (c *collector) expect(ctx context.Context, names []string) {
	c.mu.Lock()
	if c.untried == nil {
		c.untried = map[string]bool{}
		for _, name := range names {
			c.untried[name] = true
		}
	}
	c.mu.Unlock()
	c.keep(ctx, func(old api.CloudStatus) api.CloudStatus {
		regions := make([]api.CloudRegion, 0, len(names))
		for _, name := range slices.Sorted(slices.Values(names)) {
			if r := old.Region(name); r != nil {
				regions = append(regions, *r)
			} else {
				regions = append(regions, api.CloudRegion{Name: name, Reason: api.ReasonPending, Message: "not collected yet"})
			}
		}
		if slices.EqualFunc(regions, old.Regions, func(a, b api.CloudRegion) bool { return a.Name == b.Name }) {
			return old
		}
		old.Regions = regions
		old.Conditions = withCollected(old, api.CloudReport{}, c.now())
		return old
	}, false)
}

// follow collects one region at intervals.
func (c *collector) follow(ctx context.Context, name string, interval time.Duration) {
	r := &region{name: name}
	failing := false
	for {
		begun := c.now()
		found, err := c.collect(ctx, r, failing)
		if interrupted(ctx) {
			return
		}
		failing = err != nil
		c.note(ctx, name, found, err)
		if !backoff.Wait(ctx, max(jittered(interval)-c.now().Sub(begun), interval/10)) {
			return
		}
	}
}

// collect reads the region once. Failing regions have their own limit, because they may use the
// whole timeout.
func (c *collector) collect(ctx context.Context, r *region, failing bool) (_ *api.CloudRegion, err error) {
	leave, err := c.lanes.enter(ctx, failing)
	if err != nil {
		return nil, err
	}
	defer leave()
	ctx, cancel := context.WithTimeout(ctx, c.spec.Timeout.Or(time.Minute))
	defer cancel()
	begun := c.now()
	ctx, span := c.tracer.Begin(ctx, "collect region", time.Now())
	defer func() { span.End(err) }()
	span.Object(string(api.KindCloud), "", c.name)
	r.session = c.current()
	var found *api.CloudRegion
	err = recovery.Confine(api.Key{Kind: api.KindCloud, Name: c.name}.String(), func() (err error) {
		found, err = r.collect(ctx)
		return err
	})
	if p, ok := errors.AsType[*recovery.Panic](err); ok {
		c.faults.Note(p)
		*r = region{name: r.name} // its cached data may be inconsistent
	}
	c.figures.duration.Observe(c.now().Sub(begun).Seconds())
	if err != nil {
		return nil, err
	}
	found.ObservedAt = &begun // decisions made from now on are not contained in the data
	return found, nil
}

// note applies the result of a collection.
func (c *collector) note(ctx context.Context, name string, found *api.CloudRegion, err error) {
	c.mu.Lock()
	delete(c.untried, name)
	answered := len(c.untried) == 0
	c.mu.Unlock()
	c.keep(ctx, func(old api.CloudStatus) api.CloudStatus {
		if err != nil {
			f := failureOf("collecting", err)
			c.figures.failed(c.name, name)
			return apply(old, api.CloudReport{Regions: []api.CloudRegionReport{{Name: name, Error: f.Message, Reason: f.Reason}}}, c.now())
		}
		from := &api.CloudRegion{}
		if known := old.Region(name); known != nil {
			from = known
		}
		report := difference(from, found)
		if report == nil {
			return old
		}
		return apply(old, api.CloudReport{Regions: []api.CloudRegionReport{*report}}, *found.ObservedAt)
	}, answered)
}

func jittered(interval time.Duration) time.Duration {
	return time.Duration(float64(interval) * (1 - jitter*rand.Float64()))
}

// lanes limit how many regions are read concurrently.
type lanes struct{ well, failing *semaphore.Weighted }

func newLanes(width int) *lanes {
	return &lanes{well: semaphore.NewWeighted(int64(width)), failing: semaphore.NewWeighted(int64(width))}
}

// enter waits for capacity.
func (l *lanes) enter(ctx context.Context, failing bool) (leave func(), err error) {
	lane := l.well
	if failing {
		lane = l.failing
	}
	if err := lane.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	return func() { lane.Release(1) }, nil
}
