package api

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// written holds a valid object of every kind as users write them: with blocks and lists, and
// without fields that have a default.
var written = []string{
	`{"kind":"cluster_set","metadata":{"name":"eu"},"spec":{"selector":{"match_labels":{"tier":"prod"},"match_expressions":[{"key":"zone","operator":"In","values":["a","b"]}]}}}`,
	`{"kind":"cluster","metadata":{"name":"c1","labels":{"location":"DE","tier":"prod"}},"spec":{"region":"eu","zones":["a","b"],
		"taints":[{"key":"gpu","effect":"NoSelect"}],"metrics":[{"name":"load"},{"name":"cost","weight":2}],
		"capacity":{"cpu":"64","memory":"256Gi"},"allocatable":{"cpu":"60","memory":"250Gi"},"allocated":{"cpu":"12500m","memory":"64Gi"},
		"health":{"url":"https://c1.example.com/healthz"},"spot":{},"flavors":[{"name":"m1","vcpus":4,"memory":"8Gi"}]}}`,
	`{"kind":"cloud","metadata":{"name":"os"},"spec":{"metrics":[{"name":"cost"}],"openstack":{"auth_url":"https://keystone:5000/v3",
		"username":"u","password":"p","project_name":"x","regions":["r1"]}}}`,
	`{"kind":"openstack_project","metadata":{"name":"p","namespace":"shop"},"spec":{"user_id":"u","metrics":[{"name":"cost"}]}}`,
	`{"kind":"magnum_cluster","metadata":{"name":"m","namespace":"shop"},"spec":{"template_id":"t","label_constraints":["location is DE"]}}`,
	`{"kind":"metrics_provider","metadata":{"name":"prom"},"spec":{"type":"prometheus","prometheus":{"url":"http://prometheus:9090"}}}`,
	`{"kind":"metric","metadata":{"name":"load"},"spec":{"min":0,"max":10,"metrics_provider":{"name":"prom","metric":"load"}}}`,
	`{"kind":"placement_score","metadata":{"name":"s","cluster":"c1"},"spec":{"scores":{"a":1,"b":-100,"c":100}}}`,
	`{"kind":"placement","metadata":{"name":"web","namespace":"shop"},"spec":{"number_of_clusters":3,"label_constraints":["location is DE"],
		"metric_constraints":["load < 5"],"tolerations":[{"key":"gpu","operator":"Exists"}],"resource_requests":{"cpu":"500m"},
		"spread_constraints":[{"topology_key":"region","type":"Field"}]}}`,
	`{"kind":"placement","metadata":{"name":"ranked","namespace":"shop"},"spec":{"strategy":"prioritizers",
		"prioritizer_policy":{"configurations":[{"name":"steady"},{"name":"spread","weight":-2}]}}}`,
	`{"kind":"propagation_policy","metadata":{"name":"pol","namespace":"shop"},"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"}],
		"placement":{"cluster_affinities":[{"affinity_name":"a","cluster_names":["c1"]},{"affinity_name":"b","field_selector":[{"key":"region","operator":"In","values":["eu"]}]}],
		"cluster_tolerations":[{"key":"gpu","operator":"Exists"}],"spread_constraints":[{"max_groups":2},{"spread_by_field":"region"}],
		"replica_scheduling":{"weight_preference":{"static_weights":[{"weight":2}]}}},
		"failover":{"cluster":{},"application":{}},"fail_back":{}}}`,
	`{"kind":"workload","metadata":{"name":"w","namespace":"shop"},"spec":{"api_version":"apps/v1","kind":"Deployment","replicas":10,
		"replica_requests":{"cpu":"500m","memory":"1Gi"},"distribution":{}}}`,
	`{"kind":"role","metadata":{"name":"deployer"},"spec":{"rules":[{"verbs":["read"]},{"verbs":["write","delete"],"kinds":["placement","workload"],"namespaces":["shop"]}]}}`,
	`{"kind":"role_binding","metadata":{"name":"shop-ci"},"spec":{"role":"deployer","namespaces":["shop"],"issuer":"github","claims":{"repository":"shop/*"}}}`,
	`{"kind":"move_window","metadata":{"name":"weekend","namespace":"shop"},"spec":{"effect":"deny","schedule":"0 18 * * FRI","duration":"60h","time_zone":"Europe/Berlin","description":"weekend"}}`,
}

// eachWritten runs f for every object in written.
func eachWritten(b *testing.B, f func(b *testing.B, object Object)) {
	for _, document := range written {
		var head struct{ Kind Kind }
		if err := json.Unmarshal([]byte(document), &head); err != nil {
			b.Fatal(err)
		}
		info, _ := LookupKind(head.Kind)
		object := info.New()
		if err := DecodeInto([]byte(document), object); err != nil {
			b.Fatalf("%s: %s", document, err)
		}
		b.Run(KeyOf(object).Name, func(b *testing.B) { f(b, object) })
	}
}

// BenchmarkSetDefaults sets defaults in an object as a user writes it.
func BenchmarkSetDefaults(b *testing.B) {
	eachWritten(b, func(b *testing.B, object Object) {
		cputime.Measure(b, func() { object.Copy().SetDefaults() })
	})
}

// BenchmarkSetNoDefaults sets defaults in a complete object, as most objects read from the store
// are.
func BenchmarkSetNoDefaults(b *testing.B) {
	eachWritten(b, func(b *testing.B, object Object) {
		object.SetDefaults()
		cputime.Measure(b, func() { object.Copy().SetDefaults() })
	})
}

// BenchmarkCheckFields checks a valid object against the rules of its fields.
func BenchmarkCheckFields(b *testing.B) {
	eachWritten(b, func(b *testing.B, object Object) {
		object.SetDefaults()
		cputime.Measure(b, func() {
			var errs FieldErrors
			if errs.checkFields("spec", object.SpecPart()); errs != nil {
				b.Fatal(errs)
			}
		})
	})
}

// BenchmarkValidate validates a valid object.
func BenchmarkValidate(b *testing.B) {
	eachWritten(b, func(b *testing.B, object Object) {
		object.SetDefaults()
		cputime.Measure(b, func() {
			if errs := object.Validate(); errs != nil {
				b.Fatal(errs)
			}
		})
	})
}

// The benchmarks must cover every kind.
func TestBenchmarksCoverEveryKind(t *testing.T) {
	seen := map[reflect.Type]bool{}
	for _, document := range written {
		object, err := Decode([]byte(document))
		if err != nil {
			t.Fatalf("%s: %s", document, err)
		}
		if errs := object.Validate(); errs != nil {
			t.Errorf("%s: %s", document, errs)
		}
		seen[reflect.TypeOf(object)] = true
	}
	for _, info := range Kinds {
		if !seen[reflect.TypeOf(info.New())] {
			t.Errorf("no document of kind %s", info.Kind)
		}
	}
}
