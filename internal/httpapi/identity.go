package httpapi

import (
	"context"
	"slices"
	"strings"

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

// identity is who makes a request.
type identity struct {
	tokenID    string
	role       Role
	namespaces []string // empty = all
}

// form is the same for those who see every object alike.
func (i identity) form() string {
	return string(i.role) + " " + strings.Join(slices.Sorted(slices.Values(i.namespaces)), " ")
}

func (i identity) bound() bool { return len(i.namespaces) > 0 }

// owners are the namespaces that an object belongs to, none for everybody's. A
// cluster or a cloud is global but may have owners.
func owners(object api.Object) []string {
	if o, ok := object.(interface{ Owners() []string }); ok {
		return o.Owners()
	}
	return ownersIn(object.Meta().Namespace)
}

// ownersIn are the owners of what is in a namespace.
func ownersIn(namespace string) []string {
	if namespace == "" {
		return nil
	}
	return []string{namespace}
}

func (i identity) forbidden(doing string) *problem {
	what := "a token with role " + string(i.role)
	if i.bound() {
		what += " for the namespaces " + strings.Join(i.namespaces, ", ")
	}
	return newProblem(api.ProblemForbidden, "%s must not %s", what, doing)
}

// sees reports whether objects of these owners may be shown: one of them is
// enough.
func (i identity) sees(owners ...string) bool {
	return !i.bound() || len(owners) == 0 || slices.ContainsFunc(owners, i.isFor)
}

// isFor reports whether a token that is bound is so to a namespace.
func (i identity) isFor(namespace string) bool { return slices.Contains(i.namespaces, namespace) }

// actsFor reports whether the token may do something to objects of these owners,
// which all of them notice: it has to be for every one of them.
func (i identity) actsFor(owners []string) bool {
	return !i.bound() || len(owners) > 0 && !slices.ContainsFunc(owners, func(owner string) bool { return !i.isFor(owner) })
}

// seesWorkload reports whether a workload that a status names, as
// namespace/name, may be shown.
func (i identity) seesWorkload(path string) bool {
	namespace, _, _ := strings.Cut(path, "/")
	return i.sees(ownersIn(namespace)...)
}

func (i identity) mayRead(object api.Object) error {
	return i.mayReadOwned(owners(object))
}

// mayReadNamespace is asked for what is in a namespace; "" = what is in none.
func (i identity) mayReadNamespace(namespace string) error {
	err := i.mayReadOwned(ownersIn(namespace))
	if err != nil && !i.sees(ownersIn(namespace)...) {
		return i.forbidden("read what belongs to namespace \"" + namespace + "\"")
	}
	return err
}

// mayReadOwned is asked for an object of these owners, whom nobody else learns.
func (i identity) mayReadOwned(owners []string) error {
	switch {
	case i.role != RoleAdmin && i.role != RoleEditor && i.role != RoleViewer:
		return i.forbidden("read objects")
	case !i.sees(owners...):
		return i.forbidden("read what belongs to other namespaces")
	}
	return nil
}

// mayWriteKey is asked before the object is known, so that nobody learns what
// exists by trying to write it.
func (i identity) mayWriteKey(key api.Key) error {
	if i.role != RoleAdmin && i.role != RoleEditor || !i.sees(ownersIn(key.Namespace)...) {
		return i.forbidden("write " + key.String())
	}
	return nil
}

func (i identity) mayWrite(object api.Object) error {
	owned := owners(object)
	switch {
	case i.role != RoleAdmin && i.role != RoleEditor:
		return i.forbidden("write " + api.KeyOf(object).String())
	case i.bound() && len(owned) == 0:
		return i.forbidden("write " + api.KeyOf(object).String() + ", which belongs to no namespace")
	case !i.actsFor(owned) && i.sees(owned...):
		return i.forbidden("write " + api.KeyOf(object).String() + ", which belongs to other namespaces as well")
	case !i.actsFor(owned):
		return i.forbidden("write " + api.KeyOf(object).String() + ", which belongs to other namespaces")
	}
	return nil
}

// mayReportAtAll is asked before the cluster is known.
func (i identity) mayReportAtAll() error {
	if i.role != RoleAdmin && i.role != RoleEditor && i.role != RoleAgent {
		return i.forbidden("report for clusters")
	}
	return nil
}

// mayReport is asked for heartbeats, and for what agents write of a cluster.
func (i identity) mayReport(cluster api.Object) error {
	if err := i.mayReportAtAll(); err != nil {
		return err
	}
	if !i.actsFor(owners(cluster)) {
		return i.forbidden("report for " + api.KeyOf(cluster).String())
	}
	return nil
}

// mayReportOn is asked for reports about a workload, before anything is known. A
// cluster that belongs to a namespace runs workloads of that one only, so an
// agent of some namespaces has nothing to report about those of others.
func (i identity) mayReportOn(workload api.Key) error {
	if err := i.mayReportAtAll(); err != nil {
		return err
	}
	if !i.sees(ownersIn(workload.Namespace)...) {
		return i.forbidden("report on " + workload.String())
	}
	return nil
}

// mayAdminister is asked for tokens.
func (i identity) mayAdminister() error {
	if i.role != RoleAdmin {
		return i.forbidden("administer tokens")
	}
	return nil
}

type identityKey struct{}

func withIdentity(ctx context.Context, who identity) context.Context {
	return context.WithValue(ctx, identityKey{}, who)
}

// identityOf is who makes the request; a context that passed no authentication
// may do nothing.
func identityOf(ctx context.Context) identity {
	who, _ := ctx.Value(identityKey{}).(identity)
	return who
}
