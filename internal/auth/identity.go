package auth

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Role says what the holder of a token may do.
type Role string

// The roles.
const (
	// RoleAdmin may do everything, tokens included.
	RoleAdmin Role = "admin"
	// RoleEditor may read and write objects.
	RoleEditor Role = "editor"
	// RoleViewer may read, explain and simulate.
	RoleViewer Role = "viewer"
	// RoleAgent may report heartbeats, the figures of clouds and the health of
	// workloads, and keep the placement scores of clusters, and nothing else.
	RoleAgent Role = "agent"
)

// Roles lists every role, the most powerful first.
var Roles = []Role{RoleAdmin, RoleEditor, RoleViewer, RoleAgent}

// Identity is who makes a request.
type Identity struct {
	TokenID    string // empty where no token was needed
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

// Form is the same for those who see every object alike.
func (who Identity) Form() string {
	return string(who.Role) + " " + strings.Join(slices.Sorted(slices.Values(who.Namespaces)), " ")
}

// Bound reports whether the token is for some namespaces only.
func (who Identity) Bound() bool { return len(who.Namespaces) > 0 }

// Owners are the namespaces that an object belongs to, none for everybody's. A
// cluster or a cloud is global but may have owners.
func Owners(object api.Object) []string {
	if o, ok := object.(interface{ Owners() []string }); ok {
		return o.Owners()
	}
	return OwnersIn(object.Meta().Namespace)
}

// OwnersIn are the owners of what is in a namespace.
func OwnersIn(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return []string{namespace}
}

// ForbiddenError says that somebody must not do something.
type ForbiddenError struct {
	Detail string
	// Fields are those of a document that name what somebody must not read.
	Fields api.FieldErrors
}

// Error implements error.
func (e *ForbiddenError) Error() string { return e.Detail }

// Forbidden is the error for who must not do something.
func (who Identity) Forbidden(doing string) *ForbiddenError {
	what := "a token with role " + string(who.Role)
	if who.Bound() {
		what += " for the namespaces " + strings.Join(who.Namespaces, ", ")
	}
	return &ForbiddenError{Detail: what + " must not " + doing}
}

// Sees reports whether objects of these owners may be shown: one of them is
// enough.
func (who Identity) Sees(owners ...string) bool {
	return !who.Bound() || len(owners) == 0 || slices.ContainsFunc(owners, who.isFor)
}

// isFor reports whether a token that is bound is so to a namespace.
func (who Identity) isFor(namespace string) bool { return slices.Contains(who.Namespaces, namespace) }

// actsFor reports whether the token may do something to objects of these owners,
// which all of them notice: it has to be for every one of them.
func (who Identity) actsFor(owners []string) bool {
	return !who.Bound() || len(owners) > 0 && !slices.ContainsFunc(owners, func(owner string) bool { return !who.isFor(owner) })
}

// SeesWorkload reports whether a workload that a status names, as
// namespace/name, may be shown.
func (who Identity) SeesWorkload(path string) bool {
	namespace, _, _ := strings.Cut(path, "/")
	return who.Sees(OwnersIn(namespace)...)
}

// MayRead is asked for an object.
func (who Identity) MayRead(object api.Object) error {
	return who.mayReadOwned(Owners(object))
}

// MayReadNamespace is asked for what is in a namespace; "" = what is in none.
func (who Identity) MayReadNamespace(namespace string) error {
	err := who.mayReadOwned(OwnersIn(namespace))
	if err != nil && !who.Sees(OwnersIn(namespace)...) {
		return who.Forbidden("read what belongs to namespace \"" + namespace + "\"")
	}
	return err
}

// mayReadOwned is asked for an object of these owners, whom nobody else learns.
func (who Identity) mayReadOwned(owners []string) error {
	switch {
	case who.Role != RoleAdmin && who.Role != RoleEditor && who.Role != RoleViewer:
		return who.Forbidden("read objects")
	case !who.Sees(owners...):
		return who.Forbidden("read what belongs to other namespaces")
	}
	return nil
}

// MayWriteKey is asked before the object is known, so that nobody learns what
// exists by trying to write it.
func (who Identity) MayWriteKey(key api.Key) error {
	if who.Role != RoleAdmin && who.Role != RoleEditor || !who.Sees(OwnersIn(key.Namespace)...) {
		return who.Forbidden("write " + key.String())
	}
	return nil
}

// MayWrite is asked for an object as it is, and as it is going to be.
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

// MayReportAtAll is asked before the cluster is known.
func (who Identity) MayReportAtAll() error {
	if who.Role != RoleAdmin && who.Role != RoleEditor && who.Role != RoleAgent {
		return who.Forbidden("report for clusters")
	}
	return nil
}

// MayReport is asked for heartbeats, and for what agents write of a cluster.
func (who Identity) MayReport(cluster api.Object) error {
	if err := who.MayReportAtAll(); err != nil {
		return err
	}
	if !who.actsFor(Owners(cluster)) {
		return who.Forbidden("report for " + api.KeyOf(cluster).String())
	}
	return nil
}

// MayReportOn is asked for reports about a workload, before anything is known. A
// cluster that belongs to a namespace runs workloads of that one only, so an
// agent of some namespaces has nothing to report about those of others.
func (who Identity) MayReportOn(workload api.Key) error {
	if err := who.MayReportAtAll(); err != nil {
		return err
	}
	if !who.Sees(OwnersIn(workload.Namespace)...) {
		return who.Forbidden("report on " + workload.String())
	}
	return nil
}

// MayAdminister is asked for tokens.
func (who Identity) MayAdminister() error {
	if who.Role != RoleAdmin {
		return who.Forbidden("administer tokens")
	}
	return nil
}

type identityKey struct{}

// With is a context of what somebody asks for.
func With(ctx context.Context, who Identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// Of is who makes the request; a context that passed no authentication
// may do nothing.
func Of(ctx context.Context) Identity {
	who, _ := ctx.Value(identityKey{}).(Identity)
	return who
}
