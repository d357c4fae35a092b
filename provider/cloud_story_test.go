package provider_test

import (
	"testing"

	"github.com/hashicorp/terraform-plugin-testing/config"
	"github.com/hashicorp/terraform-plugin-testing/helper/resource"
	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The stories about clouds, each tested with its example.

// kubeconfigOfNobody is the kubeconfig of a cluster that does not respond.
const kubeconfigOfNobody = `
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "https://127.0.0.1:1"}}]
users: [{name: u, user: {token: t}}]
`

// A Kubernetes cluster is requested, the server chooses a cloud, another configuration creates the cluster there, and
// its kubeconfig is passed back.
func TestAccStoryClusterOnCloud(t *testing.T) {
	f, create := story(t, "cluster-on-cloud")
	request := create
	request.ConfigFile = config.StaticFile("../examples/cluster-on-cloud/request/main.tf")
	shop := api.Key{Kind: api.KindCluster, Name: "shop"}
	on := func(cloud string) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"created_on": knownvalue.TupleExact([]knownvalue.Check{knownvalue.StringExact(cloud)})}
	}
	chosen := func(cloud string) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"cloud": knownvalue.StringExact(cloud)}
	}
	site := func(location string, price float64) config.Variable {
		return config.ObjectVariable(map[string]config.Variable{"location": config.StringVariable(location), "price": config.FloatVariable(price)})
	}
	clouds := func(berlin float64, paris bool) config.Variables {
		sites := map[string]config.Variable{"berlin": site("DE", berlin), "zurich": site("CH", 0.19)}
		if paris {
			sites["paris"] = site("FR", 0.22)
		}
		return config.Variables{"clouds": config.MapVariable(sites)}
	}
	back := func(variables config.Variables) config.Variables {
		variables["kubeconfig"], variables["kubeconfig_version"] = config.StringVariable(kubeconfigOfNobody), config.IntegerVariable(1)
		return variables
	}
	// The other configuration is applied between two steps of this one.
	apply := func(cloud string) {
		resource.Test(t, resource.TestCase{Steps: []resource.TestStep{
			then(create, nil, nil, on(cloud)),
			{ProtoV6ProviderFactories: create.ProtoV6ProviderFactories, ConfigFile: create.ConfigFile, Destroy: true},
		}})
	}
	moved := func() {
		apply("paris")
		f.delete(api.Key{Kind: api.KindCloud, Name: "paris"})
		f.untilChosen(shop, "berlin")
	}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			// zurich is cheaper, but not in the EU.
			then(request, nil, clouds(0.31, true), chosen("paris")),
			// The cloud disappears before the cluster exists.
			then(request, moved, clouds(0.31, false), chosen("berlin")),
			// The cluster exists, and its kubeconfig is passed back.
			then(request, func() { apply("berlin") }, back(clouds(0.31, false)), chosen("berlin")),
			// A better cloud appears, and the present one becomes expensive: the cluster stays.
			then(request, func() { f.inherits("shop", "location", "DE") }, back(clouds(0.45, true)), chosen("berlin")),
			{ProtoV6ProviderFactories: request.ProtoV6ProviderFactories, ConfigFile: request.ConfigFile, Destroy: true},
		},
	})
}

// inherits checks a label that a cluster inherits from its cloud.
func (f *fleet) inherits(cluster, label, want string) {
	f.t.Helper()
	object, err := f.client.Get(f.ctx(), api.Key{Kind: api.KindCluster, Name: cluster})
	if err != nil {
		f.t.Fatal(err)
	}
	if c, ok := object.(*api.Cluster); !ok || c.Status.Labels[label] != want {
		f.t.Errorf("%s has the labels %v, expected %s=%s", cluster, c.Status.Labels, label, want)
	}
}

