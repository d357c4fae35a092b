package notify

import (
	"fmt"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
)

// delivery is what is sent at once: one event, or several.
type delivery struct {
	notification *api.Notification
	id           string
	events       []event
	// done is where the history is read from after the delivery; zero if something before is not
	// delivered yet.
	done history.Cursor
}

// deliveries returns what is sent about events, which are not empty: each on its own, or all together.
func deliveries(n *api.Notification, each bool, events []event) []*delivery {
	if settle, _ := n.Spec.Settle.Parse(); settle > 0 { // it was validated
		events = merged(events)
	}
	if !each {
		d := &delivery{notification: n, events: events, done: last(events)}
		d.id = hashed(events[0].id, events[len(events)-1].id)
		return []*delivery{d}
	}
	all := make([]*delivery, len(events))
	for i := range events {
		all[i] = &delivery{notification: n, id: events[i].id, events: events[i : i+1]}
	}
	// What is behind the cursor must have been delivered.
	var next *history.Cursor
	for i := len(events) - 1; i >= 0; i-- {
		if at := last(events[:i+1]); next == nil || at.Compare(*next) < 0 {
			all[i].done = at
		}
		if next == nil || events[i].first.Compare(*next) < 0 {
			next = &events[i].first
		}
	}
	return all
}

// byObject returns what a delivery tells of each object.
func (d *delivery) byObject() []*delivery {
	var order []api.Key
	of := map[api.Key][]event{}
	for i := range d.events {
		key := d.events[i].object.Key
		if _, ok := of[key]; !ok {
			order = append(order, key)
		}
		of[key] = append(of[key], d.events[i])
	}
	if len(order) == 1 {
		return []*delivery{d}
	}
	parts := make([]*delivery, len(order))
	for i, key := range order {
		parts[i] = deliveries(d.notification, false, of[key])[0]
		parts[i].done = history.Cursor{} // there is more
	}
	return parts
}

// object returns the object that all events of a delivery are about.
func (d *delivery) object() api.Key { return d.events[0].object.Key }

func last(events []event) (at history.Cursor) {
	for i := range events {
		if events[i].last.Compare(at) > 0 {
			at = events[i].last
		}
	}
	return at
}

// since is when the last of the events happened.
func (d *delivery) since() (at time.Time) {
	for i := range d.events {
		if t := d.events[i].time; t.After(at) {
			at = t
		}
	}
	return at
}

// maxLines is how many events are named in a text.
const maxLines = 20

// lines are sentences about the events.
func (d *delivery) lines() []string {
	var lines []string
	for i := range d.events {
		if i == maxLines {
			return append(lines, fmt.Sprintf("and %d more", len(d.events)-i))
		}
		lines = append(lines, d.events[i].summary())
	}
	return lines
}

// summary is a sentence about all events.
func (d *delivery) summary() string {
	text := d.events[0].summary()
	if more := len(d.events) - 1; more > 0 {
		text += fmt.Sprintf(" (and %d more)", more)
	}
	return text
}

// kinds are the kinds of the events, each once.
func (d *delivery) kinds() string {
	var kinds []string
	seen := map[api.NotificationEvent]bool{}
	for i := range d.events {
		if kind := d.events[i].kind; !seen[kind] {
			seen[kind] = true
			kinds = append(kinds, string(kind))
		}
	}
	return strings.Join(kinds, ",")
}

// path names the notification.
func (d *delivery) path() string { return api.KeyOf(d.notification).Path() }

// data is the JSON of the first events.
func (d *delivery) data() []data {
	all := make([]data, min(len(d.events), maxLines))
	for i := range all {
		all[i] = d.events[i].data(d.notification)
	}
	return all
}
