package refresh

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
)

// index finds the objects that ask for a decision. It is immutable.
type index struct {
	// named are the objects whose query names a placement, workload or policy, by its key; without a
	// namespace if it may be in any.
	named map[api.Key][]name
	// selecting are the queries by labels.
	selecting []selecting
	names     map[name]bool
}

type selecting struct {
	query *gitops.Query
	by    name
}

func newIndex(all []asking) *index {
	x := &index{named: map[api.Key][]name{}, names: map[name]bool{}}
	for _, a := range all {
		x.names[a.name] = true
		for _, query := range a.queries {
			if key, ok := query.Named(); ok {
				x.named[key] = append(x.named[key], a.name)
			} else {
				x.selecting = append(x.selecting, selecting{query, a.name})
			}
		}
	}
	return x
}

// asks returns the objects whose answer contains an object.
func (x *index) asks(object api.Object, found map[name]bool) {
	if object == nil {
		return
	}
	x.lookUp(api.KeyOf(object), found)
	if w, ok := object.(*api.Workload); ok && w.Status.Policy != "" {
		x.lookUp(api.PolicyKey(w.Status.Policy), found)
	}
	for _, s := range x.selecting {
		if s.query.Concerns(object) {
			found[s.by] = true
		}
	}
}

func (x *index) lookUp(key api.Key, found map[name]bool) {
	for _, n := range x.named[key] {
		found[n] = true
	}
	key.Namespace = ""
	for _, n := range x.named[key] {
		found[n] = true
	}
}

// changed returns the objects to which a change of a placement or workload makes a difference.
func (x *index) changed(old, now api.Object) map[name]bool {
	if len(x.names) == 0 {
		return nil
	}
	before, after := map[name]bool{}, map[name]bool{}
	x.asks(old, before)
	x.asks(now, after)
	if len(before)+len(after) == 0 {
		return nil
	}
	differ := gitops.Differ(old, now)
	found := map[name]bool{}
	for n := range before {
		found[n] = differ || !after[n]
	}
	for n := range after {
		found[n] = differ || !before[n]
	}
	for n, counts := range found {
		if !counts {
			delete(found, n)
		}
	}
	return found
}
