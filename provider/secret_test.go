package provider_test

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/plancheck"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/terraform"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// secretive is a resource for each secret of the API, with %s for the attributes of the secret.
var secretive = map[string]string{
	"cluster spec.kubernetes.kubeconfig":                             `kubernetes = { %s }`,
	"cloud spec.openstack.password":                                  "openstack = {\n auth_url = \"http://127.0.0.1:1/v3\"\n username = \"u\"\n project_name = \"p\"\n %s\n }",
	"cloud spec.openstack.application_credential_secret":             "openstack = {\n auth_url = \"http://127.0.0.1:1/v3\"\n application_credential_id = \"i\"\n %s\n }",
	"openstack_project spec.openstack.password":                      "openstack = {\n auth_url = \"http://127.0.0.1:1/v3\"\n username = \"u\"\n project_name = \"p\"\n %s\n }",
	"openstack_project spec.openstack.application_credential_secret": "openstack = {\n auth_url = \"http://127.0.0.1:1/v3\"\n application_credential_id = \"i\"\n %s\n }",
	"metrics_provider spec.headers":                                  "type = \"prometheus\"\n prometheus = { url = \"http://127.0.0.1:1\" }\n %s",
	"metrics_provider spec.bearer_token":                             "type = \"prometheus\"\n prometheus = { url = \"http://127.0.0.1:1\" }\n %s",
	"metrics_provider spec.influx.token":                             "type = \"influx\"\n influx = {\n url = \"http://127.0.0.1:1\"\n bucket = \"b\"\n %s\n }",
}

// theSecret is a part of every secret in these tests.
const theSecret = "hush-hush"

func TestAccEverySecretIsKept(t *testing.T) {
	for _, info := range api.Kinds {
		for _, secret := range api.SecretFields(info.Kind) {
			name := string(info.Kind) + " " + secret.Field
			body, ok := secretive[name]
			if !ok {
				t.Errorf("no resource of this test has the secret %s", name)
			}
			t.Run(name, func(t *testing.T) { keepSecret(t, newFleet(t), info.Kind, secret, body) })
		}
	}
}

func keepSecret(t *testing.T, f *fleet, kind api.Kind, secret api.SecretField, body string) {
	t.Helper()
	address := "scheduler_" + string(kind) + ".x"
	key := api.Key{Kind: kind, Name: "x"}
	if info, _ := api.LookupKind(kind); info.Scope == api.Namespaced {
		key.Namespace = api.DefaultNamespace
	}
	at := tfjsonpath.New("none")
	attribute := ""
	for i, step := range strings.Split(secret.Field, ".")[1:] {
		attribute = step
		if i == 0 {
			at = tfjsonpath.New(step + "_stored")
			if strings.Count(secret.Field, ".") > 1 {
				at = tfjsonpath.New(step)
			}
			continue
		}
		at = at.AtMapKey(step + "_stored")
	}
	value := func(turn string) string {
		switch {
		case secret.Map:
			return fmt.Sprintf(`{ X-Key = "%s %s" }`, theSecret, turn)
		case attribute == "kubeconfig":
			return strings.ReplaceAll(kubeconfigHCL, "the first secret", theSecret+" "+turn)
		}
		return fmt.Sprintf(`"%s %s"`, theSecret, turn)
	}
	nothing, some, none := `""`, knownvalue.Check(knownvalue.Bool(true)), knownvalue.Check(knownvalue.Bool(false))
	if secret.Map {
		nothing = "{}"
		some, none = knownvalue.ListExact([]knownvalue.Check{knownvalue.StringExact("X-Key")}), knownvalue.ListExact([]knownvalue.Check{})
	}
	generation, lost := int64(0), false
	step := func(label string, has bool, attributes ...string) resource.TestStep {
		config := "resource \"scheduler_" + string(kind) + "\" \"x\" {\n name = \"x\"\n labels = { turn = \"" + label + "\" }\n" +
			fmt.Sprintf(body, strings.Join(attributes, "\n")) + "\n}"
		config = strings.ReplaceAll(config, "{ "+strings.Join(attributes, "\n")+" }", "{\n"+strings.Join(attributes, "\n")+"\n}")
		stored := some
		if !has {
			stored = none
		}
		return resource.TestStep{
			Config: f.config(config),
			ConfigPlanChecks: resource.ConfigPlanChecks{
				PreApply:             []plancheck.PlanCheck{plancheck.ExpectKnownValue(address, at, stored), noSecretInPlan{}},
				PostApplyPostRefresh: emptyPlan(),
			},
			ConfigStateChecks: []statecheck.StateCheck{statecheck.ExpectKnownValue(address, at, stored)},
			Check: func(s *terraform.State) error {
				if data, err := json.Marshal(s); err != nil || strings.Contains(string(data), theSecret) {
					return fmt.Errorf("the state has a secret, or none at all: %s (%w)", data, err)
				}
				object, err := f.client.Get(f.ctx(), key)
				if err != nil {
					return err
				}
				if len(object.Secrets()) > 0 != has {
					return fmt.Errorf("the server has the secrets %v", object.Secrets())
				}
				lost = lost || !has // then it is online, like a cluster without a kubeconfig
				if cluster, ok := object.(*api.Cluster); ok && !lost && cluster.Status.State == api.StateOnline {
					return fmt.Errorf("a cluster that nobody has seen is online")
				}
				if object.Meta().Generation <= generation {
					return fmt.Errorf("generation is %d: nothing was written", object.Meta().Generation)
				}
				generation = object.Meta().Generation
				return nil
			},
		}
	}
	now := attribute + "_wo"
	version := func(n int) string { return fmt.Sprintf("%s_version = %d", now, n) }
	// A look-up that failed does not remove what is stored.
	refused := step("again-null", true, version(3))
	refused.ExpectError = regexp.MustCompile(now + `:\s+must\s+not\s+be\s+null`)
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		CheckDestroy:             func(*terraform.State) error { generation = 0; return f.gone(key) },
		Steps: []resource.TestStep{
			step("created", true, now+" = "+value("1"), version(1)),
			step("without-it", true, version(1)),
			step("null", true, now+" = null"), // nor does removing the version
			{
				ResourceName: address, ImportState: true, ImportStateId: key.Path(), ImportStateVerify: true, ImportStateVerifyIdentifierAttribute: "name",
			},
			step("again-null", true, version(1)),
			step("again-null", true, now+" = "+value("2"), version(2)),
			refused,
			step("and-back", true, now+" = "+value("3"), version(3)),
			step("and-back", false, now+" = "+nothing, version(3)),
		},
	})
}

