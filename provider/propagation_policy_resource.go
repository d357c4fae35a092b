package provider

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/types"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform"
)

func newPropagationPolicyResource() *terraform.Resource {
	attributes := terraform.SpecAttributes(api.KindPropagationPolicy)
	inputs := slices.Sorted(maps.Keys(attributes))
	attributes["bindings"] = schema.MapAttribute{
		MarkdownDescription: "Where the workloads run that the policy has claimed: replicas by cluster, by `namespace/name` of the workload. For groups and conditions, use the data source `scheduler_propagation_bindings`.",
		ElementType:         types.MapType{ElemType: types.Int64Type},
		Computed:            true,
	}
	attributes[terraform.PreviewToken] = terraform.PreviewTokenAttribute("scheduler_propagation_preview", "bindings")
	return &terraform.Resource{
		Kind:      api.KindPropagationPolicy,
		Unsettled: overflowUnsettled,
		Description: "Determines on which clusters the `scheduler_workload`s that it selects run, how their replicas are divided, and what happens when a cluster is lost. " +
			"A policy with a namespace applies to workloads in that namespace; a policy without one applies to workloads in all namespaces. `bindings` is the result as of the last refresh.",
		Attributes:  attributes,
		Local:       map[string]bool{terraform.PreviewToken: true},
		Decision:    policyBindings,
		ConcernedBy: concerned,
		Derived:     true,
		Previewed:   previewedBindings,
		Inputs:      inputs,
		Report:      reportBindings,
		Warn:        warnOfAffinities,

		Unsatisfied: unsatisfiedBindings,
	}
}

// unsatisfiedBindings says why workloads of a policy have no clusters, or that there are none. A
// refresh says so, not the apply that creates the policy: it may create the workloads after it.
func unsatisfiedBindings(object api.Object) string {
	policy, ok := object.(*api.PropagationPolicy)
	if !ok {
		return ""
	}
	waiting, texts := pendingBindings(policy)
	c := api.FindCondition(policy.Status.Conditions, api.ConditionWorkloadsSelected)
	if waiting == 0 && c != nil && c.Status == api.ConditionFalse {
		return terraform.Sentence(c.Message)
	}
	return strings.Join(texts, " ")
}

// policyBindings returns the part of a policy's status that is in state.
func policyBindings(object api.Object) map[string]any {
	bindings := map[string]any{}
	if policy, ok := object.(*api.PropagationPolicy); ok {
		for _, b := range policy.Status.Bindings {
			bindings[b.Workload] = replicasOf(b.Clusters)
		}
	}
	return map[string]any{"bindings": bindings}
}

// previewedBindings returns that part according to a preview.
func previewedBindings(preview *api.Preview) map[string]any {
	bindings := map[string]any{}
	for _, b := range preview.Bindings {
		if b.Claimed {
			bindings[b.Workload] = replicaDocument(b.Replicas)
		}
	}
	return map[string]any{"bindings": bindings}
}

// maxReported is the number of workloads that a warning names.
const maxReported = 10

// reportBindings warns about workloads that the policy that was just written leaves without
// clusters. The server's response contains their bindings, so there is nothing more to wait for.
func reportBindings(object api.Object, diags *diag.Diagnostics) {
	policy, ok := object.(*api.PropagationPolicy)
	if !ok {
		return
	}
	if waiting, texts := pendingBindings(policy); waiting > 0 {
		summary := fmt.Sprintf("%d of the %d workloads of %s wait for clusters", waiting, len(policy.Status.Bindings), api.KeyOf(policy))
		diags.AddWarning(summary, strings.Join(texts, "\n"))
	}
}

// pendingBindings returns how many workloads a policy leaves without clusters, and the reasons for
// the first of them.
func pendingBindings(policy *api.PropagationPolicy) (waiting int, texts []string) {
	for _, b := range policy.Status.Bindings {
		c := api.FindCondition(b.Conditions, api.ConditionScheduled)
		if c == nil || c.Status != api.ConditionFalse {
			continue
		}
		if waiting++; waiting <= maxReported {
			texts = append(texts, b.Workload+": "+terraform.Sentence(c.Message))
		}
	}
	if more := waiting - maxReported; more > 0 {
		texts = append(texts, fmt.Sprintf("And %d more.", more))
	}
	return waiting, texts
}

// overflowUnsettled reports whether at is the list of overflow affinities of a group, and the
// replica division or the group's selection, which determine whether it is allowed, are not known
// yet.
func overflowUnsettled(base, at path.Path, unknown []path.Path) bool {
	steps := at.Steps()
	if len(steps) == 0 || !steps[len(steps)-1].Equal(path.PathStepAttributeName("overflow_affinities")) {
		return false
	}
	division := base.AtName("placement").AtName("replica_scheduling")
	return slices.ContainsFunc(unknown, func(p path.Path) bool { return terraform.Related(p, division) || terraform.Related(p, at.ParentPath()) })
}
