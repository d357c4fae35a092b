package provider

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/hashicorp/terraform-plugin-framework/attr"
	"github.com/hashicorp/terraform-plugin-framework/function"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

type splitReplicasFunction struct{}

func newSplitReplicasFunction() function.Function { return splitReplicasFunction{} }

// splitReplicas is the result of the function.
type splitReplicas struct {
	Mode     string `tfsdk:"mode"`
	OnDemand int64  `tfsdk:"on_demand"`
	Spot     int64  `tfsdk:"spot"`
	Clamped  bool   `tfsdk:"clamped"`
	MaxSkew  int64  `tfsdk:"max_skew"`
}

var splitAttributeTypes = map[string]attr.Type{
	"mode": types.StringType, "on_demand": types.Int64Type, "spot": types.Int64Type, "clamped": types.BoolType, "max_skew": types.Int64Type,
}

// Positions of its arguments.
const (
	splitKind = iota
	splitOfReplicas
	splitMode
	splitCustom
)

// Metadata implements function.Function.
func (splitReplicasFunction) Metadata(_ context.Context, _ function.MetadataRequest, resp *function.MetadataResponse) {
	resp.Name = "split_replicas"
}

// Definition implements function.Function.
func (splitReplicasFunction) Definition(_ context.Context, _ function.DefinitionRequest, resp *function.DefinitionResponse) {
	resp.Definition = function.Definition{
		Summary: "Splits replicas between on-demand and spot nodes",
		MarkdownDescription: "Calculates how the server splits the replicas of a Deployment or StatefulSet between on-demand and spot nodes in one cluster. " +
			"Returns an object: `mode` is the mode in force; `on_demand` and `spot` are numbers of replicas; `clamped` is true if `custom` is larger than the number of replicas, so that all of them run on on-demand nodes; " +
			"`max_skew` is for a topology spread constraint that approximates the split if you cannot install a webhook.",
		Parameters: []function.Parameter{
			function.StringParameter{Name: "kind", MarkdownDescription: "`Deployment` or `StatefulSet`."},
			function.NumberParameter{Name: "replicas", MarkdownDescription: "Number of replicas, at least 0."},
			function.StringParameter{Name: "mode", AllowNullValue: true, MarkdownDescription: "`all_in_on_demand`, `all_in_spot`, `majority_in_on_demand` or `custom`, with `_` or `-`. `null` is the default for the kind and number of replicas."},
			function.StringParameter{Name: "custom", AllowNullValue: true, MarkdownDescription: "Replicas on on-demand nodes if `mode` is `custom`: a number such as `3`, or a percentage such as `\"30%\"`. Other modes ignore it."},
		},
		Return: function.ObjectReturn{AttributeTypes: splitAttributeTypes},
	}
}

// Run implements function.Function.
func (splitReplicasFunction) Run(ctx context.Context, req function.RunRequest, resp *function.RunResponse) {
	var kind string
	var given types.Number
	var mode, custom *string
	resp.Error = req.Arguments.Get(ctx, &kind, &given, &mode, &custom)
	if resp.Error != nil {
		return
	}
	if kind != api.KindDeployment && kind != api.KindStatefulSet {
		resp.Error = terraform.ArgumentError(splitKind, fmt.Errorf("%q has no pods that can be split: use %s or %s", kind, api.KindDeployment, api.KindStatefulSet))
		return
	}
	replicas := given.ValueBigFloat()
	count, accuracy := replicas.Int64()
	if accuracy != big.Exact || count < 0 || count > math.MaxInt32 {
		resp.Error = terraform.ArgumentError(splitOfReplicas, fmt.Errorf("%s is not a whole number from 0 to %d", terraform.NumberText(replicas), math.MaxInt32))
		return
	}
	var wanted api.DistributionSpec
	var err error
	if mode != nil {
		if wanted.Mode, err = spot.ParseMode(*mode); err != nil {
			resp.Error = terraform.ArgumentError(splitMode, err)
			return
		}
	}
	if custom != nil {
		wanted.CustomOnDemand = api.OnDemandAmount(*custom)
		if _, _, err = wanted.CustomOnDemand.Parse(); err != nil {
			resp.Error = terraform.ArgumentError(splitCustom, err)
			return
		}
	} else if wanted.Mode == api.ModeCustom {
		resp.Error = terraform.ArgumentError(splitCustom, errors.New("mode \"custom\" needs a number of replicas such as 3, or a percentage such as \"30%\""))
		return
	}
	target := split.Targets(kind, count, wanted)
	resp.Error = resp.Result.Set(ctx, splitReplicas{
		Mode: string(target.Mode), OnDemand: target.OnDemand, Spot: target.Spot, Clamped: target.Clamped, MaxSkew: split.TopologySpread(target),
	})
}
