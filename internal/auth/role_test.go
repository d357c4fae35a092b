package auth

import (
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// object returns an object of a kind: in a namespace, owned by it, or global.
func object(t *testing.T, kind api.Kind, owners ...string) api.Object {
	t.Helper()
	info, known := api.LookupKind(kind)
	if !known {
		t.Fatalf("%q is not a kind", kind)
	}
	o := info.New()
	o.Meta().Name = "x"
	switch o := o.(type) {
	case *api.Cluster:
		o.Spec.Namespaces = owners
	default:
		if len(owners) > 0 {
			o.Meta().Namespace = owners[0]
		}
	}
	return o
}

// TestRulesOfARole asks what a role may do.
func TestRulesOfARole(t *testing.T) {
	roles := Roles{defined: map[Role][]api.RoleRule{
		"deployer": {
			{Verbs: []api.Verb{api.VerbRead}, Kinds: []api.Kind{api.KindCluster, api.KindPlacement}},
			{Verbs: []api.Verb{api.VerbWrite}, Kinds: []api.Kind{api.KindPlacement}, Namespaces: []string{"shop", "bank"}},
			{Verbs: []api.Verb{api.VerbDelete}, Kinds: []api.Kind{api.KindPlacement}, Namespaces: []string{"shop"}},
		},
		"platform":  {{Verbs: []api.Verb{api.VerbRead, api.VerbWrite}, Kinds: []api.Kind{api.KindCluster}}},
		"collector": {{Verbs: []api.Verb{api.VerbReport}, Kinds: []api.Kind{api.KindCluster}, Namespaces: []string{"shop"}}},
		"all":       {{Verbs: []api.Verb{api.VerbRead, api.VerbWrite, api.VerbDelete, api.VerbReport}}},
	}}
	read := func(who Identity, o api.Object) error { return who.MayRead(o) }
	write := func(who Identity, o api.Object) error { return who.MayWrite(o) }
	remove := func(who Identity, o api.Object) error { return who.may(api.VerbDelete, o) }
	report := func(who Identity, o api.Object) error { return who.MayReport(o) }
	administer := func(who Identity, _ api.Object) error { return who.MayAdminister("manage tokens") }
	for _, test := range []struct {
		name       string
		role       Role
		namespaces []string
		ask        func(Identity, api.Object) error
		object     api.Object
		want       string // part of the error; empty = allowed
	}{
		{"read a kind of the rule", "deployer", nil, read, object(t, api.KindCluster), ""},
		{"read in any namespace", "deployer", nil, read, object(t, api.KindPlacement, "vault"), ""},
		{"read another kind", "deployer", nil, read, object(t, api.KindMetric, "shop"), "must not read objects of kind metric"},
		{"write in a namespace of the rule", "deployer", nil, write, object(t, api.KindPlacement, "bank"), ""},
		{"write in another namespace", "deployer", nil, write, object(t, api.KindPlacement, "vault"), "which belongs to other namespaces"},
		{"write what may only be read", "deployer", nil, write, object(t, api.KindCluster), "a token with role deployer must not write cluster"},
		{"delete in a namespace of the rule", "deployer", nil, remove, object(t, api.KindPlacement, "shop"), ""},
		{"delete what may only be written", "deployer", nil, remove, object(t, api.KindPlacement, "bank"), "must not delete placement"},
		{"report", "deployer", nil, report, object(t, api.KindCluster), "must not report"},
		{"administer", "deployer", nil, administer, nil, "must not manage tokens"},
		{"the token limits the rules", "deployer", []string{"shop"}, write, object(t, api.KindPlacement, "bank"), "for the namespaces shop must not write"},
		{"the token does not extend the rules", "deployer", []string{"vault"}, write, object(t, api.KindPlacement, "vault"), "must not write"},
		{"within both", "deployer", []string{"shop", "vault"}, write, object(t, api.KindPlacement, "shop"), ""},
		{"write a shared cluster", "platform", nil, write, object(t, api.KindCluster), ""},
		{"write a shared cluster with a limited token", "platform", []string{"shop"}, write, object(t, api.KindCluster), "which belongs to no namespace"},
		{"write a cluster of two owners", "platform", []string{"shop", "bank"}, write, object(t, api.KindCluster, "shop", "bank"), ""},
		{"write a cluster of another owner as well", "platform", []string{"shop"}, write, object(t, api.KindCluster, "shop", "bank"), "which belongs to other namespaces as well"},
		{"report for a cluster of the rule", "collector", nil, report, object(t, api.KindCluster, "shop"), ""},
		{"report for a shared cluster", "collector", nil, report, object(t, api.KindCluster), "must not report for cluster"},
		{"report for another kind", "collector", nil, report, object(t, api.KindCloud), "must not report"},
		{"read with a role that reports", "collector", nil, read, object(t, api.KindCluster, "shop"), "must not read objects"},
		{"administer", "admin", nil, administer, nil, ""},
		{"administer with a limited token", "admin", []string{"shop"}, administer, nil, "must not manage tokens"},
		{"administer with all verbs", "all", nil, administer, nil, "must not manage tokens"},
		{"read a role", "viewer", nil, read, object(t, api.KindRole), ""},
		{"read a role with a limited token", "viewer", []string{"shop"}, read, object(t, api.KindRole), "must not read what belongs to other namespaces"},
		{"read a role binding with a limited token", "viewer", []string{"shop"}, read, object(t, api.KindRoleBinding), "must not read what belongs to other namespaces"},
		{"write a role", "editor", nil, write, object(t, api.KindRole), "must not write role"},
		{"write a role binding with all verbs", "all", nil, write, object(t, api.KindRoleBinding), "must not write role_binding"},
		{"delete a role binding", "all", nil, remove, object(t, api.KindRoleBinding), "must not delete role_binding"},
		{"write a role binding as an administrator", "admin", nil, write, object(t, api.KindRoleBinding), ""},
		{"a role that allows nothing where the token is valid", "collector", []string{"vault"}, report, object(t, api.KindCluster, "vault"), "must not report for objects of kind cluster"},
		{"a role that is not defined", "gone", nil, read, object(t, api.KindCluster), "must not read objects: there is no role gone"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.ask(roles.Resolve(Identity{TokenID: "id", Role: test.role, Namespaces: test.namespaces}), test.object)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want one that contains %q", err, test.want)
			}
		})
	}
}

