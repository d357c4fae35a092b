package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// A role and a binding to it are created, changed, imported, put right after a change from outside, and deleted.
func TestAccRoleLifecycle(t *testing.T) {
	f := newFleet(t)
	role := api.Key{Kind: api.KindRole, Name: "deployer"}
	binding := api.Key{Kind: api.KindRoleBinding, Name: "on-call"}
	const roleAt, bindingAt = "scheduler_role.deployer", "scheduler_role_binding.on_call"
	config := func(rules, more string) string {
		return f.config(`
			resource "scheduler_role" "deployer" {
			  name  = "deployer"
			  rules = ` + rules + `
			}
			resource "scheduler_role_binding" "on_call" {
			  name      = "on-call"
			  role      = scheduler_role.deployer.name
			  token_ids = ["0123456789abcdef"]
			  ` + more + `
			}`)
	}
	const reads = `[{ verbs = ["read"] }]`
	const writes = `[{ verbs = ["read"] }, { verbs = ["write", "delete"], kinds = ["placement", "workload"], namespaces = ["shop"] }]`
	settled := resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}
	updates := func(addresses ...string) resource.ConfigPlanChecks {
		checks := resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()}
		for _, address := range addresses {
			checks.PreApply = append(checks.PreApply, plancheck.ExpectResourceAction(address, plancheck.ResourceActionUpdate))
		}
		return checks
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy: func(*terraform.State) error {
			if err := f.gone(role); err != nil {
				return err
			}
			return f.gone(binding)
		},
		Steps: []resource.TestStep{
			{Config: config(reads, ""), ConfigPlanChecks: settled},
			{
				Config: config(writes, "namespaces = [\"shop\"]\n description = \"on call\""), ConfigPlanChecks: updates(roleAt, bindingAt),
				ConfigStateChecks: []statecheck.StateCheck{
					statecheck.ExpectKnownValue(roleAt, tfjsonpath.New("rules").AtSliceIndex(1).AtMapKey("kinds"), knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("placement"), knownvalue.StringExact("workload")})),
					statecheck.ExpectKnownValue(bindingAt, tfjsonpath.New("role"), knownvalue.StringExact("deployer")),
				},
			},
			{ResourceName: roleAt, ImportState: true, ImportStateId: "deployer", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{ResourceName: bindingAt, ImportState: true, ImportStateId: "on-call", ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name"},
			{
				PreConfig: func() {
					edit(f, role, func(r *api.Role) { r.Spec.Rules = r.Spec.Rules[:1] })
					edit(f, binding, func(b *api.RoleBinding) { b.Spec.Namespaces = []string{"bank"} })
				},
				Config: config(writes, "namespaces = [\"shop\"]\n description = \"on call\""), ConfigPlanChecks: updates(roleAt, bindingAt),
			},
		},
	})
}
