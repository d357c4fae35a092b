package history

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	jsonv2 "github.com/go-json-experiment/json"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/jsonform"
)

// Move is what is recorded of a change of a decision besides the decision itself.
type Move struct {
	Time   time.Time
	Cause  *api.Cause
	Actor  *api.HistoryActor
	Margin *api.HistoryMargin
	// Written is the spec that was written in the same transaction, as store.Codec.EncodeInputs gives it: no pass has seen it.
	// Its kind is that of the object of the cause. Nil = none was.
	Written json.RawMessage
}

// document is the JSON of a record: the entry, except for the revision, which is that of its transaction, and the status
// that was written with it.
type document struct {
	Time   time.Time            `json:"time"`
	Object api.HistoryObject    `json:"object"`
	Before *api.HistoryDecision `json:"before,omitempty"`
	After  *api.HistoryDecision `json:"after,omitempty"`
	Moved  []api.HistoryMove    `json:"moved"`
	Cause  *api.Cause           `json:"cause"`
	Actor  *api.HistoryActor    `json:"actor,omitempty"`
	Margin *api.HistoryMargin   `json:"margin,omitempty"`
	Status json.RawMessage      `json:"status,omitempty"`
	// Written is Move.Written.
	Written json.RawMessage `json:"written,omitempty"`
	// Notices are what notifications tell of besides the change of the decision. NoticesOnly says that
	// the decision has not changed, so that only they read the record.
	Notices     []Notice `json:"notices,omitempty"`
	NoticesOnly bool     `json:"notices_only,omitempty"`
}

// Encode returns the record of the change from one version of an object to another, either of which may be nil; nil
// if the decision is the same, and there is nothing else to tell of. status is the JSON of the new status. kept says
// that the record has it, so that later passes need not record it among their inputs.
func Encode(before, after api.Object, move Move, status []byte) (record []byte, kept bool, err error) {
	was, is := decisionOf(before), decisionOf(after)
	notices := transitions(decidedStates(before), decidedStates(after))
	object := after
	if object == nil {
		object = before
		notices = append(notices, transitions(observedStates(before), nil)...)
	}
	if same(was, is) {
		record, err = encodeNotices(object, notices, move.Time)
		return record, false, err
	}
	d := document{
		Time: move.Time.UTC(), Object: api.HistoryObject{Key: api.KeyOf(object), UID: object.Meta().UID}, Before: was, After: is,
		Moved: Moved(was, is), Cause: move.Cause, Actor: move.Actor, Margin: move.Margin, Written: move.Written, Notices: notices,
	}
	if record, err = jsonform.Marshal(&d); err != nil {
		return nil, false, fmt.Errorf("encode the record of %s: %w", d.Object.Key, err)
	}
	if len(status) == 0 || status[0] != '{' { // a very large one is compressed, and left out
		return record, false, nil
	}
	// It is JSON already, and most of the record: nothing looks at it again.
	const name = `,"status":`
	whole := append(make([]byte, 0, len(record)+len(name)+len(status)), record[:len(record)-1]...)
	return append(append(append(whole, name...), status...), '}'), true, nil
}

// decodeStatus returns the status in an item that is no gap, and its object; nil if it has none.
func decodeStatus(item Item) (api.Key, json.RawMessage, error) {
	var d struct {
		Object api.Key         `json:"object"`
		Status json.RawMessage `json:"status"`
	}
	if err := jsonv2.Unmarshal(item.Record, &d); err != nil {
		return api.Key{}, nil, fmt.Errorf("decode a record of the history, written at revision %d: %w", item.Cursor.Revision, err)
	}
	return d.Object, d.Status, nil
}

// Decode returns the entry of an item that is no gap, and the status that was written with it, or nil.
func Decode(item Item) (api.HistoryEntry, json.RawMessage, error) {
	d, err := decodeDocument(item)
	if err != nil {
		return api.HistoryEntry{}, nil, err
	}
	return d.entry(item), d.Status, nil
}

func decodeDocument(item Item) (d document, err error) {
	if err := jsonv2.Unmarshal(item.Record, &d); err != nil {
		return d, fmt.Errorf("decode a record of the history, written at revision %d: %w", item.Cursor.Revision, err)
	}
	return d, nil
}

// entry returns what the history shows of a record.
func (d *document) entry(item Item) api.HistoryEntry {
	entry := api.HistoryEntry{
		Revision: item.Cursor.Revision, Time: d.Time, Object: d.Object, Before: d.Before, After: d.After, Moved: d.Moved, Actor: d.Actor, Margin: d.Margin,
	}
	if d.Cause != nil {
		entry.Cause = *d.Cause
	}
	return entry
}

