package health

import "github.com/scheduler/terraform-provider-scheduler/internal/api"

// outcome is what one probe, or one heartbeat, says.
type outcome int

const (
	// success: the cluster is well.
	success outcome = iota
	// refused: it answers, but says that it is not well.
	refused
	// unreachable: it does not answer.
	unreachable
	// pressed: it answers, and its nodes are under pressure.
	pressed
	// notReady: it answers, and its nodes are not ready.
	notReady
)

// state is that of a cluster which a failure has taken out.
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

// thresholds are how many outcomes of one sort in a row change the state.
type thresholds struct{ failure, success int64 }

// health is the state of a cluster with what it takes to change it.
type health struct {
	state     api.ClusterState // "" = nothing is known yet
	successes int64            // in a row
	failures  int64            // in a row
	last      outcome          // of the latest failure
	alike     int64            // failures in a row that are like the latest
}

// after returns the health after one more outcome:
//
//	pending     one success → online; failures up to the threshold → out
//	online      failures up to the threshold → out
//	offline     a success, or an answer about its nodes → connecting
//	connecting  successes up to the threshold → online; a failure → out
//	unhealthy   successes up to the threshold → online
//
// "Out" is offline where the cluster does not answer, unhealthy where it answers
// with an error or its nodes are under pressure, and notready where its nodes are
// not ready. A cluster that is out changes from one to the other
// only after a threshold of failures of the other sort.
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
			h.state = api.StateConnecting // it is there again; the next one says how it is
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

// silent returns the health once heartbeats have stayed away for too long. A
// cluster that never sent one stays pending.
func (h health) silent() health {
	if h.state == api.StateOnline || h.state == api.StateConnecting {
		return health{state: api.StateOffline}
	}
	return h
}
