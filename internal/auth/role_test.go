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

// TestRulesOfARole asks what a role of the configuration may do.
func TestRulesOfARole(t *testing.T) {
	roles := NewRoles([]RoleDefinition{
		{"deployer", []Rule{
			{Verbs: []Verb{VerbRead}, Kinds: []api.Kind{api.KindCluster, api.KindPlacement}},
			{Verbs: []Verb{VerbWrite}, Kinds: []api.Kind{api.KindPlacement}, Namespaces: []string{"shop", "bank"}},
			{Verbs: []Verb{VerbDelete}, Kinds: []api.Kind{api.KindPlacement}, Namespaces: []string{"shop"}},
		}},
		{"platform", []Rule{{Verbs: []Verb{VerbRead, VerbWrite}, Kinds: []api.Kind{api.KindCluster}}}},
		{"collector", []Rule{{Verbs: []Verb{VerbReport}, Kinds: []api.Kind{api.KindCluster}, Namespaces: []string{"shop"}}}},
		{"auditor", []Rule{{Verbs: []Verb{VerbRead, VerbAdminister}}}},
	})
	read := func(who Identity, o api.Object) error { return who.MayRead(o) }
	write := func(who Identity, o api.Object) error { return who.MayWrite(o) }
	remove := func(who Identity, o api.Object) error { return who.may(VerbDelete, o) }
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
		{"administer with a role of the configuration", "auditor", nil, administer, nil, ""},
		{"administer with a limited token", "auditor", []string{"shop"}, administer, nil, "must not manage tokens"},
		{"a role that is not defined", "gone", nil, read, object(t, api.KindCluster), "the configuration of the server does not define the role"},
	} {
		t.Run(test.name, func(t *testing.T) {
			err := test.ask(roles.Identity("id", test.role, test.namespaces), test.object)
			switch {
			case test.want == "" && err != nil:
				t.Errorf("error %v, want none", err)
			case test.want != "" && (err == nil || !strings.Contains(err.Error(), test.want)):
				t.Errorf("error %v, want one that contains %q", err, test.want)
			}
		})
	}
}

// A role of the configuration cannot change what a built-in role may do.
func TestValidateRoles(t *testing.T) {
	sound := RoleDefinition{"deployer", []Rule{{Verbs: []Verb{VerbRead}}}}
	if errs := ValidateRoles("auth.roles", []RoleDefinition{sound}); len(errs) > 0 {
		t.Fatal(errs)
	}
	for _, test := range []struct {
		name    string
		defined []RoleDefinition
		field   string
		message string
	}{
		{"name of a built-in role", []RoleDefinition{{"viewer", sound.Rules}}, "auth.roles[0].name", "is the name of another role as well"},
		{"name used twice", []RoleDefinition{sound, sound}, "auth.roles[1].name", "is the name of another role as well"},
		{"no name", []RoleDefinition{{"", sound.Rules}}, "auth.roles[0].name", "lowercase letters"},
		{"invalid name", []RoleDefinition{{"Deployer", sound.Rules}}, "auth.roles[0].name", "lowercase letters"},
		{"no rules", []RoleDefinition{{"deployer", nil}}, "auth.roles[0].rules", "at least one rule"},
		{"no verbs", []RoleDefinition{{"deployer", []Rule{{}}}}, "auth.roles[0].rules[0].verbs", "read, write, delete, report, administer"},
		{"unknown verb", []RoleDefinition{{"deployer", []Rule{{Verbs: []Verb{"get"}}}}}, "auth.roles[0].rules[0].verbs[0]", `"get" is not one of read, write, delete, report, administer`},
		{"unknown kind", []RoleDefinition{{"deployer", []Rule{{Verbs: []Verb{VerbRead}, Kinds: []api.Kind{"clusters"}}}}}, "auth.roles[0].rules[0].kinds[0]", `"clusters" is not one of`},
		{"empty list of kinds", []RoleDefinition{{"deployer", []Rule{{Verbs: []Verb{VerbRead}, Kinds: []api.Kind{}}}}}, "auth.roles[0].rules[0].kinds", "be absent for all"},
		{"empty list of namespaces", []RoleDefinition{{"deployer", []Rule{{Verbs: []Verb{VerbRead}, Namespaces: []string{}}}}}, "auth.roles[0].rules[0].namespaces", "be absent for all"},
		{"invalid namespace", []RoleDefinition{{"deployer", []Rule{{Verbs: []Verb{VerbRead}, Namespaces: []string{"*"}}}}}, "auth.roles[0].rules[0].namespaces[0]", "not a valid namespace name"},
		{"administer in a namespace", []RoleDefinition{{"deployer", []Rule{{Verbs: []Verb{VerbAdminister}, Namespaces: []string{"shop"}}}}}, "auth.roles[0].rules[0].verbs", "administer cannot be limited"},
		{"administer a kind", []RoleDefinition{{"deployer", []Rule{{Verbs: []Verb{VerbAdminister}, Kinds: []api.Kind{api.KindCluster}}}}}, "auth.roles[0].rules[0].verbs", "administer cannot be limited"},
	} {
		t.Run(test.name, func(t *testing.T) {
			errs := ValidateRoles("auth.roles", test.defined)
			if len(errs) != 1 || errs[0].Field != test.field || !strings.Contains(errs[0].Message, test.message) {
				t.Errorf("errors %v, want one at %s that contains %q", errs, test.field, test.message)
			}
		})
	}
}

// A token may have a role of the configuration, and limits to namespaces unless it administers.
func TestTokensWithRolesOfTheConfiguration(t *testing.T) {
	roles := NewRoles([]RoleDefinition{
		{"deployer", []Rule{{Verbs: []Verb{VerbRead}}}},
		{"auditor", []Rule{{Verbs: []Verb{VerbAdminister}}}},
	})
	for _, test := range []struct {
		name    string
		request TokenRequest
		want    string
	}{
		{"a role of the configuration", TokenRequest{Role: "deployer", Namespaces: []string{"shop"}}, ""},
		{"an unknown role", TokenRequest{Role: "gone"}, `"gone" is not one of admin, editor, viewer, agent, deployer, auditor`},
		{"a limited administrator", TokenRequest{Role: "auditor", Namespaces: []string{"shop"}}, "must be absent for role auditor"},
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
	roles := NewRoles([]RoleDefinition{
		{"placements", []Rule{{Verbs: []Verb{VerbRead}, Kinds: []api.Kind{api.KindPlacement}}}},
		{"clusters", []Rule{{Verbs: []Verb{VerbRead}, Kinds: []api.Kind{api.KindPlacement, api.KindCluster}}}},
	})
	rights := NewRights(fleet.New(fleet.Options{}))
	explanation := &api.Explanation{
		Kind: api.KindPlacement, Namespace: "shop", Name: "web", Total: 2,
		Candidates: []api.Candidate{{Cluster: "eu-1", Score: new(0.5)}, {Cluster: "eu-2", Score: new(0.25)}}, Margin: &api.MoveMargin{From: "eu-1", To: "eu-2"},
	}
	for role, shown := range map[Role]bool{"placements": false, "clusters": true} {
		x := rights.Visible(roles.Identity("t", role, nil), explanation)
		if (x.Margin != nil) != shown || (len(x.Candidates) == 2) != shown || (x.Total == 2) != shown {
			t.Errorf("%s: margin %v, %d candidates of %d", role, x.Margin, len(x.Candidates), x.Total)
		}
	}
}
