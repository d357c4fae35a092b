package httpapi

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// narrow is a role of the configuration with one verb on one kind. Roles that write or delete may also read everything,
// because what they write may refer to anything.
type narrow struct {
	verb  auth.Verb
	kind  api.Kind
	token string
}

func (n narrow) definition() auth.RoleDefinition {
	name := strings.ReplaceAll(string(n.verb)+"-"+string(n.kind), "_", "-")
	rules := []auth.Rule{{Verbs: []auth.Verb{n.verb}, Kinds: []api.Kind{n.kind}}}
	if n.verb == auth.VerbWrite || n.verb == auth.VerbDelete {
		rules = append(rules, auth.Rule{Verbs: []auth.Verb{auth.VerbRead}})
	}
	return auth.RoleDefinition{Name: auth.Role(name), Rules: rules}
}

// may reports whether an operation is allowed, by the verb and the kind that its name and path stand for.
func (n narrow) may(op documented) bool {
	readsAll := n.verb == auth.VerbWrite || n.verb == auth.VerbDelete
	kind := kindOf(op).Kind
	switch {
	case strings.HasPrefix(op.path, "/globalscheduler/") && (strings.Contains(op.path, "/pods") || strings.Contains(op.path, "/allocations")):
		kind = api.KindWorkload
	case strings.HasPrefix(op.path, "/globalscheduler/"):
		kind = api.KindCluster
	case strings.Contains(op.path, "/previews"), op.id == "simulate":
		kind = api.KindPlacement
	}
	is := func(verb auth.Verb) bool { return n.verb == verb && n.kind == kind }
	deletes := op.method == http.MethodDelete
	switch op.access {
	case auth.AccessOpen:
		return true
	case auth.AccessRead:
		if strings.HasPrefix(op.path, "/integrations/") {
			return readsAll // of both the decision and its clusters
		}
		return readsAll || is(auth.VerbRead) || kind == "" && n.verb == auth.VerbRead
	case auth.AccessReadReports:
		return readsAll || is(auth.VerbRead) || is(auth.VerbReport)
	case auth.AccessWrite:
		// An allocation that does not fit is deleted again.
		return op.id != "globalscheduler-allocate" && is(auth.VerbWrite)
	case auth.AccessDelete:
		return is(auth.VerbDelete)
	case auth.AccessReport:
		if kind == api.KindPlacementScore && (deletes && is(auth.VerbDelete) || !deletes && is(auth.VerbWrite)) {
			return true
		}
		// The health of an object is reported from a cluster, for which one must be allowed to report, too.
		return !strings.HasPrefix(op.id, "report-health-") && is(auth.VerbReport)
	case auth.AccessAdminister:
	}
	return false
}

// TestEveryRouteForNarrowRoles calls every operation with roles that have one verb on one kind of object.
func TestEveryRouteForNarrowRoles(t *testing.T) {
	t.Parallel()
	var roles []narrow
	var defined []auth.RoleDefinition
	for _, verb := range []auth.Verb{auth.VerbRead, auth.VerbWrite, auth.VerbDelete, auth.VerbReport} {
		for _, kind := range []api.Kind{api.KindCluster, api.KindCloud, api.KindPlacement, api.KindPlacementScore, api.KindWorkload} {
			roles = append(roles, narrow{verb: verb, kind: kind})
			defined = append(defined, roles[len(roles)-1].definition())
		}
	}
	if errs := auth.ValidateRoles("roles", defined); len(errs) > 0 {
		t.Fatal(errs)
	}
	a := &accessTest{ids: map[string]string{}, changed: true, audited: &auditLines{}}
	a.testServer = startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, authenticated, a.audited.kept(t, false),
		func(o *Options) {
			o.LoginFailureBurst, o.MaxPreviews, o.Roles = 100_000, 100_000, auth.NewRoles(defined)
		})
	a.admin = a.addToken(auth.RoleAdmin)
	for i := range roles {
		roles[i].token = a.addToken(roles[i].definition().Name)
	}
	answers := map[bool]int{}
	for _, op := range a.operations() {
		target := own
		if targets := op.targets(); !slices.Contains(targets, own) {
			target = targets[0]
		}
		for _, role := range roles {
			a.restore()
			path, body := a.path(op, target), a.body(op, target)
			a.token = role.token
			status, answer := a.ask(op, path, body)
			if want := role.may(op); (status != http.StatusForbidden) != want || status == http.StatusUnauthorized || status >= 500 {
				t.Errorf("%s as %s: %s %s: %d %.300s, want allowed = %t", op.id, role.definition().Name, op.method, path, status, answer, want)
			}
			answers[status != http.StatusForbidden]++
		}
	}
	if answers[true] < 100 || answers[false] < 100 {
		t.Errorf("answers %v: most cases test nothing", answers)
	}
}
