package api

import "slices"

// Role says what the tokens that it is bound to may do, besides the built-in roles.
type Role struct {
	Kind     Kind       `json:"kind" enum:"role"`
	Metadata Metadata   `json:"metadata"`
	Spec     RoleSpec   `json:"spec"`
	Status   RoleStatus `json:"status,omitzero"`
}

// RoleSpec lists the rules of a role.
type RoleSpec struct {
	Rules       []RoleRule `json:"rules" doc:"What the role may do: whatever one of the rules allows. At least one."`
	Description string     `json:"description,omitempty" maxLength:"1024" doc:"What the role is for."`
}

// RoleRule allows some verbs on objects of some kinds in some namespaces.
type RoleRule struct {
	Verbs      []Verb   `json:"verbs" doc:"What may be done, at least one of 'read' (get, list, watch, explain, preview and simulate), 'write' (create, change, reschedule), 'delete' and 'report' (what agents do: heartbeats, capacity of clouds, health of workloads, interruptions of nodes, and the placement scores of clusters)."`
	Kinds      []Kind   `json:"kinds,omitzero" absent:"objects of all kinds" doc:"Kinds of the objects, such as 'placement' or 'metrics_provider'."`
	Namespaces []string `json:"namespaces,omitzero" absent:"all namespaces" doc:"Namespaces that the objects are in or belong to. A rule for some namespaces also allows reading shared objects, which belong to none."`
}

// RoleStatus is empty: what a role allows follows from its spec.
type RoleStatus struct{}

// Verb is something that may be done to objects.
type Verb string

// Verbs of a role.
const (
	// VerbRead is to get, list, watch, explain, preview and simulate.
	VerbRead Verb = "read"
	// VerbWrite is to create and to change, and to request a new decision.
	VerbWrite Verb = "write"
	// VerbDelete is to delete.
	VerbDelete Verb = "delete"
	// VerbReport is what agents do: heartbeats, capacity of clouds, the health of workloads, and interruptions of nodes.
	// Objects that belong to a cluster are reported as well: whoever may report them may read, write and delete them.
	VerbReport Verb = "report"
)

// BuiltInRoles are the names of the roles that every server has, the most powerful first. The package auth says what they allow.
var BuiltInRoles = []string{RoleAdmin, "editor", "viewer", "agent"}

// RoleAdmin is the built-in role that may do everything.
const RoleAdmin = "admin"

// ValidateLimits adds what is wrong with the namespaces that a role is limited to, in the field at.
func ValidateLimits(role string, namespaces []string, at string, errs *FieldErrors) {
	if role == RoleAdmin && len(namespaces) > 0 {
		errs.Add(at, "must be absent for role %s: an administrator can create tokens for every namespace", role)
	}
	for i, namespace := range namespaces {
		if checkName(namespace) != "" {
			errs.Add(index(at, i), "%q is not a valid namespace name: use lowercase letters, digits and \"-\", at most 63 characters", namespace)
		}
	}
}

// AccessControl reports whether objects of a kind say what others may do: only administrators write them.
func (k Kind) AccessControl() bool { return k == KindRole || k == KindRoleBinding }

// ObjectKind implements Object.
func (r *Role) ObjectKind() Kind { return KindRole }

// Meta implements Object.
func (r *Role) Meta() *Metadata { return &r.Metadata }

// SpecPart implements Object.
func (r *Role) SpecPart() any { return &r.Spec }

// StatusPart implements Object.
func (r *Role) StatusPart() any { return &r.Status }

// Copy implements Object.
func (r *Role) Copy() Object { d := *r; return &d }

// Secrets implements Object.
func (r *Role) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (r *Role) SetSecret(string, Secret) {}

// SetDefaults implements Object.
func (r *Role) SetDefaults() {
	r.Kind = KindRole
	r.Metadata.setDefaults(Global)
}

// Owners implements owned: only those who read every namespace learn what roles there are.
func (r *Role) Owners() []string { return everyNamespace }

// everyNamespace are the owners of an object that only those see who see all namespaces: no namespace has this name.
var everyNamespace = []string{allNamespaces}

// Validate implements Object.
func (r *Role) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(r, Global)
	if slices.Contains(BuiltInRoles, r.Metadata.Name) {
		errs.Add("metadata.name", "%q is a built-in role: choose another name", r.Metadata.Name)
	}
	if len(r.Spec.Rules) == 0 {
		errs.Add("spec.rules", "must have at least one rule")
	}
	for i := range r.Spec.Rules {
		r.Spec.Rules[i].validate(index("spec.rules", i), &errs)
	}
	errs.check("spec.description", checkFreeText(r.Spec.Description))
	return errs.inOrder(r)
}

func (r *RoleRule) validate(at string, errs *FieldErrors) {
	if len(r.Verbs) == 0 {
		errs.Add(at+".verbs", "must name at least one of read, write, delete, report")
	}
	for i, verb := range r.Verbs {
		switch verb {
		case VerbRead, VerbWrite, VerbDelete, VerbReport:
		default:
			errs.Add(index(at+".verbs", i), "%q is not one of read, write, delete, report", string(verb))
		}
	}
	checkUnique(errs, at+".verbs", r.Verbs)
	if r.Kinds != nil && len(r.Kinds) == 0 {
		errs.Add(at+".kinds", "must name at least one kind, or be absent for all")
	}
	for i, kind := range r.Kinds {
		switch _, known := LookupKind(kind); {
		case !known:
			errs.Add(index(at+".kinds", i), "%q is not a kind, such as placement or metrics_provider", string(kind))
		case kind.AccessControl():
			errs.Add(index(at+".kinds", i), "%s cannot be named: only administrators change what others may do", kind)
		}
	}
	checkUnique(errs, at+".kinds", r.Kinds)
	validateNamespaces("", r.Namespaces, at+".namespaces", errs)
}

// validateNamespaces is ValidateLimits for the field of an object; role is "" where the rights are not those of one.
func validateNamespaces(role string, namespaces []string, at string, errs *FieldErrors) {
	// An empty list would say "nothing" to some readers and "all" to others.
	if namespaces != nil && len(namespaces) == 0 {
		errs.Add(at, "must name at least one namespace, or be absent for all")
	}
	ValidateLimits(role, namespaces, at, errs)
	checkUnique(errs, at, namespaces)
}
