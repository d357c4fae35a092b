package provider_test

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// TestAccMovesLifecycle creates, imports and updates what holds moves, in a namespace and without one.
func TestAccMovesLifecycle(t *testing.T) {
	for _, namespace := range []string{"", "shop"} {
		t.Run("namespace "+namespace, func(t *testing.T) {
			f := newFleet(t)
			prefix, attribute, selector := "", "", `selector = { namespaces = ["shop"], label_selector = { match_labels = { tier = "web" } } }`
			if namespace != "" {
				prefix, attribute = namespace+"/", fmt.Sprintf("namespace = %q", namespace)
				selector = `selector = { label_selector = { match_labels = { tier = "web" } } }`
			}
			key := func(kind api.Kind) api.Key { return api.Key{Kind: kind, Namespace: namespace, Name: "x"} }
			imported := func(kind string) resource.TestStep {
				return resource.TestStep{
					ResourceName: "scheduler_" + kind + ".x", ImportState: true, ImportStateId: prefix + "x",
					ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
				}
			}
			update := resource.ConfigPlanChecks{
				PreApply: []plancheck.PlanCheck{
					plancheck.ExpectResourceAction("scheduler_move_window.x", plancheck.ResourceActionUpdate),
					plancheck.ExpectResourceAction("scheduler_move_budget.x", plancheck.ResourceActionUpdate),
					plancheck.ExpectResourceAction("scheduler_freeze.x", plancheck.ResourceActionUpdate),
				},
				PostApplyPostRefresh: emptyPlan(),
			}
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				CheckDestroy: func(*terraform.State) error {
					return f.gone(key(api.KindMoveWindow), key(api.KindMoveBudget), key(api.KindFreeze))
				},
				Steps: []resource.TestStep{
					{
						Config: f.config(fmt.Sprintf(`
							resource "scheduler_move_window" "x" {
							  name = "x"
							  %[1]s
							  kind     = "deny"
							  schedule = "0 8 * * 1-5"
							  duration = "10h"
							}
							resource "scheduler_move_budget" "x" {
							  name = "x"
							  %[1]s
							  max_moves = "3"
							  per       = "1h"
							}
							resource "scheduler_freeze" "x" {
							  name = "x"
							  %[1]s
							  reason = "a test"
							}`, attribute)),
						ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
						ConfigStateChecks: []statecheck.StateCheck{
							statecheck.ExpectKnownValue("scheduler_move_window.x", tfjsonpath.New("time_zone"), knownvalue.StringExact("UTC")),
						},
					},
					{
						Config: f.config(fmt.Sprintf(`
							resource "scheduler_move_window" "x" {
							  name = "x"
							  %[1]s
							  kind        = "allow"
							  schedule    = "30 2 * * *"
							  duration    = "90m"
							  time_zone   = "Europe/Berlin"
							  reasons     = ["metric", "fail_back"]
							  description = "nights"
							  from        = { cluster_names = ["a", "b"] }
							  to          = { label_selector = { match_labels = { zone = "a" } } }
							  %[2]s
							}
							resource "scheduler_move_budget" "x" {
							  name = "x"
							  %[1]s
							  max_moves = "10%%"
							  per       = "2h"
							}
							resource "scheduler_freeze" "x" {
							  name = "x"
							  %[1]s
							  reason = "another test"
							  until  = "2020-01-04T08:00:00Z"
							}`, attribute, selector)),
						ConfigPlanChecks: update,
					},
					imported("move_window"), imported("move_budget"), imported("freeze"),
				},
			})
		})
	}
}

