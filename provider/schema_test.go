package provider

import (
	"fmt"
	"maps"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
)

// The documentation is made of the schemas: nothing in them is without a word.
func TestEverythingIsDescribed(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, d := range resp.Diagnostics {
		t.Error(d.Summary, d.Detail)
	}
	described(t, "provider", resp.Provider.Block)
	for name, s := range resp.ResourceSchemas {
		described(t, "resource "+name, s.Block)
	}
	for name, s := range resp.DataSourceSchemas {
		described(t, "data source "+name, s.Block)
	}
	if len(resp.ResourceSchemas) != 11 || len(resp.DataSourceSchemas) != 15 || len(resp.Functions) != 4 {
		t.Errorf("%d resources, %d data sources, %d functions", len(resp.ResourceSchemas), len(resp.DataSourceSchemas), len(resp.Functions))
	}
}

func described(t *testing.T, at string, block *tfprotov6.SchemaBlock) {
	t.Helper()
	if block.Description == "" {
		t.Errorf("%s has no description", at)
	}
	describedAttributes(t, at, block.Attributes)
}

func describedAttributes(t *testing.T, at string, attributes []*tfprotov6.SchemaAttribute) {
	t.Helper()
	for _, a := range attributes {
		if strings.TrimSpace(a.Description) == "" {
			t.Errorf("%s: %s has no description", at, a.Name)
		}
		if a.NestedType != nil {
			describedAttributes(t, fmt.Sprintf("%s: %s", at, a.Name), a.NestedType.Attributes)
		}
	}
}

// The secrets of the API are write-only in Terraform, and nothing else is.
func TestSecretsAreWriteOnly(t *testing.T) {
	// How many resources have each.
	want := map[string]int{
		"kubeconfig": 1, "headers": 1, "bearer_token": 1, "token": 1, "password": 2, "application_credential_secret": 2,
	}
	passing := "preview_token_wo" // no secret, but different in every plan
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := map[string]int{}
	var walk func(at string, attributes []*tfprotov6.SchemaAttribute)
	walk = func(at string, attributes []*tfprotov6.SchemaAttribute) {
		for _, a := range attributes {
			if a.Name == passing {
				continue
			}
			if a.WriteOnly != (want[a.Name] > 0) || a.WriteOnly != a.Sensitive {
				t.Errorf("%s.%s: write-only is %v, sensitive %v", at, a.Name, a.WriteOnly, a.Sensitive)
			}
			if a.WriteOnly {
				found[a.Name]++
			}
			if a.NestedType != nil {
				walk(at+"."+a.Name, a.NestedType.Attributes)
			}
		}
	}
	for name, s := range resp.ResourceSchemas {
		walk(name, s.Block.Attributes)
	}
	if !maps.Equal(found, want) {
		t.Errorf("write-only attributes are %v, expected %v", found, want)
	}
}