// noSecretInPlan fails if a plan contains a secret of this test.
type noSecretInPlan struct{}

func (noSecretInPlan) CheckPlan(_ context.Context, req plancheck.CheckPlanRequest, resp *plancheck.CheckPlanResponse) {
	// Everything except the configuration, which contains the test's literal.
	data, err := json.Marshal([]any{req.Plan.ResourceChanges, req.Plan.PlannedValues, req.Plan.PriorState, req.Plan.ResourceDrift})
	if err != nil || strings.Contains(string(data), theSecret) {
		resp.Error = fmt.Errorf("the plan has a secret, or cannot be read: %.2000s (%w)", data, err)
	}
}

// A metrics provider still logs in after its label has changed.
func TestAccKeptTokenLogsIn(t *testing.T) {
	f := newFleet(t)
	var token atomic.Value
	source := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		token.Store(r.Header.Get("Authorization"))
		if r.Header.Get("Authorization") != "Bearer "+theSecret {
			w.WriteHeader(http.StatusUnauthorized)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"0.5"]}]}}`))
	}))
	t.Cleanup(source.Close)
	config := func(label, token string) string {
		return f.config(fmt.Sprintf(`
			resource "scheduler_metrics_provider" "prom" {
			  name            = "prom"
			  labels          = { turn = %q }
			  type            = "prometheus"
			  prometheus      = { url = %q }
			  interval        = "100ms"
			  %s
			}
			resource "scheduler_metric" "load" {
			  name             = "load"
			  min              = 0
			  max              = 1
			  metrics_provider = { name = scheduler_metrics_provider.prom.name, metric = "load" }
			}`, label, source.URL, token))
	}
	available := func(want api.ConditionStatus) func(*terraform.State) error {
		return func(*terraform.State) error {
			return untilNoError(t, func() error {
				object, err := f.client.Get(f.ctx(), api.Key{Kind: api.KindMetric, Name: "load"})
				if err != nil {
					return err
				}
				metric := object.(*api.Metric)
				if c := api.FindCondition(metric.Status.Conditions, api.ConditionAvailable); c == nil || c.Status != want {
					return fmt.Errorf("the metric is %+v, the last login was with %v", metric.Status, token.Load())
				}
				return nil
			})
		}
	}
	resource.Test(t, resource.TestCase{
		ProtoV6ProviderFactories: factories,
		Steps: []resource.TestStep{
			{Config: config("a", `bearer_token_wo = "`+theSecret+`"`), Check: available(api.ConditionTrue)},
			{PreConfig: func() { token.Store("") }, Config: config("b", ""), Check: func(s *terraform.State) error {
				if err := untilNoError(t, func() error {
					if token.Load() == "" {
						return fmt.Errorf("nobody has asked since")
					}
					return nil
				}); err != nil {
					return err
				}
				return available(api.ConditionTrue)(s)
			}},
			{Config: config("b", `bearer_token_wo = ""`), Check: available(api.ConditionFalse)},
		},
	})
}

// untilNoError repeats a call until it succeeds.
func untilNoError(t *testing.T, ask func() error) error {
	t.Helper()
	var err, shown error
	eventually.True(t, "there is no error", func() bool {
		if err = ask(); err != nil && (shown == nil || err.Error() != shown.Error()) {
			t.Logf("not yet: %v", err)
			shown = err
		}
		return err == nil
	})
	return err
}
