package provider

import (
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// An import without a name says what is missing. Terraform before identities
// sends an empty ID as nothing at all.
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
