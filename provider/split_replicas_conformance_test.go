package provider

import (
	"cmp"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// splitCase is a conformance case about numbers of replicas.
type splitCase struct {
	ID    string `json:"id"`
	Group string `json:"grp"`
	In    struct {
		Kind        string      `json:"kind"`
		Replicas    json.Number `json:"replicas"`
		Mode        *string     `json:"mode"`
		Custom      any         `json:"custom_on_demand"`
		MinOnDemand json.Number `json:"min_on_demand"`
	} `json:"in"`
	Out struct {
		Mode     string      `json:"mode"`
		OnDemand json.Number `json:"on_demand"`
		Spot     json.Number `json:"spot"`
		MaxSkew  json.Number `json:"maxSkew"`
		Managed  *bool       `json:"managed"`
	} `json:"out"`
}

// splitOfCase calls split_replicas with what a case has.
func splitOfCase(t *testing.T, c splitCase) map[string]attr.Value {
	t.Helper()
	text := func(s *string) attr.Value { return types.StringPointerValue(s) }
	mode, custom := c.In.Mode, (*string)(nil)
	switch amount := c.In.Custom.(type) {
	case string:
		custom = &amount
	case json.Number:
		custom = new(amount.String())
	}
	if c.In.MinOnDemand != "" {
		mode, custom = new("custom"), new(c.In.MinOnDemand.String())
	}
	number, err := terraformValue(tftypes.Number, c.In.Replicas)
	if err != nil {
		t.Fatal(err)
	}
	replicas, err := types.NumberType.ValueFromTerraform(t.Context(), number)
	if err != nil {
		t.Fatal(err)
	}
	resp := function.RunResponse{Result: function.NewResultData(types.ObjectUnknown(splitAttributeTypes))}
	splitReplicasFunction{}.Run(t.Context(), function.RunRequest{Arguments: function.NewArgumentsData([]attr.Value{
		types.StringValue(cmp.Or(c.In.Kind, "Deployment")), replicas, text(mode), text(custom),
	})}, &resp)
	if resp.Error != nil {
		t.Fatal(resp.Error)
	}
	object, ok := resp.Result.Value().(types.Object)
	if !ok {
		t.Fatalf("the result is %s", resp.Result.Value())
	}
	return object.Attributes()
}

// The function gives the numbers of the conformance cases. Cases about what is not
// split at all have none.
func TestSplitReplicasConformance(t *testing.T) {
	data, err := os.ReadFile("../internal/spot/testdata/vmanager.json")
	if err != nil {
		t.Fatal(err)
	}
	decoder := json.NewDecoder(strings.NewReader(string(data)))
	decoder.UseNumber()
	var cases []splitCase
	if err := decoder.Decode(&cases); err != nil {
		t.Fatal(err)
	}
	ran := map[string]int{}
	for _, c := range cases {
		if c.Group != "target_split" && c.Group != "topology_spread" || c.Out.Managed != nil {
			continue
		}
		ran[c.Group]++
		t.Run(c.ID, func(t *testing.T) {
			got := splitOfCase(t, c)
			for name, want := range map[string]string{
				"mode": strings.ReplaceAll(c.Out.Mode, "-", "_"), "on_demand": c.Out.OnDemand.String(), "spot": c.Out.Spot.String(), "max_skew": c.Out.MaxSkew.String(),
			} {
				if text := strings.Trim(got[name].String(), `"`); want != "" && text != want {
					t.Errorf("%s is %s, expected %s", name, text, want)
				}
			}
		})
	}
	if ran["target_split"] < 15 || ran["topology_spread"] < 3 {
		t.Errorf("the file has too few cases: %v", ran)
	}
}
