package provider

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/hashicorp/terraform-plugin-go/tftypes"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

// splitIn is a conformance case about numbers of replicas.
type splitIn struct {
	Kind        conformance.Field[string]      `json:"kind"`
	Replicas    conformance.Field[json.Number] `json:"replicas"`
	Mode        conformance.Field[*string]     `json:"mode"`
	Custom      conformance.Field[any]         `json:"custom_on_demand"`
	Enabled     conformance.Field[bool]        `json:"enabled"`
	MinOnDemand conformance.Field[json.Number] `json:"min_on_demand"`
}

type splitOut struct {
	Mode     string      `json:"mode"`
	OnDemand json.Number `json:"on_demand"`
	Spot     json.Number `json:"spot"`

	MaxSkew           json.Number      `json:"maxSkew"`
	MinDomains        int64            `json:"minDomains"`
	WhenUnsatisfiable string           `json:"whenUnsatisfiable"`
	TopologyKey       string           `json:"topologyKey"`
	PreferredWeights  map[string]int64 `json:"preferred_weights"`
}

// splitOfCase calls split_replicas with the input of a case.
func splitOfCase(t *conformance.T, in *splitIn) map[string]attr.Value {
	t.Helper()
	text := func(s *string) attr.Value { return types.StringPointerValue(s) }
	mode, custom := in.Mode.Get(), (*string)(nil)
	if in.Custom.Has() {
		custom = new(fmt.Sprint(in.Custom.Get()))
	}
	if in.MinOnDemand.Has() {
		mode, custom = new("custom"), new(in.MinOnDemand.Get().String())
	}
	if in.Enabled.Has() && !in.Enabled.Get() {
		t.Fatal("what is not split has no numbers")
	}
	number, err := terraform.Value(tftypes.Number, in.Replicas.Get())
	if err != nil {
		t.Fatal(err)
	}
	replicas, err := types.NumberType.ValueFromTerraform(t.Context(), number)
	if err != nil {
		t.Fatal(err)
	}
	resp := function.RunResponse{Result: function.NewResultData(types.ObjectUnknown(splitAttributeTypes))}
	splitReplicasFunction{}.Run(t.Context(), function.RunRequest{Arguments: function.NewArgumentsData([]attr.Value{
		types.StringValue(cmp.Or(in.Kind.Get(), "Deployment")), replicas, text(mode), text(custom),
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

// The function returns the numbers of the conformance cases. Cases about pods that are not split have none.
func TestSplitReplicasConformance(t *testing.T) {
	const theirs = "the constraint is the user's to write, and the same in every case; the function tells the number that depends on the replicas"
	play := conformance.Player(func(t *conformance.T, in *splitIn, out *splitOut) {
		got := splitOfCase(t, in)
		for name, want := range map[string]string{
			"mode": strings.ReplaceAll(out.Mode, "-", "_"), "on_demand": out.OnDemand.String(), "spot": out.Spot.String(), "max_skew": out.MaxSkew.String(),
		} {
			if text := strings.Trim(got[name].String(), `"`); want != "" && text != want {
				t.Errorf("%s is %s, expected %s", name, text, want)
			}
		}
	})
	suite := conformance.Suite{
		Driver: "provider",
		Play:   map[string]func(*conformance.T, *conformance.Played){"target_split": play, "topology_spread": play},
		Loose: map[string]string{
			"V1*/minDomains":        theirs,
			"V1*/preferred_weights": theirs,
			"V1*/topologyKey":       theirs,
			"V1*/whenUnsatisfiable": theirs,
		},
	}
	suite.Run(t)
}
