package notify

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
)

// event is something that a notification tells of.
type event struct {
	id          string
	first, last history.Cursor // of what was made one
	time        time.Time
	kind        api.NotificationEvent
	recovered   api.NotificationEvent
	object      api.HistoryObject
	before      *api.HistoryDecision
	after       *api.HistoryDecision
	moved       []api.HistoryMove
	cause       *api.Cause
	cluster     string
	reason      string
	message     string
	changes     int // of the decision, that were made one
}

// eventsOf returns the events in an item of the history that a notification tells of. object is the
// present version, or nil.
func eventsOf(n *api.Notification, item history.Item, object func(api.Key) api.Object) ([]event, error) {
	recorded, err := history.DecodeEvent(item)
	if err != nil {
		return nil, err
	}
	entry := &recorded.Entry
	if !n.Selects(entry.Object.Key, object(entry.Object.Key)) {
		return nil, nil
	}
	common := event{first: item.Cursor, last: item.Cursor, time: entry.Time, object: entry.Object}
	var events []event
	if recorded.Decided && n.Spec.Tells(api.EventMoved, "") {
		e := common
		e.id, e.kind, e.changes = idOf(n, item.Cursor, 0), api.EventMoved, 1
		e.before, e.after, e.moved = entry.Before, entry.After, entry.Moved
		e.cause = causeFor(n, entry.Cause)
		events = append(events, e)
	}
	for i, notice := range recorded.Notices {
		if !n.Spec.Tells(notice.Event, notice.Recovered) {
			continue
		}
		e := common
		e.id, e.kind, e.recovered = idOf(n, item.Cursor, i+1), notice.Event, notice.Recovered
		e.cluster, e.reason, e.message = notice.Cluster, notice.Reason, notice.Message
		events = append(events, e)
	}
	return events, nil
}

// causeFor returns what the readers of a notification may know of a cause: who writes in a namespace
// may not be able to read what is outside, and values may be of something that they cannot read.
func causeFor(n *api.Notification, cause api.Cause) *api.Cause {
	shown := &api.Cause{Type: cause.Type}
	if cause.Object != nil && (n.Metadata.Namespace == "" || cause.Object.Namespace == n.Metadata.Namespace) {
		shown.Object, shown.Field = cause.Object, cause.Field
	}
	return shown
}

// idOf returns the ID of an event, which is the same whenever it is told.
func idOf(n *api.Notification, at history.Cursor, number int) string {
	return hashed(n.Metadata.UID, at.String(), fmt.Sprint(number))
}

func hashed(parts ...string) string {
	sum := sha256.Sum256([]byte(strings.Join(parts, "\n")))
	return hex.EncodeToString(sum[:16])
}

// merged makes several changes of one decision one, if nothing else happened to the object in
// between.
func merged(events []event) []event {
	var out []event
	latest := map[api.HistoryObject]int{} // the last event of each object in out
	for _, e := range events {
		if i, ok := latest[e.object]; ok && e.kind == api.EventMoved && out[i].kind == api.EventMoved {
			first := &out[i]
			first.id = hashed(first.id, e.id)
			first.last, first.time, first.after, first.cause = e.last, e.time, e.after, e.cause
			first.moved = history.Moved(first.before, first.after)
			first.changes += e.changes
			continue
		}
		latest[e.object] = len(out)
		out = append(out, e)
	}
	return out
}

// summary says what happened, as a sentence without a full stop.
func (e *event) summary() string {
	name := string(e.object.Kind) + " " + e.object.Path()
	name = strings.ReplaceAll(name, "_", " ")
	switch e.kind {
	case api.EventMoved:
		return name + e.movement()
	case api.EventUndecided:
		return "nothing fits " + name + because(e.message)
	case api.EventHeld:
		return name + " would move, but is held" + because(e.message)
	case api.EventStaged:
		return name + " changes in steps" + because(e.message)
	case api.EventEvicting:
		return name + " is leaving " + e.cluster + because(e.message)
	case api.EventBrake:
		return name + " stays on clusters that are offline" + because(e.message)
	case api.EventProviderFailing:
		return name + " cannot be read" + because(e.message)
	case api.EventClusterOffline:
		return name + " is " + e.reason + because(e.message)
	case eventTest:
		return "test of " + name + because(e.message)
	case api.EventRecovered:
		on := ""
		if e.cluster != "" && e.cluster != e.object.Name {
			on = " on " + e.cluster
		}
		return name + " is no longer " + states[e.recovered] + on
	}
	return name + ": " + string(e.kind)
}

