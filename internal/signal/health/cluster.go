package health

import (
	"context"
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
)

// The heartbeats expected of a cluster that has no health block but has sent
// one: an agent reports every 30 seconds and may miss two reports.
const (
	agentInterval         = 30 * time.Second
	agentFailureThreshold = 3
	agentSuccessThreshold = api.DefaultSuccessThreshold
)

// mode is how the state of a cluster is found out.
type mode int

const (
	// unwatched: there is no health block and never was a heartbeat.
	unwatched mode = iota
	probed
	heartbeats
	// observed: it is a Kubernetes cluster whose kubeconfig is known.
	observed
	// awaited: it is still to be created.
	awaited
)

// check is how one cluster is watched.
type check struct {
	mode     mode
	url      string
	interval time.Duration
	thresholds
	// kubeconfig is what the cluster is observed with, also where a probe decides
	// on its state.
	kubeconfig api.Secret
}

// checkOf reads the check out of a cluster, of which something is known.
func checkOf(c *api.Cluster, known *api.ClusterStatus) check {
	k := check{interval: 10 * time.Second, thresholds: thresholds{api.DefaultFailureThreshold, api.DefaultSuccessThreshold}}
	if access := c.Spec.Kubernetes; access != nil {
		k.kubeconfig = access.Kubeconfig
	}
	h := c.Spec.Health
	if h != nil {
		k.interval = max(h.Interval.Or(k.interval), 10*time.Millisecond)
		k.thresholds = thresholds{max(h.FailureThreshold, 1), max(h.SuccessThreshold, 1)}
	}
	switch {
	case h != nil && h.URL != "":
		k.mode, k.url = probed, h.URL
	case !k.kubeconfig.IsZero():
		k.mode = observed
	case h != nil:
		k.mode = heartbeats
	case known.LastHeartbeatAt != nil:
		return check{mode: heartbeats, interval: agentInterval, thresholds: thresholds{agentFailureThreshold, agentSuccessThreshold}}
	case c.Spec.Awaited(known):
		return check{mode: awaited}
	default:
		return check{}
	}
	return k
}

// grace is how long heartbeats may stay away.
func (k check) grace() time.Duration { return k.interval * time.Duration(k.failure) }

// timeout is how long a probe may take.
func (k check) timeout() time.Duration { return min(k.interval, maxProbe) }

// cluster is one cluster and what is known of it. Its fields are guarded by the
// monitor's lock, but for writing.
type cluster struct {
	name     string
	object   *api.Cluster
	revision int64 // of the user-written part
	latest   int64 // change that the tracker waits for
	check    check
	health   health
	wanted   api.ClusterStatus // what the status should be
	written  api.ClusterStatus // what is stored
	storedAt int64             // revision of that

	probeAt  time.Time // next probe; zero = none
	deadline time.Time // when the heartbeats have stayed away too long; zero = never
	flushAt  time.Time // when to store what is wanted; zero = nothing to store
	due      time.Time // the earliest of the three when it was put into the queue
	index    int       // position in the queue; -1 = not in it
	// unprobed says that the change is answered only by the next probe.
	unprobed bool
	// unobserved says the same of the next observation.
	unobserved bool
	pods       uint64 // set of pods that was observed last; 0 = none yet
	early      bool   // is older than the server's start
	epoch      int    // counts the changes of the check; an older probe says nothing
	interrupt  context.CancelFunc

	changed chan struct{} // closed at the next change of the user-written part
	gone    bool
	writing chan struct{} // held by who writes the status
	retry   status.Retry
}

// adopt takes over a cluster from the store that is not known yet.
func adopt(o *api.Cluster) *cluster {
	return &cluster{
		name: o.Metadata.Name, object: o, wanted: o.Status, written: o.Status, health: health{state: o.Status.State}, index: -1,
		changed: make(chan struct{}), writing: make(chan struct{}, 1),
	}
}

