package auth

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Identity is who makes a request.
type Identity struct {
	TokenID    string   // empty if no token was required
	Role       Role     // of the token; "" = only those that role bindings give
	Namespaces []string // limit the role; empty = no limit
	// ExpiresAt is when the token of a trusted issuer expires. Zero for tokens of the
	// server itself, whose expiry is in the store and may change.
	ExpiresAt time.Time

	// issuer and claims are what a trusted issuer says about its token, and reads are the claims that the configuration asks for.
	issuer string
	claims map[string]any
	reads  []string

	// rules are what the role and the role bindings allow. nil: the identity is not resolved, and its role is a built-in one.
	rules    []api.RoleRule
	bindings []string // names of the role bindings
	missing  []Role   // that it has and that do not exist
	resolved int64    // the version of the roles
}

// allowed returns what the identity may do.
func (who Identity) allowed() []api.RoleRule {
	if who.rules == nil {
		return limited(builtIn[who.Role], who.Namespaces)
	}
	return who.rules
}

// RoleBindings returns the names of the role bindings that say what the identity may do besides its role.
func (who Identity) RoleBindings() []string { return who.bindings }

// Issued returns the identity of a token of a trusted issuer, named as in the configuration, with its claims. reads are the
// claims that the bindings of the configuration read. It has to be resolved.
func Issued(issuer, subject string, claims map[string]any, reads []string, expires time.Time) Identity {
	return Identity{TokenID: issuedTokenID(issuer, subject), ExpiresAt: expires, issuer: issuer, claims: claims, reads: reads}
}

// issuedTokenID identifies tokens of a trusted issuer, by its name in the configuration and
// the subject. No token of the server has an ID of this form.
func issuedTokenID(issuer, subject string) string {
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
	return fmt.Sprint(who.allowed())
}

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
	what := "a token without a role"
	if who.Role != "" {
		what = "a token with role " + string(who.Role)
	}
	if len(who.Namespaces) > 0 {
		what += " for the namespaces " + strings.Join(who.Namespaces, ", ")
	}
	if len(who.bindings) > 0 {
		what += " and the role bindings " + strings.Join(who.bindings, ", ")
	}
	what += " must not " + doing
	if len(who.missing) > 0 {
		what += ": there is no role " + list(who.missing)
	}
	return &ForbiddenError{Detail: what}
}

// covers reports whether a verb is allowed on some objects of a kind.
func (who Identity) covers(verb api.Verb, kind api.Kind) bool {
	return slices.ContainsFunc(who.allowed(), func(r api.RoleRule) bool { return covers(r, verb, kind) })
}

// in reports whether a verb is allowed on objects of a kind in a namespace.
func (who Identity) in(verb api.Verb, kind api.Kind, namespace string) bool {
	return slices.ContainsFunc(who.allowed(), func(r api.RoleRule) bool { return covers(r, verb, kind) && includes(r, namespace) })
}

// allows reports whether a verb that affects only one of the owners is allowed: access to one of the namespaces is enough,
// and objects without owners are shared by all.
func (who Identity) allows(verb api.Verb, kind api.Kind, owners []string) bool {
	if len(owners) == 0 {
		return who.covers(verb, kind)
	}
	return slices.ContainsFunc(owners, func(owner string) bool { return who.in(verb, kind, owner) })
}

// unlimited reports whether a verb is allowed on all objects of a kind.
func (who Identity) unlimited(verb api.Verb, kind api.Kind) bool {
	return slices.ContainsFunc(who.allowed(), func(r api.RoleRule) bool { return covers(r, verb, kind) && len(r.Namespaces) == 0 })
}

// allowsAll reports whether a verb that affects all owners of an object is allowed: it needs access to every one.
func (who Identity) allowsAll(verb api.Verb, kind api.Kind, owners []string) bool {
	return who.unlimited(verb, kind) ||
		len(owners) > 0 && !slices.ContainsFunc(owners, func(owner string) bool { return !who.in(verb, kind, owner) })
}

// ReadsAll reports whether the identity may read every object, so that nothing has to be left out.
func (who Identity) ReadsAll() bool { return who.all(api.VerbRead) }

// all reports whether a verb is allowed on all objects of all kinds.
func (who Identity) all(verb api.Verb) bool {
	return slices.ContainsFunc(who.allowed(), func(r api.RoleRule) bool {
		return (verb == anyVerb || slices.Contains(r.Verbs, verb)) && len(r.Kinds) == 0 && len(r.Namespaces) == 0
	})
}

// Reads reports whether objects of a kind with these owners may be read: access to one of the
// namespaces is enough.
func (who Identity) Reads(kind api.Kind, owners ...string) bool {
	return who.allows(api.VerbRead, kind, owners)
}

// ReadsEvery reports whether all objects of a kind may be read.
func (who Identity) ReadsEvery(kind api.Kind) bool { return who.unlimited(api.VerbRead, kind) }

// sees reports whether information about objects of a kind with these owners may be part of an
// object that is shown. Agents see what concerns their namespaces in the objects that they report
// on, although they may not read the others.
func (who Identity) sees(kind api.Kind, owners ...string) bool {
	return who.allows(anyVerb, kind, owners)
}

