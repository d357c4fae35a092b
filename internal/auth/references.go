package auth

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// MayRefer is asked before an object is stored, or anything is decided from it: who
// names another object in it must be allowed to read that one. Otherwise the status,
// the decision or the simulation that follows would tell what only others may know.
// What the object named before, somebody was allowed to, and may stay: before is the
// object as it is, nil where there is none.
//
// Where nothing is there that a name stands for, the namespace alone decides, so the
// answer is the same whether an object of a namespace exists or not.
func (r Rights) MayRefer(who Identity, object, before api.Object) error {
	return r.mayRefer(who, object, before, "")
}

// mayRefer is MayRefer for an object of which the fields are named with a prefix.
func (r Rights) mayRefer(who Identity, object, before api.Object, prefix string) error {
	refused := r.refusedReferences(who, object, before)
	if len(refused) == 0 {
		return nil
	}
	names := make([]string, len(refused))
	fields := make(api.FieldErrors, len(refused))
	for i, ref := range refused {
		names[i] = named(ref.Key)
		fields[i] = api.FieldError{Field: prefix + ref.Field, Message: "names " + names[i] + ", which the token must not read"}
	}
	if len(names) > maxRefused {
		names = append(names[:maxRefused], fmt.Sprintf("%d more", len(names)-maxRefused))
	}
	forbidden := who.Forbidden("refer to " + strings.Join(names, ", ") + ", because it must not read that")
	forbidden.Fields = fields
	return forbidden
}

// maxRefused is how many references an error names.
const maxRefused = 3

// named is what a reference names, for messages.
func named(key api.Key) string {
	if key.Name == "" {
		return fmt.Sprintf("every %s of namespace %q", key.Kind, key.Namespace)
	}
	return key.String()
}

// refusedReferences are what an object newly names, and who writes it must not read.
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

// mayReadNamed is asked for an object by its name: for its namespace, and for the
// object itself where it exists.
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
