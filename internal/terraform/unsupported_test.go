package terraform_test

import (
	"reflect"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	datasourceschema "github.com/hashicorp/terraform-plugin-framework/datasource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/mapdefault"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// unheard has fields of unsupported types, and one of a supported type.
type unheard struct {
	Fine    string              `json:"fine,omitempty" doc:"A text."`
	Complex complex128          `json:"complex" doc:"No number of Terraform's."`
	Lists   [][]string          `json:"lists" doc:"Lists of lists."`
	Maps    map[string][]string `json:"maps" doc:"Lists by name."`
	Inner   struct {
		Channel chan int `json:"channel" doc:"No value at all."`
	} `json:"inner" doc:"A block."`
}

// A field of an unsupported type makes the schema invalid. It is not ignored and does not panic.
func TestUnsupportedFieldsAreErrors(t *testing.T) {
	described := reflect.TypeFor[unheard]()
	for name, attributes := range map[string]map[string]datasourceschema.Attribute{
		"arguments": terraform.Arguments(described), "answer": terraform.ComputedAttributes(described),
	} {
		source := terraform.DataSource{Name: "unheard", Arguments: attributes}
		var resp datasource.SchemaResponse
		source.Schema(t.Context(), datasource.SchemaRequest{}, &resp)
		var got []string
		for _, d := range resp.Diagnostics.Errors() {
			at, why, _ := strings.Cut(d.Detail(), ": ")
			got = append(got, at)
			if !strings.Contains(why, "no attribute type for ") {
				t.Errorf("%s: %s", name, d.Detail())
			}
		}
		want := "scheduler_unheard.complex scheduler_unheard.inner.channel scheduler_unheard.lists scheduler_unheard.maps"
		if strings.Join(got, " ") != want {
			t.Errorf("%s: errors at %s, want %s", name, got, want)
		}
	}
}

// A default that cannot be parsed makes the schema invalid.
func TestUnreadableDefaultsAreErrors(t *testing.T) {
	labels := schema.MapAttribute{
		ElementType: types.StringType, Optional: true, Computed: true,
		Default: mapdefault.StaticValue(types.MapNull(types.StringType)),
	}
	block := schema.SingleNestedAttribute{Optional: true, Attributes: map[string]schema.Attribute{"labels": labels}}
	r := terraform.Resource{Kind: api.KindCluster, Attributes: map[string]schema.Attribute{"block": block, "number": schema.NumberAttribute{Optional: true}}}
	var resp resource.SchemaResponse
	r.Schema(t.Context(), resource.SchemaRequest{}, &resp)
	errs := resp.Diagnostics.Errors()
	if len(errs) != 2 || !strings.HasPrefix(errs[0].Detail(), "scheduler_cluster.block.labels: ") || !strings.HasPrefix(errs[1].Detail(), "scheduler_cluster.number: ") {
		t.Errorf("unexpected errors %v", errs)
	}
}
