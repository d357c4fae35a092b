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
		{"read of everybody", everybodys, func(who Identity, o *api.Cluster) error { return who.MayRead(o) }, reads, true},
		{"read of its own", of("shop"), func(who Identity, o *api.Cluster) error { return who.MayRead(o) }, reads, true},
		{"read of a shared one", of("shop", "bank"), func(who Identity, o *api.Cluster) error { return who.MayRead(o) }, reads, true},
		{"read of another namespace", of("bank"), func(who Identity, o *api.Cluster) error { return who.MayRead(o) }, reads, false},
		{"write of everybody", everybodys, func(who Identity, o *api.Cluster) error { return who.MayWrite(o) }, writes, false},
		{"write of its own", of("shop"), func(who Identity, o *api.Cluster) error { return who.MayWrite(o) }, writes, true},
		{"write of a shared one", of("shop", "bank"), func(who Identity, o *api.Cluster) error { return who.MayWrite(o) }, writes, false},
		{"report of everybody", everybodys, func(who Identity, o *api.Cluster) error { return who.MayReport(o) }, reports, false},
		{"report of its own", of("shop"), func(who Identity, o *api.Cluster) error { return who.MayReport(o) }, reports, true},
		{"administration", everybodys, func(who Identity, _ *api.Cluster) error { return who.MayAdminister("manage tokens") }, []Role{RoleAdmin}, false},
	} {
		for _, role := range append((Roles{}).Names(), "") {
			for _, who := range []Identity{{Role: role}, {Role: role, Namespaces: []string{"shop"}}} {
				want := slices.Contains(test.roles, role) && (test.bound || len(who.Namespaces) == 0)
				if err := test.ask(who, test.object); (err == nil) != want {
					t.Errorf("%s as %+v: %v", test.what, who, err)
				}
			}
		}
	}
}
