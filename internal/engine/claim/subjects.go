package claim

import (
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

type resourceType struct{ namespace, apiVersion, kind string }

type label struct{ key, value string }

// subject is the part of a workload that selectors match.
type subject struct {
	key        api.Key
	apiVersion string
	kind       string
	labels     map[string]string
}

type subjectSet map[*subject]struct{}

// subjects are workloads, indexed by what selectors require.
type subjects struct {
	byKey   map[api.Key]*subject
	byType  map[resourceType]subjectSet // an empty namespace means all
	byName  map[string]subjectSet
	byLabel map[label]subjectSet
}

func newSubjects() subjects {
	return subjects{
		byKey:   map[api.Key]*subject{},
		byType:  map[resourceType]subjectSet{},
		byName:  map[string]subjectSet{},
		byLabel: map[label]subjectSet{},
	}
}

// put adds or replaces a workload.
func (w *subjects) put(s *subject) {
	if known, ok := w.byKey[s.key]; ok {
		if known.apiVersion == s.apiVersion && known.kind == s.kind && maps.Equal(known.labels, s.labels) {
			return
		}
		w.remove(s.key)
	}
	w.byKey[s.key] = s
	for _, t := range s.types() {
		add(w.byType, t, s)
	}
	add(w.byName, s.key.Name, s)
	for key, value := range s.labels {
		add(w.byLabel, label{key, value}, s)
	}
}

// remove removes a workload.
func (w *subjects) remove(key api.Key) {
	s, ok := w.byKey[key]
	if !ok {
		return
	}
	delete(w.byKey, key)
	for _, t := range s.types() {
		drop(w.byType, t, s)
	}
	drop(w.byName, s.key.Name, s)
	for key, value := range s.labels {
		drop(w.byLabel, label{key, value}, s)
	}
}

// add adds a workload to one set of an index.
func add[K comparable](index map[K]subjectSet, at K, s *subject) {
	if index[at] == nil {
		index[at] = subjectSet{}
	}
	index[at][s] = struct{}{}
}

// drop removes a workload from one set of an index.
func drop[K comparable](index map[K]subjectSet, at K, s *subject) {
	delete(index[at], s)
	if len(index[at]) == 0 {
		delete(index, at)
	}
}

func subjectOf(w *api.Workload) *subject {
	return &subject{key: api.KeyOf(w), apiVersion: w.Spec.APIVersion, kind: w.Spec.Kind, labels: w.Metadata.Labels}
}

// types returns the entries of byType that the workload belongs to.
func (s *subject) types() [2]resourceType {
	return [...]resourceType{{s.key.Namespace, s.apiVersion, s.kind}, {"", s.apiVersion, s.kind}}
}

// selected appends the workloads that a rule matches.
func (w *subjects) selected(r *rule, keys []api.Key) []api.Key {
	for _, set := range w.sets(r) {
		for s := range set {
			if r.matches(s) {
				keys = append(keys, s.key)
			}
		}
	}
	return keys
}

// sets returns the smallest available sets that contain every workload that a rule matches.
func (w *subjects) sets(r *rule) []subjectSet {
	best := []subjectSet{w.byType[resourceType{r.namespace, r.apiVersion, r.kind}]}
	size := len(best[0])
	if r.by == byName {
		if named := w.byName[r.name]; len(named) < size {
			best = []subjectSet{named}
		}
		return best
	}
	for _, l := range r.given() {
		var sets []subjectSet
		n := 0
		for _, value := range l.Values {
			set := w.byLabel[label{l.Key, value}]
			sets = append(sets, set)
			n += len(set)
		}
		if n < size {
			best, size = sets, n
		}
	}
	return best
}