// SeesObject reports whether information about an object may be part of another that is shown.
func (who Identity) SeesObject(object api.Object) bool {
	return who.sees(object.ObjectKind(), Owners(object)...)
}

// SeesEvery reports whether information about all objects of a kind may be shown.
func (who Identity) SeesEvery(kind api.Kind) bool { return who.unlimited(anyVerb, kind) }

// SeesWorkload reports whether a workload named namespace/name in a status may be shown.
func (who Identity) SeesWorkload(path string) bool {
	namespace, _, _ := strings.Cut(path, "/")
	return who.sees(api.KindWorkload, OwnersIn(namespace)...)
}

// MayReadSomething checks operations that are not about one kind of object.
func (who Identity) MayReadSomething() error {
	if !slices.ContainsFunc(who.allowed(), func(r api.RoleRule) bool { return slices.Contains(r.Verbs, api.VerbRead) }) {
		return who.Forbidden("read objects")
	}
	return nil
}

// MayReadKind checks whether some objects of a kind may be read.
func (who Identity) MayReadKind(kind api.Kind) error { return who.mayReadOwned(kind, nil) }

// MayRead checks whether an object may be read.
func (who Identity) MayRead(object api.Object) error {
	return who.mayReadOwned(object.ObjectKind(), Owners(object))
}

// MayReadIn checks whether the objects of a kind in a namespace may be read; "" means global
// objects, or all namespaces that may be read.
func (who Identity) MayReadIn(kind api.Kind, namespace string) error {
	owners := OwnersIn(namespace)
	if who.covers(api.VerbRead, kind) && !who.allows(api.VerbRead, kind, owners) {
		return who.Forbidden("read what belongs to namespace \"" + namespace + "\"")
	}
	return who.mayReadOwned(kind, owners)
}

// mayReadOwned checks whether an object with these owners, which the error does not disclose, may
// be read.
func (who Identity) mayReadOwned(kind api.Kind, owners []string) error {
	if err := who.MayReadSomething(); err != nil {
		return err
	}
	switch {
	case !who.covers(api.VerbRead, kind):
		return who.Forbidden("read objects of kind " + string(kind))
	case !who.allows(api.VerbRead, kind, owners):
		return who.Forbidden("read what belongs to other namespaces")
	}
	return nil
}

// MayWriteKey is checked before the object is looked up, so that write attempts do not disclose
// what exists.
func (who Identity) MayWriteKey(key api.Key) error { return who.mayKey(api.VerbWrite, key) }

// MayDeleteKey is MayWriteKey for deletion.
func (who Identity) MayDeleteKey(key api.Key) error { return who.mayKey(api.VerbDelete, key) }

func (who Identity) mayKey(verb api.Verb, key api.Key) error {
	if !who.allows(verb, key.Kind, OwnersIn(key.Namespace)) {
		return who.Forbidden(string(verb) + " " + key.String())
	}
	return nil
}

// MayWrite checks whether an object may be written; it is called for the current and for the new
// version.
func (who Identity) MayWrite(object api.Object) error { return who.may(api.VerbWrite, object) }

// may checks a verb that affects all owners of an object.
func (who Identity) may(verb api.Verb, object api.Object) error {
	kind, owned := object.ObjectKind(), Owners(object)
	refuse := func(reason string) error {
		return who.Forbidden(string(verb) + " " + api.KeyOf(object).String() + reason)
	}
	switch {
	case who.allowsAll(verb, kind, owned):
		return nil
	case !who.covers(verb, kind):
		return refuse("")
	case len(owned) == 0:
		return refuse(", which belongs to no namespace")
	case who.allows(verb, kind, owned):
		return refuse(", which belongs to other namespaces as well")
	}
	return refuse(", which belongs to other namespaces")
}

// MayReportAtAll is checked before the object that a report is about is looked up.
func (who Identity) MayReportAtAll(kind api.Kind) error {
	if !who.covers(api.VerbReport, kind) {
		return who.Forbidden("report for objects of kind " + string(kind))
	}
	return nil
}

// MayReport checks heartbeats and other reports of agents about a cluster or cloud.
func (who Identity) MayReport(about api.Object) error {
	kind := about.ObjectKind()
	if err := who.MayReportAtAll(kind); err != nil {
		return err
	}
	if !who.allowsAll(api.VerbReport, kind, Owners(about)) {
		return who.Forbidden("report for " + api.KeyOf(about).String())
	}
	return nil
}

// MayReportOn checks reports about a workload before anything is looked up. A cluster that belongs
// to a namespace only runs workloads of that namespace, so an agent restricted to some namespaces
// has nothing to report about others.
func (who Identity) MayReportOn(workload api.Key) error {
	if err := who.MayReportAtAll(workload.Kind); err != nil {
		return err
	}
	if !who.allows(api.VerbReport, workload.Kind, OwnersIn(workload.Namespace)) {
		return who.Forbidden("report on " + workload.String())
	}
	return nil
}

// MayAdminister checks the right to manage tokens, roles and the store, of which the request needs action: "manage tokens".
func (who Identity) MayAdminister(action string) error {
	if !who.all(verbAdminister) {
		return who.Forbidden(action)
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