// states are what an object was that has recovered.
var states = map[api.NotificationEvent]string{
	api.EventUndecided: "undecided", api.EventHeld: "held", api.EventStaged: "changing in steps", api.EventEvicting: "being evicted",
	api.EventBrake: "held on clusters that are offline", api.EventProviderFailing: "failing", api.EventClusterOffline: "offline",
}

func because(message string) string {
	if message == "" {
		return ""
	}
	return ": " + message
}

// movement says from where to where a decision has moved.
func (e *event) movement() string {
	switch {
	case e.after == nil:
		return " is gone"
	case e.before == nil:
		return " was decided: " + listed(e.after.Clusters)
	case len(e.moved) == 0:
		return " changed: " + listed(e.after.Clusters)
	}
	var parts []string
	for i, m := range e.moved {
		if i == maxMoves {
			parts = append(parts, fmt.Sprintf("and %d more", len(e.moved)-i))
			break
		}
		from, to := m.From, m.To
		if from == "" {
			from = "nowhere"
		}
		if to == "" {
			to = "nowhere"
		}
		part := from + " -> " + to
		if m.Replicas != nil {
			part = fmt.Sprintf("%d replicas %s", *m.Replicas, part)
		}
		parts = append(parts, part)
	}
	return " moved: " + strings.Join(parts, ", ")
}

// maxMoves is how many parts of a move are named in a sentence.
const maxMoves = 5

func listed(clusters []string) string {
	switch {
	case len(clusters) == 0:
		return "nowhere"
	case len(clusters) > maxMoves:
		return strings.Join(clusters[:maxMoves], ", ") + fmt.Sprintf(" and %d more", len(clusters)-maxMoves)
	}
	return strings.Join(clusters, ", ")
}

// data is the JSON of an event.
type data struct {
	Notification string                `json:"notification"`
	Event        api.NotificationEvent `json:"event"`
	Recovered    api.NotificationEvent `json:"recovered,omitempty"`
	Object       api.HistoryObject     `json:"object"`
	Revision     int64                 `json:"revision"`
	Time         time.Time             `json:"time"`
	Summary      string                `json:"summary"`
	Before       *api.HistoryDecision  `json:"before,omitempty"`
	After        *api.HistoryDecision  `json:"after,omitempty"`
	Moved        []api.HistoryMove     `json:"moved,omitempty"`
	Changes      int                   `json:"changes,omitempty"`
	Cause        *api.Cause            `json:"cause,omitempty"`
	Cluster      string                `json:"cluster,omitempty"`
	Reason       string                `json:"reason,omitempty"`
	Message      string                `json:"message,omitempty"`
	// Truncated says that before, after and moved have only the first of very many clusters.
	Truncated bool `json:"truncated,omitempty"`
}

// maxClusters is how many clusters of a decision are sent: receivers take messages of limited size.
const maxClusters = 100

// shortened returns a decision with at most maxClusters, and whether that is not all of it.
func shortened(d *api.HistoryDecision) (*api.HistoryDecision, bool) {
	if d == nil || len(d.Clusters) <= maxClusters {
		return d, false
	}
	short := &api.HistoryDecision{Clusters: d.Clusters[:maxClusters]}
	short.Replicas, short.OnDemand, short.Spot = only(short.Clusters, d.Replicas), only(short.Clusters, d.OnDemand), only(short.Clusters, d.Spot)
	short.Flavors = only(short.Clusters, d.Flavors)
	return short, true
}

func only[V any](names []string, all map[string]V) map[string]V {
	if all == nil {
		return nil
	}
	some := make(map[string]V, len(names))
	for _, name := range names {
		if v, ok := all[name]; ok {
			some[name] = v
		}
	}
	return some
}

func (e *event) data(n *api.Notification) data {
	before, less := shortened(e.before)
	after, lessAfter := shortened(e.after)
	moved := e.moved[:min(len(e.moved), maxClusters)]
	return data{
		Notification: api.KeyOf(n).Path(), Event: e.kind, Recovered: e.recovered, Object: e.object, Revision: e.last.Revision, Time: e.time, Summary: e.summary(),
		Before: before, After: after, Moved: moved, Truncated: less || lessAfter || len(moved) < len(e.moved), Changes: e.changes, Cause: e.cause, Cluster: e.cluster, Reason: e.reason, Message: e.message,
	}
}
