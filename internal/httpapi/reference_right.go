package httpapi

import (
	"fmt"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// mayRefer is asked before an object is stored, or anything is decided from it: who
// names another object in it must be allowed to read that one. Otherwise the status,
// the decision or the simulation that follows would tell what only others may know.
// What the object named before, somebody was allowed to, and may stay: before is the
// object as it is, nil where there is none.
//
// Where nothing is there that a name stands for, the namespace alone decides, so the
// answer is the same whether an object of a namespace exists or not.
func (s *Server) mayRefer(who identity, object, before api.Object) error {
	refused := s.refusedReferences(who, object, before)
	if len(refused) == 0 {
		return nil
	}
	names := make([]string, len(refused))
	fields := make(api.FieldErrors, len(refused))
	for i, ref := range refused {
		names[i] = named(ref.Key)
		fields[i] = api.FieldError{Field: ref.Field, Message: "names " + names[i] + ", which the token must not read"}
	}
	if len(names) > maxUnresolved {
		names = append(names[:maxUnresolved], fmt.Sprintf("%d more", len(names)-maxUnresolved))
	}
	p := who.forbidden("refer to " + strings.Join(names, ", ") + ", because it must not read that")
	p.Errors = fields
	return p
}

// named is what a reference names, for messages.
func named(key api.Key) string {
	if key.Name == "" {
		return fmt.Sprintf("every %s of namespace %q", key.Kind, key.Namespace)
	}
	return key.String()
}

// refusedReferences are what an object newly names, and who writes it must not read.
func (s *Server) refusedReferences(who identity, object, before api.Object) []api.Reference {
	var refused []api.Reference
	known := map[api.Key]bool{}
	if before != nil {
		for _, ref := range append(api.References(before), api.StatusReferences(before)...) {
			known[ref.Key] = true
		}
	}
	for _, ref := range append(api.References(object), api.StatusReferences(object)...) {
		if !known[ref.Key] && s.mayReadNamed(who, ref.Key) != nil {
			refused = append(refused, ref)
		}
	}
	return refused
}

// mayReadNamed is asked for an object by its name: for its namespace, and for the
// object itself where it exists.
func (s *Server) mayReadNamed(who identity, key api.Key) error {
	if err := s.mayReadKey(who, key); err != nil {
		return err
	}
	entry := s.fleet.Snapshot().Get(key)
	if entry == nil {
		return nil
	}
	return s.mayRead(who, entry.Object)
}