// TestBuiltInRoles checks that those are the reserved names, and have rules.
func TestBuiltInRoles(t *testing.T) {
	if len(builtIn) != len(api.BuiltInRoles) {
		t.Errorf("%d roles with rules, and %d names", len(builtIn), len(api.BuiltInRoles))
	}
	for _, name := range api.BuiltInRoles {
		if len(builtIn[Role(name)]) == 0 {
			t.Errorf("%s has no rules", name)
		}
	}
	if api.BuiltInRoles[0] != string(RoleAdmin) {
		t.Errorf("the first built-in role is %s, want admin", api.BuiltInRoles[0])
	}
}

// A role binding gives a role to those that it names, and no one else.
func TestRoleBindings(t *testing.T) {
	bind := func(name, role string, change func(*api.RoleBindingSpec)) binding {
		b := &api.RoleBinding{Metadata: api.Metadata{Name: name}, Spec: api.RoleBindingSpec{Role: role}}
		change(&b.Spec)
		return binding{b, CompileClaims(b.Spec.Claims)}
	}
	roles := Roles{
		defined: map[Role][]api.RoleRule{"deployer": {
			{Verbs: []api.Verb{api.VerbWrite}, Kinds: []api.Kind{api.KindPlacement}},
			{Verbs: []api.Verb{api.VerbDelete}, Namespaces: []string{"shop", "bank"}},
		}},
		bindings: []binding{
			bind("bank", "deployer", func(s *api.RoleBindingSpec) { s.Namespaces, s.TokenIDs = []string{"bank"}, []string{"t1", "t2"} }),
			bind("ci", "deployer", func(s *api.RoleBindingSpec) { s.Issuer, s.Claims = "github", map[string]string{"repository": "shop/*"} }),
			bind("gone", "gone", func(s *api.RoleBindingSpec) { s.TokenIDs = []string{"t3"} }),
			bind("owners", "admin", func(s *api.RoleBindingSpec) { s.Issuer, s.Claims = "people", map[string]string{"groups": "owners"} }),
		},
	}
	issued := func(issuer string, claims map[string]any) Identity {
		return Issued(issuer, "someone", claims, nil, time.Unix(1<<40, 0))
	}
	write, remove := api.VerbWrite, api.VerbDelete
	for _, test := range []struct {
		name      string
		who       Identity
		verb      api.Verb
		kind      api.Kind
		namespace string
		may       bool
	}{
		{"in the namespace of the binding", Identity{TokenID: "t1", Role: RoleViewer}, write, api.KindPlacement, "bank", true},
		{"in another namespace", Identity{TokenID: "t1", Role: RoleViewer}, write, api.KindPlacement, "shop", false},
		{"another kind", Identity{TokenID: "t1", Role: RoleViewer}, write, api.KindWorkload, "bank", false},
		{"the namespaces of the token limit its own role alone", Identity{TokenID: "t2", Role: RoleViewer, Namespaces: []string{"shop"}}, write, api.KindPlacement, "bank", true},
		{"the own role counts as well", Identity{TokenID: "t2", Role: RoleEditor, Namespaces: []string{"shop"}}, write, api.KindWorkload, "shop", true},
		{"the namespaces of rule and binding", Identity{TokenID: "t1", Role: RoleViewer}, remove, api.KindWorkload, "bank", true},
		{"a namespace of the rule alone", Identity{TokenID: "t1", Role: RoleViewer}, remove, api.KindWorkload, "shop", false},
		{"another token", Identity{TokenID: "t4", Role: RoleViewer}, write, api.KindPlacement, "bank", false},
		{"a role that does not exist", Identity{TokenID: "t3", Role: RoleViewer}, write, api.KindPlacement, "bank", false},
		{"claims that match", issued("github", map[string]any{"repository": "shop/web"}), write, api.KindPlacement, "bank", true},
		{"claims that do not", issued("github", map[string]any{"repository": "evil/shop/web"}), write, api.KindPlacement, "bank", false},
		{"the same claims of another issuer", issued("people", map[string]any{"repository": "shop/web"}), write, api.KindPlacement, "bank", false},
		{"an issuer's token is no token of the server", issued("t1", nil), write, api.KindPlacement, "bank", false},
		{"one of a list", issued("people", map[string]any{"groups": []any{"staff", "owners"}}), verbAdminister, api.KindRole, "", true},
		{"nobody", Identity{}, write, api.KindPlacement, "bank", false},
	} {
		t.Run(test.name, func(t *testing.T) {
			if who := roles.Resolve(test.who); who.allows(test.verb, test.kind, OwnersIn(test.namespace)) != test.may {
				t.Errorf("%s %s in %q: allowed is %t", test.verb, test.kind, test.namespace, !test.may)
			}
		})
	}
	bound := roles.Resolve(Identity{TokenID: "t1", Role: RoleViewer})
	if err := bound.Forbidden("x"); !strings.Contains(err.Detail, "a token with role viewer and the role bindings bank must not x") {
		t.Error(err)
	}
	if bound.Form() == roles.Resolve(Identity{TokenID: "t4", Role: RoleViewer}).Form() {
		t.Error("who is bound sees the same as who is not")
	}
}