// TestAccMovesInvalid checks that the plan names what is wrong.
func TestAccMovesInvalid(t *testing.T) {
	f := newFleet(t)
	window := func(change string) string {
		values := map[string]string{"kind": `"deny"`, "schedule": `"0 8 * * *"`, "duration": `"1h"`}
		name, value, _ := strings.Cut(change, " = ")
		values[name] = value
		text := "resource \"scheduler_move_window\" \"x\" {\n name = \"x\"\n"
		for name, value := range values {
			text += " " + name + " = " + value + "\n"
		}
		return text + "}"
	}
	for _, test := range []struct{ name, config, want string }{
		{"kind", window(`kind = "maybe"`), `(?s)kind.*maybe`},
		{"schedule of six fields", window(`schedule = "0 0 8 * * *"`), `(?s)schedule.*five\s+fields`},
		{"schedule that never starts", window(`schedule = "0 0 30 2 *"`), `(?s)schedule.*never\s+starts`},
		{"schedule with a zone", window(`schedule = "TZ=UTC 0 8 * *"`), `(?s)schedule.*five\s+fields`},
		{"duration", window(`duration = "10"`), `(?s)duration.*not\s+a\s+duration`},
		{"short duration", window(`duration = "1s"`), `(?s)duration.*at\s+least`},
		{"time zone", window(`time_zone = "Mars/Olympus"`), `(?s)time_zone.*not\s+a\s+time\s+zone`},
		{"reason", window(`reasons = ["boredom"]`), `(?s)reasons.*boredom`},
		{"amount", `resource "scheduler_move_budget" "x" {` + "\n name = \"x\"\n max_moves = \"101%\"\n per = \"1h\"\n}", `(?s)max_moves.*more\s+than\s+100%`},
		{"own budget", `resource "scheduler_placement" "x" {` + "\n name = \"x\"\n move_budget = { max_moves = \"many\", per = \"1h\" }\n}", `(?s)max_moves.*neither`},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			resource.Test(t, resource.TestCase{
				ProtoV6ProviderFactories: factories,
				Steps:                    []resource.TestStep{{Config: f.config(test.config), PlanOnly: true, ExpectError: regexp.MustCompile(test.want)}},
			})
		})
	}
}

// TestAccStoryMoveWindow runs the example: prices change by day and nothing moves, a plan stays empty, an apply during a
// freeze does what it asks for, and at night the decision is made with the prices of the night.
func TestAccStoryMoveWindow(t *testing.T) {
	f, step := story(t, "move-window")
	web := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	// The night is half a year away, or now.
	closed := fmt.Sprintf("0 0 1 %d *", time.Now().AddDate(0, 6, 0).Month())
	variables := func(schedule, incident string, price map[string]float64) config.Variables {
		prices := map[string]config.Variable{}
		for cluster, euros := range price {
			prices[cluster] = config.FloatVariable(euros)
		}
		return config.Variables{
			"price": config.MapVariable(prices), "incident": config.StringVariable(incident),
			"night": config.ObjectVariable(map[string]config.Variable{"schedule": config.StringVariable(schedule), "duration": config.StringVariable("6h")}),
		}
	}
	on := func(cluster string) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"cluster": knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact(cluster)})}
	}
	held := func(reason, would string) statecheck.StateCheck {
		return afterwards(func() error {
			eventually.True(t, "the move is held", func() bool {
				object, err := f.client.Get(f.ctx(), web)
				if err != nil {
					return false
				}
				c := api.FindCondition(*api.ConditionsOf(object), api.ConditionMoveHeld)
				return c != nil && c.Reason == reason && strings.Contains(c.Message, "else "+would)
			})
			x, err := f.client.Explain(context.WithoutCancel(f.ctx()), web)
			if err != nil {
				return err
			}
			if x.Held == nil || len(x.Held.Would) != 1 || x.Held.Would[0] != would {
				return fmt.Errorf("explained as %+v, want %s held", x.Held, would)
			}
			return nil
		})
	}
	first := map[string]float64{"berlin": 0.1, "paris": 0.3}
	cheaper := map[string]float64{"berlin": 0.4, "paris": 0.1}
	further := map[string]float64{"berlin": 0.4, "paris": 0.1, "rome": 0.05}
	night := map[string]float64{"berlin": 0.01, "paris": 0.1, "rome": 0.5}

	byDay := then(step, nil, variables(closed, "", cheaper), on("berlin"))
	byDay.ConfigStateChecks = append(byDay.ConfigStateChecks, held(api.ReasonHeldByWindow, "paris"))
	frozen := then(step, nil, variables(closed, "incident", cheaper), on("berlin"))
	frozen.ConfigStateChecks = append(frozen.ConfigStateChecks, held(api.ReasonHeldByFreeze, "paris"))
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			then(step, func() {
				f.put(&api.Freeze{Metadata: api.Metadata{Name: "early"}, Spec: api.FreezeSpec{Reason: "nobody moves"}})
			},
				variables(closed, "", first), on("berlin")),
			func() resource.TestStep {
				byDay.PreConfig = func() { f.delete(api.Key{Kind: api.KindFreeze, Name: "early"}) }
				return byDay
			}(),
			frozen,
			// What the apply asks for is not held: another cluster may be chosen.
			then(step, nil, variables(closed, "incident", further), on("rome")),
			moves(step, variables("* * * * *", "", night), func() { f.until(web, "berlin") }),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: variables("* * * * *", "", night), Destroy: true},
		},
	})
}
