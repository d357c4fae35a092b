package provider_test

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/provider"
)

// The four user stories of extensible scheduling, each tested with its example. The test plays the agents and
// controllers.

// story starts a server for an example, which is used as it is.
func story(t *testing.T, example string) (*fleet, resource.TestStep) {
	f := newFleet(t)
	return f, resource.TestStep{
		// The library does not accept providers for the whole test next to a file that declares some.
		ProtoV6ProviderFactories: f.factories(),

		ConfigFile:       config.StaticFile("../examples/" + example + "/main.tf"),
		ConfigPlanChecks: resource.ConfigPlanChecks{PostApplyPostRefresh: emptyPlan()},
	}
}

// factories create the provider as if SCHEDULER_ENDPOINT named the server of this fleet. The variable itself is shared
// by all tests of the process.
func (f *fleet) factories() map[string]func() (tfprotov6.ProviderServer, error) {
	return map[string]func() (tfprotov6.ProviderServer, error){
		"scheduler": func() (tfprotov6.ProviderServer, error) {
			return providerOfFleet{provider.NewServer("test")(), f.endpoint}, nil
		},
	}
}

// providerOfFleet is a provider that uses the endpoint of its test's fleet if the configuration has none.
type providerOfFleet struct {
	tfprotov6.ProviderServer
	endpoint string
}

// ConfigureProvider implements tfprotov6.ProviderServer.
func (p providerOfFleet) ConfigureProvider(ctx context.Context, req *tfprotov6.ConfigureProviderRequest) (*tfprotov6.ConfigureProviderResponse, error) {
	schema, err := p.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err != nil {
		return nil, err
	}
	typ := schema.Provider.ValueType()
	given, err := req.Config.Unmarshal(typ)
	if err != nil {
		return nil, err
	}
	given, err = tftypes.Transform(given, func(path *tftypes.AttributePath, value tftypes.Value) (tftypes.Value, error) {
		if path.Equal(tftypes.NewAttributePath().WithAttributeName("endpoint")) && value.IsNull() {
			return tftypes.NewValue(tftypes.String, p.endpoint), nil
		}
		return value, nil
	})
	if err != nil {
		return nil, err
	}
	config, err := tfprotov6.NewDynamicValue(typ, given)
	if err != nil {
		return nil, err
	}
	with := *req
	with.Config = &config
	return p.ProviderServer.ConfigureProvider(ctx, &with)
}

// then is a step of a story: something happens or a variable changes, and the outputs are as given.
func then(step resource.TestStep, happens func(), variables config.Variables, outputs map[string]knownvalue.Check) resource.TestStep {
	step.PreConfig, step.ConfigVariables = happens, variables
	for name, want := range outputs {
		step.ConfigStateChecks = append(slices.Clone(step.ConfigStateChecks), statecheck.ExpectKnownOutputValue(name, want))
	}
	return step
}

// until waits for a decision that the server makes on its own.
func (f *fleet) until(key api.Key, clusters ...string) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), eventually.Limit)
	defer cancel()
	object, err := f.client.Get(ctx, key)
	for err == nil {
		if p, ok := object.(*api.Placement); ok && slices.Equal(p.Status.Clusters, clusters) {
			return
		}
		object, err = f.client.GetNewer(ctx, key, object.Meta().ResourceVersion, 10*time.Second)
	}
	f.t.Fatalf("%s is not on %v: %v", key, clusters, err)
}