// A token may have a role that exists, and limits to namespaces unless it administers.
func TestTokensWithRoles(t *testing.T) {
	roles := Roles{defined: map[Role][]api.RoleRule{"deployer": {{Verbs: []api.Verb{api.VerbRead}}}}}
	for _, test := range []struct {
		name    string
		request TokenRequest
		want    string
	}{
		{"a role that is defined", TokenRequest{Role: "deployer", Namespaces: []string{"shop"}}, ""},
		{"an unknown role", TokenRequest{Role: "gone"}, `"gone" is not one of admin, editor, viewer, agent, deployer`},
		{"an unknown role in what is no namespace", TokenRequest{Role: "gone", Namespaces: []string{"Shop"}}, `"Shop" is not a valid namespace name`},
		{"a limited administrator", TokenRequest{Role: "admin", Namespaces: []string{"shop"}}, "must be absent for role admin"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.request.Validate(roles, time.Time{}).Err()
			if test.want == "" && err != nil || test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)) {
				t.Errorf("error %v, want %q", err, test.want)
			}
		})
	}
}

// A candidate that may not be read is not named by how close the decision is to it either.
func TestMarginNamesOnlyWhatMayBeRead(t *testing.T) {
	roles := Roles{defined: map[Role][]api.RoleRule{
		"placements": {{Verbs: []api.Verb{api.VerbRead}, Kinds: []api.Kind{api.KindPlacement}}},
		"clusters":   {{Verbs: []api.Verb{api.VerbRead}, Kinds: []api.Kind{api.KindPlacement, api.KindCluster}}},
	}}
	rights := NewRights(fleet.New(fleet.Options{}))
	explanation := &api.Explanation{
		Kind: api.KindPlacement, Namespace: "shop", Name: "web", Total: 2,
		Candidates: []api.Candidate{{Cluster: "eu-1", Score: new(0.5)}, {Cluster: "eu-2", Score: new(0.25)}}, Margin: &api.MoveMargin{From: "eu-1", To: "eu-2"},
	}
	for role, shown := range map[Role]bool{"placements": false, "clusters": true} {
		x := rights.Visible(roles.Resolve(Identity{TokenID: "t", Role: role}), explanation)
		if (x.Margin != nil) != shown || (len(x.Candidates) == 2) != shown || (x.Total == 2) != shown {
			t.Errorf("%s: margin %v, %d candidates of %d", role, x.Margin, len(x.Candidates), x.Total)
		}
	}
}
