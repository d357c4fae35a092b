package health

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// outcome is the result of a probe or heartbeat.
type outcome int

const (
	// success: the cluster is healthy.
	success outcome = iota
	// refused: it responds, but reports that it is unhealthy.
	refused
	// unreachable: it does not respond.
	unreachable
	// pressed: it responds, and its nodes are under pressure.
	pressed
	// notReady: it responds, and its nodes are not ready.
	notReady
)

// state returns the state of a cluster after a failure of this kind.
func (o outcome) state() api.ClusterState {
	switch o {
	case refused, pressed:
		return api.StateUnhealthy
	case notReady:
		return api.StateNotReady
	case success, unreachable:
	}
	return api.StateOffline
}

// thresholds are the numbers of consecutive results that change the state.
type thresholds struct{ failure, success int64 }

// health is the state of a cluster, with the counters that determine changes.
type health struct {
	state     api.ClusterState // "" = unknown
	successes int64            // consecutive
	failures  int64            // consecutive
	last      outcome          // of the last failure
	alike     int64            // consecutive failures of the same kind as the last one
}

// after returns the health after another result:
//
//	pending     one success → online; failures up to the threshold → out
//	online      failures up to the threshold → out
//	offline     a success, or an answer about its nodes → connecting
//	connecting  successes up to the threshold → online; a failure → out
//	unhealthy   successes up to the threshold → online
//
// "Out" is offline if the cluster does not respond, unhealthy if it responds with an error or its
// nodes are under pressure, and notready if its nodes are not ready. A cluster that is out changes
// between these states only after a threshold of failures of the other kind.
func (h health) after(o outcome, t thresholds) health {
	if o == success {
		return h.succeed(t)
	}
	if h.failures > 0 && h.last == o {
		h.alike++
	} else {
		h.alike = 1
	}
	h.failures++
	h.successes, h.last = 0, o
	out := o.state()
	switch h.state {
	case api.StateConnecting:
		h.state = out
	case api.StateOffline:
		switch {
		case o == pressed || o == notReady:
			h.state = api.StateConnecting // it is back; the next result determines its health
		case h.alike >= t.failure:
			h.state = out
		}
	case "", api.StatePending:
		h.state = api.StatePending
		if h.failures >= t.failure {
			h.state = out
		}
	case api.StateOnline:
		if h.failures >= t.failure {
			h.state = out
		}
	default:
		if h.alike >= t.failure {
			h.state = out
		}
	}
	return h
}

func (h health) succeed(t thresholds) health {
	h.failures, h.alike = 0, 0
	h.successes++
	switch h.state {
	case "", api.StatePending, api.StateOnline:
		h.state = api.StateOnline
	case api.StateOffline, api.StateConnecting:
		h.state = api.StateConnecting
		if h.successes >= t.success {
			h.state = api.StateOnline
		}
	default:
		if h.successes >= t.success {
			h.state = api.StateOnline
		}
	}
	return h
}

// silent returns the health after heartbeats have been missing for too long. A cluster that never
// sent one stays pending.
func (h health) silent() health {
	if h.state == api.StateOnline || h.state == api.StateConnecting {
		return health{state: api.StateOffline}
	}
	return h
}
