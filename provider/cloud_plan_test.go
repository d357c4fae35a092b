package provider

import (
	"maps"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/terraform/terraformtest"
)

// Resources created on the chosen cloud or project must not be replaced because of a change that does not affect the
// choice.
func TestPlanKeepsTheChoice(t *testing.T) {
	cluster := func(changes doc) doc {
		s := doc{
			"name": "east", "paused": false, "inherit_labels": true, "inherit_metrics": false, "cloud": "de",
			"cloud_constraints": doc{"label_constraints": list{"location is DE"}},
		}
		maps.Copy(s, changes)
		return s
	}
	magnum := func(changes doc) doc {
		s := doc{"name": "k", "namespace": "shop", "project": "p", "project_id": "4711", "selected_template_id": "t"}
		maps.Copy(s, changes)
		return s
	}
	undecided := doc{"cloud": unknown{}}
	noProject := doc{"project": unknown{}, "project_id": unknown{}, "selected_template_id": unknown{}}
	chosen := doc{"project": "p", "project_id": "4711", "selected_template_id": "t"}
	for _, test := range []struct {
		name     string
		resource string
		config   doc // differences from the state
		state    doc // nil = created
		want     doc
	}{
		{"a new cluster", "scheduler_cluster", cluster(nil), nil, undecided},
		{"an unchanged cluster", "scheduler_cluster", nil, cluster(nil), doc{"cloud": "de"}},
		{"labels", "scheduler_cluster", doc{"labels": doc{"a": "b"}}, cluster(nil), doc{"cloud": "de"}},
		{"a kubeconfig in the configuration", "scheduler_cluster", doc{"kubernetes": doc{"kubeconfig_wo_version": 1}}, cluster(nil), doc{"cloud": "de"}},
		{"a pause of a cluster without a cloud", "scheduler_cluster", doc{"paused": true}, cluster(doc{"cloud": nil}), doc{"cloud": nil}},
		{"other constraints", "scheduler_cluster", doc{"cloud_constraints": doc{}}, cluster(nil), undecided},
		{"no constraints", "scheduler_cluster", doc{"cloud_constraints": nil}, cluster(nil), undecided},
		{"an owner", "scheduler_cluster", doc{"namespace": "shop"}, cluster(nil), undecided},
		{"a zone", "scheduler_cluster", doc{"openstack": doc{"cloud": "c", "region": "r", "availability_zone": "z"}}, cluster(nil), undecided},
		{"default restored", "scheduler_cluster", doc{"inherit_labels": nil}, cluster(nil), doc{"inherit_labels": false, "cloud": "de"}},

		{"a new Magnum cluster", "scheduler_magnum_cluster", magnum(nil), nil, noProject},
		{"an unchanged Magnum cluster", "scheduler_magnum_cluster", nil, magnum(nil), chosen},
		{"labels of a Magnum cluster", "scheduler_magnum_cluster", doc{"labels": doc{"a": "b"}}, magnum(nil), chosen},
		{"how long to wait", "scheduler_magnum_cluster", doc{"wait": doc{"for": "none"}}, magnum(nil), chosen},
		{"a template", "scheduler_magnum_cluster", doc{"template_id": "t2"}, magnum(nil), noProject},
		{"a constraint", "scheduler_magnum_cluster", doc{"label_constraints": list{"a is b"}}, magnum(nil), noProject},
		{"metrics", "scheduler_magnum_cluster", doc{"metrics": list{doc{"name": "m"}}}, magnum(nil), noProject},
		{"not found, no new request", "scheduler_magnum_cluster", doc{"labels": doc{"a": "b"}},
			magnum(doc{"project": nil, "project_id": nil, "selected_template_id": nil}), doc{"project": nil, "project_id": nil, "selected_template_id": nil}},
	} {
		t.Run(test.name, func(t *testing.T) {
			typ := newValidation(t).types[test.resource]
			config := maps.Clone(test.state)
			if config == nil {
				config = doc{}
			}
			maps.Copy(config, test.config)
			for _, name := range []string{"cloud", "project", "project_id", "selected_template_id"} {
				delete(config, name) // computed, so not in the configuration
			}
			plansAs(t, typ, planOf(t, test.resource, terraformtest.ConfigValue(t, typ, config), test.state), test.want)
		})
	}
}

// Defaults that follow from other attributes are known in the plan.
func TestPlanDependentDefaults(t *testing.T) {
	influxdb := doc{"type": "influx", "influx": doc{"url": "http://i", "bucket": "b"}}
	table := doc{"type": "static", "static": doc{}}
	for _, test := range []struct {
		name     string
		resource string
		config   doc
		state    doc
		unknown  string
		want     doc
	}{
		{"time for a table", "scheduler_metrics_provider", table, nil, "", doc{"timeout": "20s"}},
		{"time for InfluxDB", "scheduler_metrics_provider", influxdb, nil, "", doc{"timeout": "10s"}},
		{"InfluxDB instead of a table", "scheduler_metrics_provider", influxdb,
			doc{"name": "p", "type": "static", "static": doc{}, "interval": "15s", "timeout": "20s", "insecure_skip_verify": false}, "", doc{"timeout": "10s"}},
		{"time for a value known after apply", "scheduler_metrics_provider", doc{}, nil, "type", doc{"timeout": unknown{}}},
		{"given time", "scheduler_metrics_provider", doc{"type": "influx", "timeout": "1m"}, nil, "", doc{"timeout": "1m"}},

		{"domains of names", "scheduler_cloud", doc{"openstack": access(doc{"username": "u", "project_name": "p"})}, nil, "",
			doc{"openstack": openStackPlan(doc{"username": "u", "user_domain_name": "Default", "project_name": "p", "project_domain_name": "Default"})}},
		{"no domains of IDs", "scheduler_cloud", doc{"openstack": access(doc{"user_id": "u", "project_id": "p"})}, nil, "",
			doc{"openstack": openStackPlan(doc{"user_id": "u", "project_id": "p"})}},
		{"a given domain", "scheduler_cloud", doc{"openstack": access(doc{"username": "u", "user_domain_name": "corp"})}, nil, "",
			doc{"openstack": openStackPlan(doc{"username": "u", "user_domain_name": "corp"})}},
		{"an ID instead of a name", "scheduler_cloud", doc{"openstack": access(doc{"user_id": "u"})},
			doc{"name": "x", "openstack": openStackPlan(doc{"username": "u", "user_domain_name": "Default"})}, "",
			doc{"openstack": openStackPlan(doc{"user_id": "u"})}},
	} {
		t.Run(test.name, func(t *testing.T) {
			typ := newValidation(t).types[test.resource]
			config := doc{"name": "x"}
			maps.Copy(config, test.config)
			value := terraformtest.ConfigValue(t, typ, config)
			if test.unknown != "" {
				value = withUnknown(value, test.unknown, false)
			}
			plansAs(t, typ, planOf(t, test.resource, value, test.state), test.want)
		})
	}
}

// openStackPlan returns an OpenStack access with all of its constant defaults.
func openStackPlan(more doc) doc {
	plan := access(doc{"interval": string(api.DefaultCollectInterval), "timeout": string(api.DefaultCollectTimeout), "insecure_skip_verify": false, "password_stored": false, "application_credential_secret_stored": false})
	maps.Copy(plan, more)
	return plan
}