// Story 1: agents push a score from each cluster, and the best two clusters are chosen.
func TestAccStoryScoresFromAgents(t *testing.T) {
	f, step := story(t, "scores-from-agents")
	push := func(free map[string]int64) func() {
		return func() {
			for _, cluster := range slices.Sorted(maps.Keys(free)) {
				f.score(cluster, "utilisation", map[string]int64{"cpu_free": free[cluster]})
			}
		}
	}
	chosen := func(list ...string) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"clusters": names(list...)}
	}
	expire := func() {
		past := time.Now().Add(-time.Minute)
		f.put(&api.PlacementScore{Metadata: api.Metadata{Cluster: "oslo", Name: "utilisation"}, Spec: api.PlacementScoreSpec{
			Scores: map[string]int64{"cpu_free": 100}, ValidUntil: &past,
		}})
	}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			then(step, nil, nil, chosen("berlin", "madrid")), // without scores: by name
			then(step, push(map[string]int64{"berlin": -20, "madrid": 40, "oslo": 90, "paris": 60}), nil, chosen("oslo", "paris")),
			then(step, push(map[string]int64{"madrid": 65}), nil, chosen("oslo", "paris")), // not better by more than 10
			then(step, push(map[string]int64{"madrid": 75}), nil, chosen("oslo", "madrid")),
			then(step, expire, nil, chosen("madrid", "paris")), // an expired score counts as 0
			{ // the library cannot clean up after for_each
				ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, Destroy: true,
			},
		},
	})
}

// Story 2: scores computed from centrally collected metrics, combined with those of an add-on, and a negative weight to
// find the worst cluster.
func TestAccStoryScoresFromMetrics(t *testing.T) {
	f, step := story(t, "scores-from-metrics")
	site := func(free float64, support int64) config.Variable {
		return config.ObjectVariable(map[string]config.Variable{
			"memory_free": config.FloatVariable(free), "support": config.IntegerVariable(support),
		})
	}
	chosen := func(web, worst string) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"clusters": knownvalue.ObjectExact(map[string]knownvalue.Check{"web": names(web), "worst": names(worst)})}
	}
	// berlin 2·50 + 40, madrid 2·0 + 80, oslo 2·-50 + 60.
	before := then(step, nil, nil, chosen("berlin", "oslo"))
	before.ConfigStateChecks = append(before.ConfigStateChecks,
		statecheck.ExpectKnownOutputValueAtPath("scores", tfjsonpath.New("berlin").AtMapKey("total"), knownvalue.Float64Exact(140)),
		statecheck.ExpectKnownOutputValueAtPath("scores", tfjsonpath.New("oslo").AtMapKey("total"), knownvalue.Float64Exact(-40)),
	)
	// Memory fills up in berlin: -2·80 + 40. The server reads the values; Terraform does not write them.
	fill := func() {
		edit(f, api.Key{Kind: api.KindMetricsProvider, Namespace: "berlin", Name: "central"}, func(p *api.MetricsProvider) {
			p.Spec.Static = &api.StaticSpec{Metrics: map[string]float64{"memory_free": 0.1}}
		})
		f.until(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}, "madrid")
		f.until(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "worst"}, "berlin")
	}
	filled := config.Variables{"clusters": config.MapVariable(map[string]config.Variable{
		"berlin": site(0.1, 40), "madrid": site(0.5, 80), "oslo": site(0.25, 60),
	})}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			before,
			then(step, fill, filled, chosen("madrid", "berlin")),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: filled, Destroy: true},
		},
	})
}

// afterwards checks the server after an apply. (The library's own Check does not work with for_each.)
type afterwards func() error

func (a afterwards) CheckState(_ context.Context, _ statecheck.CheckStateRequest, resp *statecheck.CheckStateResponse) {
	resp.Error = a()
}

// agents send the heartbeats of clusters. At first they are silent.
type agents struct{ silent sync.Map }

func (f *fleet) agents(clusters ...string) *agents {
	a := &agents{}
	ctx, cancel := context.WithCancel(context.Background())
	var group sync.WaitGroup
	for _, cluster := range clusters {
		silent := new(atomic.Bool)
		silent.Store(true)
		a.silent.Store(cluster, silent)
		group.Go(func() {
			beat := time.NewTicker(50 * time.Millisecond)
			defer beat.Stop()
			for {
				select {
				case <-beat.C:
				case <-ctx.Done():
					return
				}
				if !silent.Load() {
					// The last one may find that the cluster was destroyed, or the server stopped.
					_, _ = f.client.Heartbeat(ctx, cluster, api.Heartbeat{})
				}
			}
		})
	}
	f.t.Cleanup(func() { cancel(); group.Wait() })
	return a
}

func (a *agents) of(cluster string) *atomic.Bool {
	value, _ := a.silent.Load(cluster)
	silent, _ := value.(*atomic.Bool)
	return silent
}

