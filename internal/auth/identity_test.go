package auth

import (
	"slices"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestRolePermissions covers all roles, with access to all namespaces or to one, and objects that belong to no
// namespace, to one, or to two.
func TestRolePermissions(t *testing.T) {
	everybodys := &api.Cluster{Kind: api.KindCluster, Metadata: api.Metadata{Name: "c"}}
	of := func(namespaces ...string) *api.Cluster {
		cluster := &api.Cluster{Kind: api.KindCluster, Metadata: api.Metadata{Name: "c"}}
		cluster.Spec.Namespaces = namespaces
		return cluster
	}
	reads, writes := []Role{RoleAdmin, RoleEditor, RoleViewer}, []Role{RoleAdmin, RoleEditor}
	reports := []Role{RoleAdmin, RoleEditor, RoleAgent}
	for _, test := range []struct {
		what   string
		object *api.Cluster
		ask    func(Identity, *api.Cluster) error
		roles  []Role
		bound  bool // whether a token for namespace shop may, too
	}{
		{"read everybody's", everybodys, func(who Identity, o *api.Cluster) error { return who.MayRead(o) }, reads, true},
		{"read its own", of("shop"), func(who Identity, o *api.Cluster) error { return who.MayRead(o) }, reads, true},
		{"read what is shared", of("shop", "bank"), func(who Identity, o *api.Cluster) error { return who.MayRead(o) }, reads, true},
		{"read others'", of("bank"), func(who Identity, o *api.Cluster) error { return who.MayRead(o) }, reads, false},
		{"write everybody's", everybodys, func(who Identity, o *api.Cluster) error { return who.MayWrite(o) }, writes, false},
		{"write its own", of("shop"), func(who Identity, o *api.Cluster) error { return who.MayWrite(o) }, writes, true},
		{"write what is shared", of("shop", "bank"), func(who Identity, o *api.Cluster) error { return who.MayWrite(o) }, writes, false},
		{"report for everybody's", everybodys, func(who Identity, o *api.Cluster) error { return who.MayReport(o) }, reports, false},
		{"report for its own", of("shop"), func(who Identity, o *api.Cluster) error { return who.MayReport(o) }, reports, true},
		{"administer", everybodys, func(who Identity, _ *api.Cluster) error { return who.MayAdminister() }, []Role{RoleAdmin}, true},
	} {
		for _, role := range append(slices.Clone(Roles), "") {
			for _, who := range []Identity{{Role: role}, {Role: role, Namespaces: []string{"shop"}}} {
				want := slices.Contains(test.roles, role) && (test.bound || !who.Bound())
				if err := test.ask(who, test.object); (err == nil) != want {
					t.Errorf("%s as %+v: %v", test.what, who, err)
				}
			}
		}
	}
}
