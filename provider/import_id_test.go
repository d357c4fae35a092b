package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// The error of an import without a name says what is missing. Terraform versions without identities do not send an
// empty ID at all.
func TestImportWithoutName(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"name": tftypes.String}}
	empty, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, map[string]tftypes.Value{"name": tftypes.NewValue(tftypes.String, "")}))
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		name     string
		identity *tfprotov6.ResourceIdentityData
		want     string
	}{
		{"nothing", nil, "does not have the form <name>"},
		{"empty name", &tfprotov6.ResourceIdentityData{IdentityData: &empty}, "must not be empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{TypeName: "scheduler_cluster", Identity: test.identity})
			if err != nil {
				t.Fatal(err)
			}
			if len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, test.want) {
				t.Errorf("diagnostics are %v, expected %q", resp.Diagnostics, test.want)
			}
		})
	}
}

// Objects that belong to a cluster are imported by the cluster and their name.
func TestImportOfCluster(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"cluster": tftypes.String, "name": tftypes.String}}
	identity := func(cluster, name string) *tfprotov6.ResourceIdentityData {
		value, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, map[string]tftypes.Value{
			"cluster": tftypes.NewValue(tftypes.String, cluster), "name": tftypes.NewValue(tftypes.String, name),
		}))
		if err != nil {
			t.Fatal(err)
		}
		return &tfprotov6.ResourceIdentityData{IdentityData: &value}
	}
	for _, test := range []struct {
		name     string
		id       string
		identity *tfprotov6.ResourceIdentityData
		want     string // part of the diagnostic; "" = none
	}{
		{name: "by ID", id: "berlin/support"},
		{name: "by identity", identity: identity("berlin", "support")},
		{name: "an ID without a cluster", id: "support", want: "does not have the form <cluster>/<name>"},
		{name: "an identity without a cluster", identity: identity("", "support"), want: "cluster must not be empty"},
		{name: "an identity without a name", identity: identity("berlin", ""), want: "name must not be empty"},
	} {
		t.Run(test.name, func(t *testing.T) {
			resp, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
				TypeName: "scheduler_placement_score", ID: test.id, Identity: test.identity,
			})
			if err != nil {
				t.Fatal(err)
			}
			if test.want != "" {
				if len(resp.Diagnostics) != 1 || !strings.Contains(resp.Diagnostics[0].Detail, test.want) {
					t.Errorf("diagnostics are %v, expected %q", resp.Diagnostics, test.want)
				}
				return
			}
			if len(resp.Diagnostics) > 0 || len(resp.ImportedResources) != 1 {
				t.Fatalf("imported %v, diagnostics are %v", resp.ImportedResources, resp.Diagnostics)
			}
			state, err := resp.ImportedResources[0].State.Unmarshal(newValidation(t).types["scheduler_placement_score"])
			if err != nil {
				t.Fatal(err)
			}
			if a := terraform.AttributesOf(state); terraform.TextOf(a["cluster"]) != "berlin" || terraform.TextOf(a["name"]) != "support" {
				t.Errorf("the state is %s", state)
			}
		})
	}
}

// An identity without a namespace means the same as an ID without one.
func TestImportByIdentityWithoutNamespace(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	schemas, err := server.GetResourceIdentitySchemas(t.Context(), &tfprotov6.GetResourceIdentitySchemasRequest{})
	if err != nil {
		t.Fatal(err)
	}
	typ := tftypes.Object{AttributeTypes: map[string]tftypes.Type{"namespace": tftypes.String, "name": tftypes.String}}
	value, err := tfprotov6.NewDynamicValue(typ, tftypes.NewValue(typ, map[string]tftypes.Value{
		"namespace": tftypes.NewValue(tftypes.String, nil), "name": tftypes.NewValue(tftypes.String, "web"),
	}))
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{
		"scheduler_placement": "default", "scheduler_workload": "default", "scheduler_openstack_project": "default",
		"scheduler_magnum_cluster": "default", "scheduler_metric": "", "scheduler_propagation_policy": "",
	} {
		for _, a := range schemas.IdentitySchemas[name].IdentityAttributes {
			if a.Name == "namespace" && !a.OptionalForImport {
				t.Errorf("%s: the namespace of the identity is required", name)
			}
		}
		resp, err := server.ImportResourceState(t.Context(), &tfprotov6.ImportResourceStateRequest{
			TypeName: name, Identity: &tfprotov6.ResourceIdentityData{IdentityData: &value},
		})
		if err != nil {
			t.Fatal(err)
		}
		if len(resp.Diagnostics) > 0 || len(resp.ImportedResources) != 1 {
			t.Fatalf("%s: imported %v, diagnostics are %v", name, resp.ImportedResources, resp.Diagnostics)
		}
		state, err := resp.ImportedResources[0].State.Unmarshal(newValidation(t).types[name])
		if err != nil {
			t.Fatal(err)
		}
		if got := terraform.TextOf(terraform.AttributesOf(state)["namespace"]); got != want {
			t.Errorf("%s: imported from the namespace %q, expected %q", name, got, want)
		}
	}
}
