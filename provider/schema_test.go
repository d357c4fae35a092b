package provider

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// The documentation is generated from the schemas, so everything in them needs a description.
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
	if len(resp.ResourceSchemas) != 14 || len(resp.DataSourceSchemas) != 15 || len(resp.Functions) != 4 {
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

// Every secret of the API is write-only in Terraform, with a version and an attribute that says whether it is stored. Nothing else is write-only.
func TestSecretsAreWriteOnly(t *testing.T) {
	server, err := providerserver.NewProtocol6WithError(New("test")())()
	if err != nil {
		t.Fatal(err)
	}
	resp, err := server.GetProviderSchema(t.Context(), &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		t.Fatal(err)
	}
	for _, info := range api.Kinds {
		want, found := map[string]bool{}, map[string]bool{}
		for _, secret := range api.SecretFields(info.Kind) {
			want[strings.TrimPrefix(secret.Field, "spec.")] = true
		}
		var walk func(at string, attributes []*tfprotov6.SchemaAttribute)
		walk = func(at string, attributes []*tfprotov6.SchemaAttribute) {
			byName := map[string]*tfprotov6.SchemaAttribute{}
			for _, a := range attributes {
				byName[a.Name] = a
				if a.NestedType != nil {
					walk(at+a.Name+".", a.NestedType.Attributes)
				}
			}
			for name, a := range byName {
				if name == terraform.PreviewToken { // not a secret, but different in every plan
					continue
				}
				secret := strings.TrimSuffix(name, "_wo")
				if a.WriteOnly != a.Sensitive || a.WriteOnly != want[at+secret] {
					t.Errorf("%s: %s%s: write-only is %v, sensitive %v", info.Kind, at, name, a.WriteOnly, a.Sensitive)
				}
				if !a.WriteOnly || secret == name {
					continue
				}
				found[at+secret] = true
				version, stored := byName[secret+"_wo_version"], byName[secret+"_stored"]
				if byName[secret] != nil || version == nil || !version.Optional || stored == nil || !stored.Computed || stored.Optional {
					t.Errorf("%s: %s%s lacks its version or what is stored, or is there without its suffix", info.Kind, at, name)
				}
			}
		}
		walk("", resp.ResourceSchemas["scheduler_"+string(info.Kind)].Block.Attributes)
		if !maps.Equal(found, want) {
			t.Errorf("%s: write-only are %v, want %v", info.Kind, found, want)
		}
	}
}

// New returns a constructor of the provider as the framework runs it, without the direct answers.
func New(version string) func() provider.Provider {
	return func() provider.Provider { return &Provider{version: version} }
}

// Every page of a resource or data source is listed under a heading.
func TestEveryPageHasASubcategory(t *testing.T) {
	pages, err := filepath.Glob("../docs/*s/*.md")
	if err != nil || len(pages) < 20 {
		t.Fatalf("%d pages: %v", len(pages), err)
	}
	for _, page := range pages {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		if dir := filepath.Base(filepath.Dir(page)); dir != "guides" && dir != "functions" && strings.Contains(string(text), "\nsubcategory: \"\"\n") {
			t.Errorf("%s has no subcategory: add it to the template of %s", page, dir)
		}
	}
}
