package history

import (
	"fmt"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/jsonform"
)

// Notice says that a state of an object has begun, or is over, of which notifications tell. It is
// recorded with the status that shows it, so that none is lost.
type Notice struct {
	// Event is what has happened. If it is api.EventRecovered, Recovered is what is over.
	Event     api.NotificationEvent `json:"event"`
	Recovered api.NotificationEvent `json:"recovered,omitempty"`
	// Cluster is the one that a workload leaves.
	Cluster string `json:"cluster,omitempty"`
	Reason  string `json:"reason,omitempty"`
	Message string `json:"message,omitempty"`
}

// Event is a record as notifications need it.
type Event struct {
	Entry   api.HistoryEntry
	Notices []Notice
	// Decided says that a decision has changed. If not, the entry has only the object and the time.
	Decided bool
}

// DecodeEvent returns the event of an item that is no gap.
func DecodeEvent(item Item) (Event, error) {
	entry, _, err := Decode(item)
	if err != nil {
		return Event{}, err
	}
	var d struct {
		Notices []Notice `json:"notices"`
		Only    bool     `json:"notices_only"`
	}
	if err := jsonv2.Unmarshal(item.Record, &d); err != nil {
		return Event{}, fmt.Errorf("decode the notices of the history, written at revision %d: %w", item.Cursor.Revision, err)
	}
	return Event{entry, d.Notices, !d.Only}, nil
}

// EncodeStates returns the record of what notifications tell of a change of an object whose decision stays as it is; nil
// if it is nothing.
func EncodeStates(before, after api.Object, now time.Time) ([]byte, error) {
	return encodeNotices(after, transitions(decidedStates(before), decidedStates(after)), now)
}

// EncodeObserved returns the record of what notifications tell of a change of what was observed of a cluster or
// a metrics provider; nil if it is nothing. Both versions are of one object, and before may be nil.
func EncodeObserved(before, after api.Object, now time.Time) ([]byte, error) {
	return encodeNotices(after, transitions(observedStates(before), observedStates(after)), now)
}

func encodeNotices(object api.Object, notices []Notice, now time.Time) ([]byte, error) {
	if len(notices) == 0 {
		return nil, nil
	}
	d := document{
		Time: now.UTC(), Object: api.HistoryObject{Key: api.KeyOf(object), UID: object.Meta().UID}, Moved: []api.HistoryMove{},
		Notices: notices, NoticesOnly: true,
	}
	record, err := jsonform.Marshal(&d)
	if err != nil {
		return nil, fmt.Errorf("encode the notices of %s: %w", d.Object.Key, err)
	}
	return record, nil
}

// state is one in which an object can be, of which notifications tell.
type state struct {
	event   api.NotificationEvent
	cluster string
	// kind distinguishes states of one event, each of which is told of.
	kind            string
	reason, message string
}

// transitions are the notices about the difference between the states of two versions of an object.
func transitions(before, after []state) (notices []Notice) {
	for _, old := range before {
		if find(after, old) == nil {
			notices = append(notices, Notice{Event: api.EventRecovered, Recovered: old.event, Cluster: old.cluster, Reason: old.reason})
		}
	}
	for _, now := range after {
		if old := find(before, now); old == nil || old.kind != now.kind && now.kind != "" {
			notices = append(notices, Notice{Event: now.event, Cluster: now.cluster, Reason: now.reason, Message: now.message})
		}
	}
	return notices
}

func find(states []state, like state) *state {
	for i := range states {
		if states[i].event == like.event && states[i].cluster == like.cluster {
			return &states[i]
		}
	}
	return nil
}

// decidedStates are the states of an object that follow from its decision.
func decidedStates(object api.Object) (states []state) {
	var evictions []api.Eviction
	undecided := api.ConditionScheduled
	switch o := object.(type) {
	case *api.Placement:
	case *api.Workload:
		evictions = o.Status.Evictions
	case *api.Cluster, *api.MagnumCluster:
		undecided = api.ConditionBound
	default:
		return nil
	}
	conditions := *api.ConditionsOf(object)
	for i := range conditions {
		c := &conditions[i]
		s := state{reason: c.Reason, message: c.Message}
		switch {
		case c.Type == undecided && c.Status == api.ConditionFalse:
			s.event = api.EventUndecided
		case c.Type == api.ConditionMoveHeld && c.Status == api.ConditionTrue:
			s.event = api.EventHeld
		case c.Type == api.ConditionFailoverHeld && c.Status == api.ConditionTrue:
			s.event = api.EventBrake
		case c.Type == api.ConditionRollingOut:
			if s.event = api.EventStaged; c.Reason == api.ReasonWaitingForApproval || c.Reason == api.ReasonTooManyFailures {
				s.kind = c.Reason // somebody has to do something
			}
		default:
			continue
		}
		states = append(states, s)
	}
	for i := range evictions {
		e := &evictions[i]
		states = append(states, state{event: api.EventEvicting, cluster: e.Cluster, reason: e.Reason, message: e.Message})
	}
	return states
}

// observedStates are the states of an object that were observed.
func observedStates(object api.Object) []state {
	switch o := object.(type) {
	case *api.Cluster:
		switch o.Status.State {
		case api.StateOffline, api.StateUnhealthy, api.StateNotReady, api.StateConnecting:
			s := state{event: api.EventClusterOffline, cluster: o.Metadata.Name, reason: string(o.Status.State)}
			if c := api.FindCondition(o.Status.Conditions, api.ConditionReady); c != nil {
				s.message = c.Message
			}
			return []state{s}
		case api.StateOnline, api.StatePending:
		}
	case *api.MetricsProvider:
		if c := api.FindCondition(o.Status.Conditions, api.ConditionAvailable); c != nil && c.Status == api.ConditionFalse {
			return []state{{event: api.EventProviderFailing, reason: c.Reason, message: c.Message}}
		}
	}
	return nil
}
