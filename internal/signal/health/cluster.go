package health

import (
	"context"
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/status"
)

// Expected heartbeats of a cluster without a health block that has sent one: an agent reports every
// 30 seconds and may miss two reports.
const (
	agentInterval         = 30 * time.Second
	agentFailureThreshold = 3
	agentSuccessThreshold = api.DefaultSuccessThreshold
)

// mode is how the state of a cluster is determined.
type mode int

const (
	// unwatched: there is no health block, and no heartbeat has ever been received.
	unwatched mode = iota
	probed
	heartbeats
	// observed: a Kubernetes cluster with a kubeconfig.
	observed
	// awaited: the cluster does not exist yet.
	awaited
)

// check is how one cluster is monitored.
type check struct {
	mode     mode
	url      string
	interval time.Duration
	thresholds
	// kubeconfig is used to observe the cluster, even if a probe determines its state.
	kubeconfig api.Secret
}

// checkOf returns the check of a cluster with its known status.
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

// grace returns how long heartbeats may be missing.
func (k check) grace() time.Duration { return k.interval * time.Duration(k.failure) }

// timeout returns the timeout of a probe.
func (k check) timeout() time.Duration { return min(k.interval, maxProbe) }

// cluster is the state of one cluster. Its fields are guarded by the monitor's lock, except
// writing.
type cluster struct {
	name     string
	object   *api.Cluster
	revision int64 // of the user-written part
	latest   int64 // change that the tracker waits for
	check    check
	health   health
	wanted   api.ClusterStatus // the desired status
	written  api.ClusterStatus // the stored status
	storedAt int64             // revision of written
	// doubtful says that a write failed since, which may have been stored all the same.
	doubtful bool

	probeAt  time.Time // next probe; zero = none
	deadline time.Time // when heartbeats have been missing for too long; zero = never
	flushAt  time.Time // when to store wanted; zero = nothing to store
	due      time.Time // earliest of the three when it was queued
	index    int       // index in the queue; -1 = not queued
	// unprobed says that the change is processed only by the next probe.
	unprobed bool
	// unobserved says the same of the next observation.
	unobserved bool
	pods       uint64 // last observed set of pods; 0 = none yet
	early      bool   // older than the server's start
	epoch      int    // counts changes of the check; results of older probes are ignored
	interrupt  context.CancelFunc

	changed chan struct{} // closed at the next change of the user-written part
	gone    bool
	writing chan struct{} // held by the writer of the status
	retry   status.Retry
}

// adopt returns the state of a cluster from the store.
func adopt(o *api.Cluster) *cluster {
	return &cluster{
		name: o.Metadata.Name, object: o, wanted: o.Status, written: o.Status, health: health{state: o.Status.State}, index: -1,
		changed: make(chan struct{}), writing: make(chan struct{}, 1),
	}
}

// update applies the user-written part.
func (c *cluster) update(o *api.Cluster, revision int64, now time.Time) {
	first := c.revision == 0
	reported := len(o.Spec.Allocated) > 0
	if first {
		// Written while no server was running, or new.
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
			c.wanted.Allocated = nil // values from heartbeats are older
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
	if c.check.mode != unwatched || c.wanted.CapacityReportedAt != nil || len(c.wanted.Taints) > 0 || o.SpotEnabled() || c.written.ObservedGeneration != 0 || o.Status.ObservedGeneration != 0 {
		c.wanted.ObservedGeneration = o.Metadata.Generation
	}
}

// watch changes how the cluster is monitored. Its known state holds until new results contradict
// it.
func (c *cluster) watch(next check, now time.Time) {
	// With the same kubeconfig, the observer continues and determines when the next probe is due.
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
		// A full grace period, also after a restart: heartbeats could not be received before.
		c.deadline = now.Add(next.grace())
	case awaited:
		// A cluster that once existed still exists, even if nothing monitors it anymore.
		if c.health.state != "" && c.health.state != api.StatePending {
			c.become(health{state: api.StateOnline}, reasonNotChecked, "its health is no longer checked", now)
		}
	case unwatched:
		c.health = health{}
		if c.wanted.State != "" {
			c.wanted.State = ""
			api.RemoveCondition(&c.wanted.Conditions, api.ConditionReady)
		}
	}
}

// answered reports whether all changes by users have been processed.
func (c *cluster) answered() bool { return !c.unprobed && !c.unobserved }

// begin sets the initial state of a cluster. A new cluster is pending until it has shown that it is
// healthy. An existing one without a health check was online, and stays so until it fails: what
// runs on it is not moved because monitoring starts. That also applies if it had its kubeconfig
// before the server could observe clusters. A cluster that does not exist yet is pending when it is
// first seen; if cloud constraints are added later, the cluster exists.
func (c *cluster) begin(first bool, now time.Time) {
	switch {
	case c.check.mode == unwatched || c.health.state != "":
	case c.check.mode == awaited:
		if first && c.object.Status.ObservedGeneration == 0 && (c.object.Metadata.Generation <= 1 || !c.early) {
			c.become(health{state: api.StatePending}, reasonNotCreated,
				"it has yet to be created: no kubeconfig, health check, heartbeat or amounts show that it exists", now)
		}
	case c.object.Metadata.Generation <= 1 && (!c.early || c.check.mode != observed):
		c.become(health{state: api.StatePending}, reasonNotChecked, "the health check has no result yet", now)
	default:
		c.become(health{state: api.StateOnline}, reasonNotChecked, "the health check has no result yet", now)
	}
}

// reasonNotChecked is the reason of an unconfirmed state.
const reasonNotChecked = "NotChecked"

// reasonNotCreated is the reason of a cluster that does not exist yet.
const reasonNotCreated = "NotCreated"

// become sets the health in the wanted status. The condition describes what caused the current
// state, so it is kept as long as the state is.
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

// next returns when something must be done for the cluster; zero = never.
func (c *cluster) next() time.Time {
	var at time.Time
	for _, t := range []time.Time{c.probeAt, c.deadline, c.flushAt} {
		if !t.IsZero() && (at.IsZero() || t.Before(at)) {
			at = t
		}
	}
	return at
}
