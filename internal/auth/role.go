package auth

import (
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// Role names what a token may do: a built-in role, or an object of the kind role.
type Role string

// Built-in roles.
const (
	// RoleAdmin may do everything, including managing tokens and roles.
	RoleAdmin Role = api.RoleAdmin
	// RoleEditor may read and write objects.
	RoleEditor Role = "editor"
	// RoleViewer may read, explain and simulate.
	RoleViewer Role = "viewer"
	// RoleAgent may only report heartbeats, data of clouds and the health of workloads, and
	// maintain the placement scores of clusters.
	RoleAgent Role = "agent"
)

const (
	// verbAdminister is to manage tokens, roles, backups and the members of the store. Whoever may create tokens may do
	// everything, so that only the role admin has it.
	verbAdminister api.Verb = "administer"
	// anyVerb stands for each of the verbs, in questions only.
	anyVerb api.Verb = ""
)

// builtIn are the rules of the built-in roles.
var builtIn = map[Role][]api.RoleRule{
	RoleAdmin:  {{Verbs: []api.Verb{api.VerbRead, api.VerbWrite, api.VerbDelete, api.VerbReport, verbAdminister}}},
	RoleEditor: {{Verbs: []api.Verb{api.VerbRead, api.VerbWrite, api.VerbDelete, api.VerbReport}}},
	RoleViewer: {{Verbs: []api.Verb{api.VerbRead}}},
	RoleAgent:  {{Verbs: []api.Verb{api.VerbReport}}},
}

// covers reports whether a rule allows a verb on some objects of a kind. Who says what others may do can do everything.
func covers(r api.RoleRule, verb api.Verb, kind api.Kind) bool {
	if kind.AccessControl() && verb != api.VerbRead && verb != anyVerb {
		verb = verbAdminister
	}
	return (verb == anyVerb || slices.Contains(r.Verbs, verb)) && (len(r.Kinds) == 0 || slices.Contains(r.Kinds, kind))
}

// includes reports whether a rule extends to a namespace.
func includes(r api.RoleRule, namespace string) bool {
	return len(r.Namespaces) == 0 || slices.Contains(r.Namespaces, namespace)
}

// Roles are the roles that a server knows and who has them besides the one of the token. The zero value has only the
// built-in ones.
type Roles struct {
	defined  map[Role][]api.RoleRule
	bindings []binding // by name
	// version tells apart the roles of a server as they change.
	version int64
}

// binding is a compiled role binding.
type binding struct {
	*api.RoleBinding
	claims ClaimPatterns
}

// gives reports whether somebody has the role.
func (b *binding) gives(who Identity) bool {
	if b.Spec.Issuer == "" {
		return !who.issued() && slices.Contains(b.Spec.TokenIDs, who.TokenID)
	}
	return who.issued() && who.issuer == b.Spec.Issuer && b.claims.Match(who.claims)
}

// RolesOf returns the roles of a fleet.
func RolesOf(snapshot *fleet.Snapshot) Roles {
	roles := Roles{defined: map[Role][]api.RoleRule{}}
	for entry := range snapshot.All(api.KindRole, "") {
		if role, ok := entry.Object.(*api.Role); ok {
			roles.defined[Role(role.Metadata.Name)] = role.Spec.Rules
		}
	}
	for entry := range snapshot.All(api.KindRoleBinding, "") {
		if b, ok := entry.Object.(*api.RoleBinding); ok {
			roles.bindings = append(roles.bindings, binding{b, CompileClaims(b.Spec.Claims)})
		}
	}
	return roles
}

// Names returns the names of all roles, the built-in ones first.
func (r Roles) Names() []Role {
	var names []Role
	for _, name := range api.BuiltInRoles {
		names = append(names, Role(name))
	}
	for name := range r.defined {
		names = append(names, name)
	}
	slices.Sort(names[len(api.BuiltInRoles):])
	return names
}

// rules returns the rules of a role, none if it is not known.
func (r Roles) rules(name Role) []api.RoleRule {
	if rules, ok := builtIn[name]; ok {
		return rules
	}
	return r.defined[name]
}

// Resolve returns an identity with what its role and the role bindings allow now.
func (r Roles) Resolve(who Identity) Identity {
	who.rules, who.bindings, who.missing, who.resolved = []api.RoleRule{}, nil, nil, r.version
	give := func(role Role, namespaces []string) {
		rules := r.rules(role)
		if rules == nil {
			who.missing = append(who.missing, role)
		}
		who.rules = append(who.rules, limited(rules, namespaces)...)
	}
	if who.Role != "" {
		give(who.Role, who.Namespaces)
	}
	for i := range r.bindings {
		if b := &r.bindings[i]; b.gives(who) {
			give(Role(b.Spec.Role), b.Spec.Namespaces)
			who.bindings = append(who.bindings, b.Metadata.Name)
		}
	}
	return who
}

// limited returns what rules allow in some namespaces; none = all.
func limited(rules []api.RoleRule, namespaces []string) []api.RoleRule {
	if len(namespaces) == 0 {
		return rules
	}
	var all []api.RoleRule
	for _, rule := range rules {
		if len(rule.Namespaces) == 0 {
			rule.Namespaces = namespaces
		} else {
			rule.Namespaces = slices.DeleteFunc(slices.Clone(rule.Namespaces), func(n string) bool { return !slices.Contains(namespaces, n) })
		}
		if len(rule.Namespaces) > 0 {
			all = append(all, rule)
		}
	}
	return all
}

// check adds what is wrong with the role and the namespaces of a token.
func (r Roles) check(role Role, namespaces []string, errs *api.FieldErrors) {
	if names := r.Names(); !slices.Contains(names, role) {
		errs.Add("role", "%q is not one of %s", string(role), list(names))
	}
	api.ValidateLimits(string(role), namespaces, "namespaces", errs)
}

// list joins names for a message.
func list[T ~string](names []T) string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = string(name)
	}
	return strings.Join(texts, ", ")
}
