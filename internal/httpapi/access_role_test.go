package httpapi

import (
	"fmt"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// narrow is a role with one verb on one kind. Roles that write or delete may also read everything,
// because what they write may refer to anything.
type narrow struct {
	verb  api.Verb
	kind  api.Kind
	token string
}

func (n narrow) name() string { return strings.ReplaceAll(string(n.verb)+"-"+string(n.kind), "_", "-") }

func (n narrow) rules() []api.RoleRule {
	rules := []api.RoleRule{{Verbs: []api.Verb{n.verb}, Kinds: []api.Kind{n.kind}}}
	if n.verb == api.VerbWrite || n.verb == api.VerbDelete {
		rules = append(rules, api.RoleRule{Verbs: []api.Verb{api.VerbRead}})
	}
	return rules
}

// may reports whether an operation is allowed, by the verb and the kind that its name and path stand for.
func (n narrow) may(op documented) bool {
	readsAll := n.verb == api.VerbWrite || n.verb == api.VerbDelete
	kind := kindOf(op).Kind
	switch {
	case strings.HasPrefix(op.path, "/globalscheduler/") && (strings.Contains(op.path, "/pods") || strings.Contains(op.path, "/allocations")):
		kind = api.KindWorkload
	case strings.HasPrefix(op.path, "/globalscheduler/"):
		kind = api.KindCluster
	case strings.Contains(op.path, "/previews"), op.id == "simulate":
		kind = api.KindPlacement
	}
	is := func(verb api.Verb) bool { return n.verb == verb && n.kind == kind }
	deletes := op.method == http.MethodDelete
	switch op.access {
	case auth.AccessOpen:
		return true
	case auth.AccessRead:
		if strings.HasPrefix(op.path, "/integrations/") {
			return readsAll // of both the decision and its clusters
		}
		return readsAll || is(api.VerbRead) || kind == "" && n.verb == api.VerbRead
	case auth.AccessReadReports:
		return readsAll || is(api.VerbRead) || is(api.VerbReport)
	case auth.AccessWrite:
		// An allocation that does not fit is deleted again.
		return op.id != "globalscheduler-allocate" && is(api.VerbWrite)
	case auth.AccessDelete:
		return is(api.VerbDelete)
	case auth.AccessReport:
		if kind == api.KindPlacementScore && (deletes && is(api.VerbDelete) || !deletes && is(api.VerbWrite)) {
			return true
		}
		// The health of an object is reported from a cluster, for which one must be allowed to report, too.
		return !strings.HasPrefix(op.id, "report-health-") && is(api.VerbReport)
	case auth.AccessAdminister:
	}
	return false
}

// TestEveryRouteForNarrowRoles calls every operation with roles that have one verb on one kind of object.
func TestEveryRouteForNarrowRoles(t *testing.T) {
	t.Parallel()
	var roles []narrow
	for _, verb := range []api.Verb{api.VerbRead, api.VerbWrite, api.VerbDelete, api.VerbReport} {
		for _, kind := range []api.Kind{api.KindCluster, api.KindCloud, api.KindPlacement, api.KindPlacementScore, api.KindWorkload} {
			roles = append(roles, narrow{verb: verb, kind: kind})
		}
	}
	a := &accessTest{ids: map[string]string{}, changed: true, audited: &auditLines{}}
	a.testServer = startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true}, authenticated, a.audited.kept(t, false),
		func(o *Options) {
			o.LoginFailureBurst, o.MaxPreviews = 100_000, 100_000
		})
	a.admin = a.addToken(auth.RoleAdmin)
	a.token = a.admin
	for i := range roles {
		a.mustPut("/v1/roles/"+roles[i].name(), fmt.Sprintf(`{"spec":{"rules":%s}}`, encoded(t, roles[i].rules())))
		roles[i].token = a.addToken(auth.Role(roles[i].name()))
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
				t.Errorf("%s as %s: %s %s: %d %.300s, want allowed = %t", op.id, role.name(), op.method, path, status, answer, want)
			}
			answers[status != http.StatusForbidden]++
		}
	}
	if answers[true] < 100 || answers[false] < 100 {
		t.Errorf("answers %v: most cases test nothing", answers)
	}
}
