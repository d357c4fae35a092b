package auth

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// MayRefer is checked before an object is stored or used for a decision: its writer must be allowed
// to read every object that it refers to, and every metric that it names. Otherwise the status,
// decision or simulation would disclose information about them. References that the object already
// had are allowed; before is the current object, or nil.
//
// If a referenced object does not exist, only the namespace is checked, so that the result does not
// disclose whether an object in a namespace exists.
func (r Rights) MayRefer(who Identity, object, before api.Object) error {
	return r.mayRefer(r.metricNames(who, nil), object, before, "")
}

// mayRefer is MayRefer for an object of a simulation, whose fields are named with a prefix. metrics
// checks the names of metrics.
func (r Rights) mayRefer(metrics *metricNames, object, before api.Object, prefix string) error {
	who := metrics.who
	refused := append(r.refusedReferences(who, object, before), metrics.unreadable(object, before)...)
	if len(refused) == 0 {
		return nil
	}
	var names []string
	var fields api.FieldErrors
	for i, ref := range refused {
		fields.Add(prefix+ref.Field, "names %s, which the token must not read", named(ref.Key))
		if i < maxRefused {
			names = append(names, named(ref.Key))
		}
	}
	if len(refused) > maxRefused {
		names = append(names, fmt.Sprintf("%d more", len(refused)-maxRefused))
	}
	forbidden := who.Forbidden("refer to " + strings.Join(names, ", ") + ", because it must not read that")
	forbidden.Fields = fields
	return forbidden
}

// maxRefused is the number of references that an error names.
const maxRefused = 3

// named describes a referenced object for messages.
func named(key api.Key) string {
	if key.Name == "" {
		return fmt.Sprintf("every %s of namespace %q", key.Kind, key.Namespace)
	}
	return key.String()
}

// refusedReferences returns the new references of an object that its writer may not read.
func (r Rights) refusedReferences(who Identity, object, before api.Object) []api.Reference {
	var refused []api.Reference
	known := map[api.Key]bool{}
	if before != nil {
		for _, ref := range append(api.References(before), api.StatusReferences(before)...) {
			known[ref.Key] = true
		}
	}
	for _, ref := range append(api.References(object), api.StatusReferences(object)...) {
		if !known[ref.Key] && r.mayReadNamed(who, ref.Key) != nil {
			refused = append(refused, ref)
		}
	}
	return refused
}

// mayReadNamed checks the namespace of an object and, if the object exists, the object itself.
func (r Rights) mayReadNamed(who Identity, key api.Key) error {
	if err := r.MayReadKey(who, key); err != nil {
		return err
	}
	entry := r.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil
	}
	return r.MayRead(who, entry.Object)
}
