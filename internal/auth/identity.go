package auth

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Role determines what a token may do.
type Role string

// Roles.
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

// Roles lists all roles, the most powerful first.
var Roles = []Role{RoleAdmin, RoleEditor, RoleViewer, RoleAgent}

// Identity is who makes a request.
type Identity struct {
	TokenID    string // empty if no token was required
	Role       Role
	Namespaces []string // empty = all
	// ExpiresAt is when the token of a trusted issuer expires. Zero for tokens of the
	// server itself, whose expiry is in the store and may change.
	ExpiresAt time.Time
}

// IssuedTokenID identifies tokens of a trusted issuer, by its name in the configuration and
// the subject. No token of the server has an ID of this form.
func IssuedTokenID(issuer, subject string) string {
	const longest = 256
	if len(subject) > longest {
		subject = strings.ToValidUTF8(subject[:longest], "") + "..."
	}
	return issuer + ":" + subject
}

// issued reports whether the token is one of a trusted issuer.
func (who Identity) issued() bool { return !who.ExpiresAt.IsZero() }

// Form returns a key that is equal for identities that see every object in the same form.
func (who Identity) Form() string {
	return string(who.Role) + " " + strings.Join(slices.Sorted(slices.Values(who.Namespaces)), " ")
}

// Bound reports whether the token is restricted to some namespaces.
func (who Identity) Bound() bool { return len(who.Namespaces) > 0 }

// owned is an object that is global but may have owners.
type owned interface{ Owners() []string }

// Owners returns the namespaces that own an object; none if it is shared by all. A cluster or cloud
// is global but may have owners.
func Owners(object api.Object) []string {
	if o, ok := object.(owned); ok {
		return o.Owners()
	}
	return OwnersIn(object.Meta().Namespace)
}

// OwnersIn returns the owners of objects in a namespace.
func OwnersIn(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return []string{namespace}
}

// ForbiddenError says that an action is not allowed.
type ForbiddenError struct {
	Detail string
	// Fields are the fields of a document that refer to objects that the identity may not read.
	Fields api.FieldErrors
}

// Error implements error.
func (e *ForbiddenError) Error() string { return e.Detail }

// Forbidden returns the error for an action that is not allowed.
func (who Identity) Forbidden(doing string) *ForbiddenError {
	what := "a token with role " + string(who.Role)
	if who.Bound() {
		what += " for the namespaces " + strings.Join(who.Namespaces, ", ")
	}
	return &ForbiddenError{Detail: what + " must not " + doing}
}

// Sees reports whether objects with these owners may be shown: access to one of the namespaces is
// enough.
func (who Identity) Sees(owners ...string) bool {
	return !who.Bound() || len(owners) == 0 || slices.ContainsFunc(owners, who.isFor)
}

// isFor reports whether a restricted token includes a namespace.
func (who Identity) isFor(namespace string) bool { return slices.Contains(who.Namespaces, namespace) }

// actsFor reports whether the token may perform an action that affects all owners of an object: it
// needs access to every one.
func (who Identity) actsFor(owners []string) bool {
	return !who.Bound() || len(owners) > 0 && !slices.ContainsFunc(owners, func(owner string) bool { return !who.isFor(owner) })
}

// SeesWorkload reports whether a workload named namespace/name in a status may be shown.
func (who Identity) SeesWorkload(path string) bool {
	namespace, _, _ := strings.Cut(path, "/")
	return who.Sees(OwnersIn(namespace)...)
}

// MayRead checks whether an object may be read.
func (who Identity) MayRead(object api.Object) error {
	return who.mayReadOwned(Owners(object))
}

// MayReadNamespace checks whether the objects in a namespace may be read; "" means global objects.
func (who Identity) MayReadNamespace(namespace string) error {
	err := who.mayReadOwned(OwnersIn(namespace))
	if err != nil && !who.Sees(OwnersIn(namespace)...) {
		return who.Forbidden("read what belongs to namespace \"" + namespace + "\"")
	}
	return err
}

// mayReadOwned checks whether an object with these owners, which the error does not disclose, may
// be read.
func (who Identity) mayReadOwned(owners []string) error {
	switch {
	case who.Role != RoleAdmin && who.Role != RoleEditor && who.Role != RoleViewer:
		return who.Forbidden("read objects")
	case !who.Sees(owners...):
		return who.Forbidden("read what belongs to other namespaces")
	}
	return nil
}

// MayWriteKey is checked before the object is looked up, so that write attempts do not disclose
// what exists.
func (who Identity) MayWriteKey(key api.Key) error {
	if who.Role != RoleAdmin && who.Role != RoleEditor || !who.Sees(OwnersIn(key.Namespace)...) {
		return who.Forbidden("write " + key.String())
	}
	return nil
}

// MayWrite checks whether an object may be written; it is called for the current and for the new
// version.
func (who Identity) MayWrite(object api.Object) error {
	owned := Owners(object)
	switch {
	case who.Role != RoleAdmin && who.Role != RoleEditor:
		return who.Forbidden("write " + api.KeyOf(object).String())
	case who.Bound() && len(owned) == 0:
		return who.Forbidden("write " + api.KeyOf(object).String() + ", which belongs to no namespace")
	case !who.actsFor(owned) && who.Sees(owned...):
		return who.Forbidden("write " + api.KeyOf(object).String() + ", which belongs to other namespaces as well")
	case !who.actsFor(owned):
		return who.Forbidden("write " + api.KeyOf(object).String() + ", which belongs to other namespaces")
	}
	return nil
}

// MayReportAtAll is checked before the cluster is looked up.
func (who Identity) MayReportAtAll() error {
	if who.Role != RoleAdmin && who.Role != RoleEditor && who.Role != RoleAgent {
		return who.Forbidden("report for clusters")
	}
	return nil
}

// MayReport checks heartbeats and other reports of agents about a cluster.
func (who Identity) MayReport(cluster api.Object) error {
	if err := who.MayReportAtAll(); err != nil {
		return err
	}
	if !who.actsFor(Owners(cluster)) {
		return who.Forbidden("report for " + api.KeyOf(cluster).String())
	}
	return nil
}

// MayReportOn checks reports about a workload before anything is looked up. A cluster that belongs
// to a namespace only runs workloads of that namespace, so an agent restricted to some namespaces
// has nothing to report about others.
func (who Identity) MayReportOn(workload api.Key) error {
	if err := who.MayReportAtAll(); err != nil {
		return err
	}
	if !who.Sees(OwnersIn(workload.Namespace)...) {
		return who.Forbidden("report on " + workload.String())
	}
	return nil
}

// MayAdminister checks the management of tokens.
func (who Identity) MayAdminister() error {
	if who.Role != RoleAdmin {
		return who.Forbidden("administer tokens")
	}
	return nil
}

type identityKey struct{}

// with returns a context with the identity of a request.
func with(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// Of returns the identity of a request. In a context without authentication, nothing is allowed.
func Of(ctx context.Context) Identity {
	who, _ := ctx.Value(identityKey{}).(Identity)
	return who
}