// update takes over the user-written part.
func (c *cluster) update(o *api.Cluster, revision int64, now time.Time) {
	first := c.revision == 0
	reported := len(o.Spec.Allocated) > 0
	if first {
		// Written while nobody looked, or new.
		reported = reported && o.Status.ObservedGeneration < o.Metadata.Generation
	} else {
		reported = reported && !maps.Equal(c.object.Spec.Allocated, o.Spec.Allocated)
	}
	if reported {
		at := now.UTC()
		if o.Metadata.ModifiedAt != nil {
			at = *o.Metadata.ModifiedAt
		}
		if old := c.wanted.CapacityReportedAt; old == nil || old.Before(at) {
			c.wanted.CapacityReportedAt = &at
			c.wanted.Allocated = nil // what a heartbeat gave is older
		}
	}
	c.object, c.revision = o, revision
	c.declare(now)
	next := checkOf(o, &c.wanted)
	if first || next != c.check {
		c.watch(next, now)
		c.begin(first, now)
	}
	c.forget()
	c.mark(now)
	if c.check.mode != unwatched || c.wanted.CapacityReportedAt != nil || len(c.wanted.Taints) > 0 || o.SpotEnabled() || c.written.ObservedGeneration != 0 {
		c.wanted.ObservedGeneration = o.Metadata.Generation
	}
}

// watch begins to watch the cluster in another way. What is known of its state
// holds until the new way proves otherwise.
func (c *cluster) watch(next check, now time.Time) {
	// The same kubeconfig is watched on, and tells when the next probe is due.
	c.unobserved = !next.kubeconfig.IsZero() && (c.unobserved || next.kubeconfig != c.check.kubeconfig)
	c.check = next
	c.health = health{state: c.health.state}
	c.probeAt, c.deadline, c.unprobed = time.Time{}, time.Time{}, false
	c.epoch++
	if c.interrupt != nil {
		c.interrupt()
	}
	switch next.mode {
	case probed:
		c.probeAt, c.unprobed = now, true
	case observed:
		c.unprobed = c.unobserved
	case heartbeats:
		// A full grace period, also after a restart: nobody was there to listen.
		c.deadline = now.Add(next.grace())
	case awaited:
		// What existed once exists, though nothing looks after it any more.
		if c.health.state != "" && c.health.state != api.StatePending {
			c.become(health{state: api.StateOnline}, reasonNotChecked, "nothing checks whether it is online any more", now)
		}
	case unwatched:
		c.health = health{}
		if c.wanted.State != "" {
			c.wanted.State = ""
			api.RemoveCondition(&c.wanted.Conditions, api.ConditionReady)
		}
	}
}

// answered reports whether everything that the user changed is answered.
func (c *cluster) answered() bool { return !c.unprobed && !c.unobserved }

// begin gives a cluster whose state is not known yet the one it starts from. A
// new cluster is pending until it has shown that it is well; one that was there
// without a health check was online, and stays so until it has failed: what runs
// on it is not moved because somebody begins to look. That is also so where it had
// its kubeconfig before the server watched any. One that is still to be created is
// pending where it is met for the first time: who asks for a cloud later has one that
// runs.
func (c *cluster) begin(first bool, now time.Time) {
	switch {
	case c.check.mode == unwatched || c.health.state != "":
	case c.check.mode == awaited:
		if first && c.object.Status.ObservedGeneration == 0 && (c.object.Metadata.Generation <= 1 || !c.early) {
			c.become(health{state: api.StatePending}, reasonNotCreated,
				"it is still to be created: nothing shows yet that it exists, as a kubeconfig, a health check, a heartbeat or amounts would", now)
		}
	case c.object.Metadata.Generation <= 1 && (!c.early || c.check.mode != observed):
		c.become(health{state: api.StatePending}, reasonNotChecked, "the health check has not spoken yet", now)
	default:
		c.become(health{state: api.StateOnline}, reasonNotChecked, "the health check has not spoken yet", now)
	}
}

// reasonNotChecked is that of a state nothing has confirmed yet.
const reasonNotChecked = "NotChecked"

// reasonNotCreated is that of a cluster that is still to be created.
const reasonNotCreated = "NotCreated"

// become puts the health into the wanted status. The condition says what
// brought the present state about, so it stays while the state does.
func (c *cluster) become(h health, reason, message string, now time.Time) {
	c.health = h
	if c.wanted.State == h.state {
		return
	}
	c.wanted.State = h.state
	c.wanted.ObservedGeneration = c.object.Metadata.Generation
	var status api.ConditionStatus
	switch h.state {
	case api.StateOnline:
		status = api.ConditionTrue
	case api.StatePending:
		status = api.ConditionUnknown
	default:
		status = api.ConditionFalse
	}
	api.SetCondition(&c.wanted.Conditions, api.Condition{
		Type: api.ConditionReady, Status: status, Reason: reason, Message: message,
	}, now)
	c.mark(now)
}

// next is when something is to be done for the cluster; zero = never.
func (c *cluster) next() time.Time {
	var at time.Time
	for _, t := range []time.Time{c.probeAt, c.deadline, c.flushAt} {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}
