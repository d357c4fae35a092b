package auth

import (
	"fmt"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Role names what a token may do: a built-in role, or one of the configuration file.
type Role string

// Built-in roles.
const (
	// RoleAdmin may do everything, including managing tokens.
	RoleAdmin Role = "admin"
	// RoleEditor may read and write objects.
	RoleEditor Role = "editor"
	// RoleViewer may read, explain and simulate.
	RoleViewer Role = "viewer"
	// RoleAgent may only report heartbeats, data of clouds and the health of workloads, and
	// maintain the placement scores of clusters.
	RoleAgent Role = "agent"
)

// Verb is something that may be done to objects.
type Verb string

// Verbs.
const (
	// VerbRead is to get, list, watch, explain, preview and simulate.
	VerbRead Verb = "read"
	// VerbWrite is to create and to change, and to request a new decision.
	VerbWrite Verb = "write"
	// VerbDelete is to delete.
	VerbDelete Verb = "delete"
	// VerbReport is what agents do: heartbeats, capacity of clouds, the health of workloads, and
	// interruptions of nodes. Objects that belong to a cluster are reported as well: whoever may
	// report them may read, write and delete them.
	VerbReport Verb = "report"
	// VerbAdminister is to manage tokens, backups and the members of the store. Whoever may create
	// tokens may do everything.
	VerbAdminister Verb = "administer"

	// anyVerb stands for each of the verbs, in questions only.
	anyVerb Verb = ""
)

var verbs = []Verb{VerbRead, VerbWrite, VerbDelete, VerbReport, VerbAdminister}

// Rule allows some verbs.
type Rule struct {
	Verbs []Verb `json:"verbs"`
	// Kinds are the kinds of the objects. Absent = all.
	Kinds []api.Kind `json:"kinds,omitempty"`
	// Namespaces are those that the objects are in or belong to. Absent = all. As with tokens, a rule for some namespaces
	// also allows reading shared objects, which belong to none.
	Namespaces []string `json:"namespaces,omitempty"`
}

// covers reports whether the rule allows a verb on some objects of a kind.
func (r *Rule) covers(verb Verb, kind api.Kind) bool {
	return (verb == anyVerb || slices.Contains(r.Verbs, verb)) && (len(r.Kinds) == 0 || slices.Contains(r.Kinds, kind))
}

// includes reports whether the rule extends to a namespace.
func (r *Rule) includes(namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}

// RoleDefinition is a role of the configuration file.
type RoleDefinition struct {
	Name Role `json:"name"`
	// Rules are what the role may do: whatever one of them allows.
	Rules []Rule `json:"rules"`
}

// builtIn are the definitions of the built-in roles, the most powerful first.
var builtIn = []RoleDefinition{
	{RoleAdmin, []Rule{{Verbs: verbs}}},
	{RoleEditor, []Rule{{Verbs: []Verb{VerbRead, VerbWrite, VerbDelete, VerbReport}}}},
	{RoleViewer, []Rule{{Verbs: []Verb{VerbRead}}}},
	{RoleAgent, []Rule{{Verbs: []Verb{VerbReport}}}},
}

// Roles are the roles that a server knows. The zero value has only the built-in ones.
type Roles struct{ defined []RoleDefinition }

// NewRoles returns the built-in roles and others, which ValidateRoles accepts.
func NewRoles(defined []RoleDefinition) Roles { return Roles{defined} }

// Names returns the names of all roles, the built-in ones first.
func (r Roles) Names() []Role {
	var names []Role
	for _, definition := range append(slices.Clip(builtIn), r.defined...) {
		names = append(names, definition.Name)
	}
	return names
}

// rules returns the rules of a role, none if it is not known.
func (r Roles) rules(name Role) []Rule {
	for _, definitions := range [][]RoleDefinition{builtIn, r.defined} {
		for i := range definitions {
			if definitions[i].Name == name {
				return definitions[i].Rules
			}
		}
	}
	return nil
}

// administers reports whether a role has the verb administer.
func (r Roles) administers(name Role) bool {
	return slices.ContainsFunc(r.rules(name), func(rule Rule) bool { return slices.Contains(rule.Verbs, VerbAdminister) })
}

// Identity returns the identity that a token with a role stands for. If the role is not known, it may do nothing.
func (r Roles) Identity(tokenID string, role Role, namespaces []string) Identity {
	who := Identity{TokenID: tokenID, Role: role, Namespaces: namespaces}
	if !slices.Contains(Roles{}.Names(), role) {
		who.rules = r.rules(role)
	}
	return who
}

// check adds what is wrong with the role and the namespaces of a token.
func (r Roles) check(role Role, namespaces []string, errs *api.FieldErrors) {
	if names := r.Names(); !slices.Contains(names, role) {
		errs.Add("role", "%q is not one of %s", string(role), list(names))
	}
	if r.administers(role) && len(namespaces) > 0 {
		errs.Add("namespaces", "must be absent for role %s: an administrator can create tokens for every namespace", role)
	}
	checkNamespaces("namespaces", namespaces, errs)
}

// ValidateRoles returns all violations of the rules for roles in the configuration. path is the field that contains them.
func ValidateRoles(path string, defined []RoleDefinition) api.FieldErrors {
	var errs api.FieldErrors
	for n, definition := range defined {
		at := fmt.Sprintf("%s[%d]", path, n)
		switch {
		case len(validation.IsDNS1123Label(string(definition.Name))) > 0:
			errs.Add(at+".name", "%q must be a name of lowercase letters, digits and \"-\", at most 63 characters", string(definition.Name))
		case slices.Contains(NewRoles(defined[:n]).Names(), definition.Name):
			errs.Add(at+".name", "%q is the name of another role as well", string(definition.Name))
		}
		if len(definition.Rules) == 0 {
			errs.Add(at+".rules", "must have at least one rule")
		}
		for m := range definition.Rules {
			definition.Rules[m].validate(fmt.Sprintf("%s.rules[%d]", at, m), &errs)
		}
	}
	return errs
}

func (r *Rule) validate(at string, errs *api.FieldErrors) {
	if len(r.Verbs) == 0 {
		errs.Add(at+".verbs", "must name at least one of %s", list(verbs))
	}
	for i, verb := range r.Verbs {
		if !slices.Contains(verbs, verb) {
			errs.Add(fmt.Sprintf("%s.verbs[%d]", at, i), "%q is not one of %s", string(verb), list(verbs))
		}
	}
	// An empty list would say "nothing" to some readers and "all" to others.
	if r.Kinds != nil && len(r.Kinds) == 0 {
		errs.Add(at+".kinds", "must name at least one kind, or be absent for all")
	}
	if r.Namespaces != nil && len(r.Namespaces) == 0 {
		errs.Add(at+".namespaces", "must name at least one namespace, or be absent for all")
	}
	for i, kind := range r.Kinds {
		if _, known := api.LookupKind(kind); !known {
			errs.Add(fmt.Sprintf("%s.kinds[%d]", at, i), "%q is not one of %s", string(kind), list(kinds()))
		}
	}
	if slices.Contains(r.Verbs, VerbAdminister) && (len(r.Kinds) > 0 || len(r.Namespaces) > 0) {
		errs.Add(at+".verbs", "administer cannot be limited to kinds or namespaces: whoever may create tokens may do everything")
	}
	checkNamespaces(at+".namespaces", r.Namespaces, errs)
}

// checkNamespaces adds an error for each name that cannot be that of a namespace.
func checkNamespaces(at string, namespaces []string, errs *api.FieldErrors) {
	for i, namespace := range namespaces {
		if len(validation.IsDNS1123Label(namespace)) > 0 {
			errs.Add(fmt.Sprintf("%s[%d]", at, i), "%q is not a valid namespace name: use lowercase letters, digits and \"-\", at most 63 characters", namespace)
		}
	}
}

// kinds returns all kinds of objects.
func kinds() []api.Kind {
	var all []api.Kind
	for _, info := range api.Kinds {
		all = append(all, info.Kind)
	}
	return all
}

// list joins names for a message.
func list[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}
