package provider

import (
	"fmt"
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
	if len(resp.ResourceSchemas) != 8 || len(resp.DataSourceSchemas) != 11 || len(resp.Functions) != 3 {
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
	want := map[string]bool{"kubeconfig": true, "headers": true, "bearer_token": true}
	passing := "preview_token_wo" // no secret, but different in every plan
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	found := 0
	var walk func(at string, attributes []*tfprotov6.SchemaAttribute)
	walk = func(at string, attributes []*tfprotov6.SchemaAttribute) {
		for _, a := range attributes {
			if a.Name == passing {
				continue
			}
			if a.WriteOnly != want[a.Name] || a.WriteOnly != a.Sensitive {
				t.Errorf("%s.%s: write-only is %v, sensitive %v", at, a.Name, a.WriteOnly, a.Sensitive)
			}
			if a.WriteOnly {
				found++
			}
			if a.NestedType != nil {
				walk(at+"."+a.Name, a.NestedType.Attributes)
			}
		}
	}
	for name, s := range resp.ResourceSchemas {
		walk(name, s.Block.Attributes)
	}
	if found != len(want) {
		t.Errorf("%d write-only attributes, expected %d", found, len(want))
	}
}