// decisionOf returns the decision in an object; nil if there is none.
func decisionOf(object api.Object) *api.HistoryDecision {
	switch o := object.(type) {
	case *api.Placement:
		if o == nil || o.Status.DecisionRevision == 0 && len(o.Status.Clusters) == 0 {
			return nil
		}
		return &api.HistoryDecision{Clusters: listed(o.Status.Clusters)}
	case *api.Workload:
		if o == nil || o.Status.DecisionRevision == 0 && len(o.Status.Clusters) == 0 {
			return nil
		}
		return bindingOf(o.Status.Clusters)
	case *api.Cluster:
		return hostOf(o.Status.Cloud)
	case *api.MagnumCluster:
		return hostOf(o.Status.Project)
	}
	return nil
}

func listed(names []string) []string {
	if names == nil {
		return []string{}
	}
	return names
}

func hostOf(name string) *api.HistoryDecision {
	if name == "" {
		return nil
	}
	return &api.HistoryDecision{Clusters: []string{name}}
}

func bindingOf(clusters []api.WorkloadCluster) *api.HistoryDecision {
	d := &api.HistoryDecision{Clusters: make([]string, len(clusters)), Replicas: make(map[string]int64, len(clusters))}
	put := func(m *map[string]int64, name string, n *int64) {
		if n == nil {
			return
		}
		if *m == nil {
			*m = make(map[string]int64, len(clusters))
		}
		(*m)[name] = *n
	}
	for i := range clusters {
		c := &clusters[i]
		d.Clusters[i], d.Replicas[c.Name] = c.Name, c.Replicas
		put(&d.OnDemand, c.Name, c.OnDemand)
		put(&d.Spot, c.Name, c.Spot)
		if c.Flavor != "" {
			if d.Flavors == nil {
				d.Flavors = map[string]string{}
			}
			d.Flavors[c.Name] = c.Flavor
		}
	}
	return d
}

func same(a, b *api.HistoryDecision) bool {
	if a == nil || b == nil {
		return a == b
	}
	return slices.Equal(a.Clusters, b.Clusters) && maps.Equal(a.Replicas, b.Replicas) && maps.Equal(a.OnDemand, b.OnDemand) &&
		maps.Equal(a.Spot, b.Spot) && maps.Equal(a.Flavors, b.Flavors)
}

// Moved pairs what was left with what was gained, in order.
func Moved(was, is *api.HistoryDecision) []api.HistoryMove {
	if was == nil {
		was = &api.HistoryDecision{}
	}
	if is == nil {
		is = &api.HistoryDecision{}
	}
	if was.Replicas != nil || is.Replicas != nil {
		return movedReplicas(was, is)
	}
	var left, gained []string
	for _, name := range was.Clusters {
		if !slices.Contains(is.Clusters, name) {
			left = append(left, name)
		}
	}
	for _, name := range is.Clusters {
		if !slices.Contains(was.Clusters, name) {
			gained = append(gained, name)
		}
	}
	moves := make([]api.HistoryMove, max(len(left), len(gained)))
	for i := range moves {
		if i < len(left) {
			moves[i].From = left[i]
		}
		if i < len(gained) {
			moves[i].To = gained[i]
		}
	}
	return moves
}

// part is how many replicas a cluster loses or gets. A workload without replicas loses or gets the cluster.
type part struct {
	cluster  string
	replicas int64
}

// movedReplicas is moved for a workload.
func movedReplicas(was, is *api.HistoryDecision) []api.HistoryMove {
	less, more := differences(was, is), differences(is, was)
	moves := []api.HistoryMove{}
	for len(less)+len(more) > 0 {
		var m api.HistoryMove
		var n int64
		switch {
		case len(more) == 0:
			m.From, n = less[0].cluster, less[0].replicas
		case len(less) == 0:
			m.To, n = more[0].cluster, more[0].replicas
		default:
			m.From, m.To = less[0].cluster, more[0].cluster
			n = min(less[0].replicas, more[0].replicas)
		}
		m.Replicas = &n
		moves = append(moves, m)
		less, more = taken(less, m.From, n), taken(more, m.To, n)
	}
	return moves
}

// differences returns the clusters that have more in one decision than in another.
func differences(in, than *api.HistoryDecision) (parts []part) {
	for _, name := range in.Clusters {
		n, others := in.Replicas[name], than.Replicas[name]
		if _, both := than.Replicas[name]; !both || n > others {
			parts = append(parts, part{name, n - others})
		}
	}
	return parts
}

// taken takes replicas off the first part if it is that of the cluster.
func taken(parts []part, cluster string, n int64) []part {
	if len(parts) == 0 || parts[0].cluster != cluster {
		return parts
	}
	if parts[0].replicas -= n; parts[0].replicas <= 0 {
		return parts[1:]
	}
	return parts
}
