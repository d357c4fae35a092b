package api

import (
	"regexp"
	"strings"

	"github.com/go-openapi/jsonpointer"
)

// RoleBinding gives tokens a role, in addition to the one that they have: tokens of the server by their IDs, or those of a
// trusted issuer by their claims.
type RoleBinding struct {
	Kind     Kind              `json:"kind" enum:"role_binding"`
	Metadata Metadata          `json:"metadata"`
	Spec     RoleBindingSpec   `json:"spec"`
	Status   RoleBindingStatus `json:"status,omitzero"`
}

// RoleBindingSpec says who has which role, and where.
type RoleBindingSpec struct {
	Role        string            `json:"role" ref:"role,optional" doc:"Name of the role, or 'admin', 'editor', 'viewer' or 'agent'."`
	Namespaces  []string          `json:"namespaces,omitzero" absent:"all namespaces" doc:"Namespaces in which the role is given. Not allowed for 'admin'."`
	TokenIDs    []string          `json:"token_ids,omitempty" doc:"IDs of tokens of the server, which are their parts before the dot. Either 'token_ids' or 'issuer' with 'claims' is required."`
	Issuer      string            `json:"issuer,omitempty" doc:"Name of an issuer in the configuration of the server ('auth.jwt'), whose tokens get the role if their claims match."`
	Claims      map[string]string `json:"claims,omitempty" doc:"Patterns for the claims of the issuer's tokens, by name; all must match. '*' stands for any characters. If the value is a list, one element must match. A name that starts with '/' is a JSON pointer into the claims."`
	Description string            `json:"description,omitempty" maxLength:"1024" doc:"What the binding is for."`
}

// RoleBindingStatus is empty: what a binding allows follows from its spec and the role.
type RoleBindingStatus struct{}

// ObjectKind implements Object.
func (b *RoleBinding) ObjectKind() Kind { return KindRoleBinding }

// Meta implements Object.
func (b *RoleBinding) Meta() *Metadata { return &b.Metadata }

// SpecPart implements Object.
func (b *RoleBinding) SpecPart() any { return &b.Spec }

// StatusPart implements Object.
func (b *RoleBinding) StatusPart() any { return &b.Status }

// Copy implements Object.
func (b *RoleBinding) Copy() Object { d := *b; return &d }

// Secrets implements Object.
func (b *RoleBinding) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (b *RoleBinding) SetSecret(string, Secret) {}

// SetDefaults implements Object.
func (b *RoleBinding) SetDefaults() {
	b.Kind = KindRoleBinding
	b.Metadata.setDefaults(Global)
}

// Owners returns nobody's namespace: only those who read every namespace learn who may do what.
func (b *RoleBinding) Owners() []string { return everyNamespace }

var tokenIDShape = regexp.MustCompile(`^[0-9a-f]{16}$`)

// IsTokenID reports whether a text can be the ID of a token of the server, its part before the dot. Others are kept away from
// the store and the logs: they could be complete tokens.
func IsTokenID(text string) bool { return tokenIDShape.MatchString(text) }

// Validate implements Object.
func (b *RoleBinding) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(b, Global)
	s := &b.Spec
	errs.check("spec.role", checkName(s.Role))
	validateNamespaces(s.Role, s.Namespaces, "spec.namespaces", &errs)
	for i, id := range s.TokenIDs {
		if !IsTokenID(id) { // and must not be shown either
			errs.Add(index("spec.token_ids", i), "must be the ID of a token: its part before the dot, 16 hexadecimal digits")
		}
	}
	checkUnique(&errs, "spec.token_ids", s.TokenIDs)
	switch {
	case len(s.TokenIDs) > 0 && s.Issuer != "":
		errs.Add("spec.issuer", "must be absent because there are token_ids: write two bindings")
	case len(s.TokenIDs) > 0 && len(s.Claims) > 0:
		errs.Add("spec.claims", "must be absent because there are token_ids: write two bindings")
	case len(s.TokenIDs) == 0 && s.Issuer == "":
		errs.Add("spec.token_ids", "either token_ids, or issuer and claims are required")
	case s.Issuer != "":
		errs.check("spec.issuer", checkName(s.Issuer))
		ValidateClaims(s.Claims, "spec.claims", &errs)
	}
	errs.check("spec.description", checkFreeText(s.Description))
	return errs.inOrder(b)
}

// ValidateClaims adds what is wrong with patterns for claims.
func ValidateClaims(claims map[string]string, at string, errs *FieldErrors) {
	specific := false
	for name, pattern := range claims {
		switch {
		case name == "" || pattern == "":
			errs.Add(at, "neither the name %q nor the pattern %q may be empty", name, pattern)
		case strings.HasPrefix(name, "/"):
			if _, err := jsonpointer.New(name); err != nil {
				errs.Add(at, "%q is not a JSON pointer: %v", name, err)
			}
		}
		specific = specific || Restricts(pattern)
	}
	if !specific {
		errs.Add(at, "must restrict at least one claim: an issuer may sign tokens for anyone")
	}
}

// Restricts reports whether a pattern does not match every text.
func Restricts(pattern string) bool { return strings.Trim(pattern, "*") != "" }