// Story 3: an emergency workload runs on the primary, fails over to the backup because of a taint or missing
// heartbeats, and returns.
func TestAccStoryDisasterRecovery(t *testing.T) {
	f, step := story(t, "disaster-recovery")
	agents := f.agents("primary", "backup")
	ledger := api.Key{Kind: api.KindPlacement, Namespace: "bank", Name: "ledger"}
	variables := func(maintenance bool) config.Variables {
		return config.Variables{"heartbeat_interval": config.StringVariable("5s"), "maintenance": config.BoolVariable(maintenance)}
	}
	runs := func(cluster string) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"runs_on": names(cluster)}
	}
	// The clusters are created before their agents report, so that none is online for the first decision. The server
	// makes the next one on its own.
	report := func() error {
		agents.of("primary").Store(false)
		agents.of("backup").Store(false)
		f.until(ledger, "primary")
		return nil
	}
	create := then(step, nil, variables(false), map[string]knownvalue.Check{"runs_on": knownvalue.ListSizeExact(0)})
	create.ConfigStateChecks = append(create.ConfigStateChecks, afterwards(report))
	create.ConfigPlanChecks, create.ExpectNonEmptyPlan = resource.ConfigPlanChecks{}, true
	lost := func() { agents.of("primary").Store(true); f.until(ledger, "backup") }
	tainted := func() error {
		object, err := f.client.Get(f.ctx(), api.Key{Kind: api.KindCluster, Name: "primary"})
		if err != nil {
			return err
		}
		cluster, ok := object.(*api.Cluster)
		if !ok || !slices.ContainsFunc(cluster.Status.Taints, func(t api.ClusterTaint) bool { return t.Key == api.TaintUnreachable && t.TimeAdded != nil }) {
			return fmt.Errorf("the lost cluster has the taints %+v", cluster.Status.Taints)
		}
		return nil
	}
	failedOver := then(step, lost, variables(false), runs("backup"))
	failedOver.ConfigStateChecks = append(failedOver.ConfigStateChecks, afterwards(tainted))
	back := func() { agents.of("primary").Store(false); f.until(ledger, "primary") }
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			create,
			then(step, nil, variables(false), runs("primary")),
			// With a taint, and back.
			then(step, nil, variables(true), runs("backup")),
			then(step, nil, variables(false), runs("primary")),
			// With missing heartbeats, and back.
			failedOver,
			then(step, back, variables(false), runs("primary")),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: variables(false), Destroy: true},
		},
	})
}

// Story 4: each team uses the ratings of a third party in its own way, within the clusters that it may use.
func TestAccStoryThirdPartyRatings(t *testing.T) {
	f, step := story(t, "third-party-ratings")
	rate := func(ratings map[string][2]int64) func() {
		return func() {
			for _, cluster := range slices.Sorted(maps.Keys(ratings)) {
				f.score(cluster, "sla", map[string]int64{"latency": ratings[cluster][0], "iops": ratings[cluster][1]})
			}
		}
	}
	result := func(orders string, archive ...string) map[string]knownvalue.Check {
		steps := make([]knownvalue.Check, len(archive))
		for i, cluster := range archive {
			steps[i] = names(cluster)
		}
		return map[string]knownvalue.Check{"orders": names(orders), "archive_rollout": knownvalue.TupleExact(steps)}
	}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			// Without ratings, clusters are chosen by name, from the certified ones in the set.
			then(step, nil, nil, result("frankfurt", "frankfurt", "paris")),
			// newyork has the best rating but is not in the set; warsaw has the best latency there, but is not
			// certified; 3·40 + 90 is more than 3·60 + 20.
			then(step, rate(map[string][2]int64{
				"newyork": {100, 100}, "warsaw": {95, 80}, "frankfurt": {60, 20}, "paris": {40, 90},
			}), nil, result("paris", "paris", "warsaw")),
			then(step, rate(map[string][2]int64{"frankfurt": {70, 20}}), nil, result("frankfurt", "paris", "warsaw")),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, Destroy: true},
		},
	})
}