// Magnum clusters go to the project with the most free quota, with the project's template or their own. The projects
// come from a variable or an OpenStack.
func TestAccStoryMagnumProjects(t *testing.T) {
	f, step := story(t, "magnum-projects")
	f.put(&api.Cloud{Metadata: api.Metadata{Name: "de"}, Spec: api.CloudSpec{OpenStack: openStack(t)}})
	clusters := func(frontend, training string) map[string]knownvalue.Check {
		return map[string]knownvalue.Check{"clusters": knownvalue.ObjectExact(map[string]knownvalue.Check{
			"frontend": knownvalue.StringExact(frontend), "training": knownvalue.StringExact(training),
		})}
	}
	project := func(id, location, template string, free float64) config.Variable {
		return config.ObjectVariable(map[string]config.Variable{
			"id": config.StringVariable(id), "location": config.StringVariable(location),
			"template": config.StringVariable(template), "free": config.FloatVariable(free),
		})
	}
	// The other project now has more free quota: the cluster is not moved.
	later := config.Variables{"projects": config.MapVariable(map[string]config.Variable{
		"web": project("1f0a", "DE", "k8s-1.34", 0.2), "batch": project("2f0b", "DE", "k8s-1.34-gpu", 0.9), "lab": project("3f0c", "FR", "k8s-1.34", 0.9),
	})}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			then(step, nil, nil, clusters("k8s-1.34 in 1f0a", "k8s-1.34-h100 in 3f0c")),
			then(step, nil, later, clusters("k8s-1.34 in 1f0a", "k8s-1.34-h100 in 3f0c")),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: later, Destroy: true},
		},
	})
	live := config.Variables{"cloud": config.StringVariable("de")}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			then(step, nil, live, clusters("t in 2", "k8s-1.34-h100 in 2")),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: live, Destroy: true},
		},
	})
}

// Machines are placed on the zones of an OpenStack by the amounts that a collector pushes: the best zone is filled
// first, with the flavor that fits.
func TestAccStoryOpenStackZones(t *testing.T) {
	f, step := story(t, "openstack-zones")
	replicas := func(n int) config.Variables { return config.Variables{"replicas": config.IntegerVariable(n)} }
	machines := func(on counts, flavors map[string]string) map[string]knownvalue.Check {
		checks := map[string]knownvalue.Check{}
		for zone, flavor := range flavors {
			checks[zone] = knownvalue.StringExact(flavor)
		}
		return map[string]knownvalue.Check{"machines": on.check(), "flavors": knownvalue.ObjectExact(checks)}
	}
	live := replicas(3)
	live["auth_url"], live["password"] = config.StringVariable(openStack(t).AuthURL), config.StringVariable("secret")
	render := api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "render"}
	figures := func() {
		f.pushZones("de", "RegionOne", map[string]api.Quantities{
			// Capacity for three large machines, and for three small ones.
			"az1": {api.ResourceCPU: "26", api.ResourceMemory: "65536Mi", "storage/ssd": "500Gi"},
			"az2": {api.ResourceCPU: "6", api.ResourceMemory: "16384Mi", "storage/ssd": "500Gi"},
		})
		f.untilBound(render, counts{"regionone-az1": 3}, nil)
	}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			// Without amounts there are no machines, whether the OpenStack has no hosts or the collector has not pushed
			// yet.
			then(step, nil, live, machines(nil, nil)),
			then(step, nil, replicas(3), machines(nil, nil)),
			then(step, figures, replicas(3), machines(counts{"regionone-az1": 3}, map[string]string{"regionone-az1": "large"})),
			then(step, nil, replicas(5), machines(counts{"regionone-az1": 3, "regionone-az2": 2}, map[string]string{"regionone-az1": "large", "regionone-az2": "small"})),
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, ConfigVariables: replicas(5), Destroy: true},
		},
	})
}

// Clusters are rated by the load of racks. Without an InfluxDB, the load comes from a variable.
func TestAccStoryInfluxDBMetrics(t *testing.T) {
	_, step := story(t, "influxdb-metrics")
	gone := config.Variables{"influx_url": config.StringVariable("http://127.0.0.1:1"), "influx_token": config.StringVariable("secret")}
	resource.Test(t, resource.TestCase{
		Steps: []resource.TestStep{
			then(step, nil, nil, map[string]knownvalue.Check{"web_runs_on": names("oslo")}),
			then(step, nil, gone, nil), // an InfluxDB that does not respond must not make the apply wait
			{ProtoV6ProviderFactories: step.ProtoV6ProviderFactories, ConfigFile: step.ConfigFile, Destroy: true},
		},
	})
}
