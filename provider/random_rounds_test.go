package provider_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/seeded"
)

// In each round, a random configuration of all resources is changed at random, planned and applied. The plan after it is
// empty: every output and everything that follows a decision has what was decided after all writes of the round. The
// configuration says with depends_on what depends on what. PLAN_ROUNDS is the number of rounds.
func TestAccRandomRoundsLeaveNothingToPlan(t *testing.T) {
	f := newFleet(t)
	rounds := 3
	if text := os.Getenv("PLAN_ROUNDS"); text != "" {
		var err error
		if rounds, err = strconv.Atoi(text); err != nil {
			t.Fatal(err)
		}
	}
	r := &randomConfig{Rand: seeded.Rand(t)}
	w := newWorkspace(t, f.config())
	for round := range rounds + 1 {
		before, decided := maps.Clone(r.resources), w.ok("output").output
		r.change(round == 0)
		write := func(released bool) string {
			config, err := json.MarshalIndent(r.config(released), "", " ")
			if err != nil {
				t.Fatal(err)
			}
			w.file("main.tf.json", string(config))
			return string(config)
		}
		config := write(true)
		apply := []string{"apply", "-auto-approve", "-parallelism=" + r.pick("1", "10", "50")}
		applied := w.run(apply...)
		if slices.ContainsFunc(applied.errors, func(m message) bool { return m.Summary == "Invalid for_each argument" }) {
			// A decision that moves is not known yet: what is made for each of its clusters is made after it.
			write(false)
			w.ok(apply...)
			write(true)
			applied = w.run(apply...)
		}
		if len(applied.errors) > 0 {
			t.Fatalf("round %d: %v\n%s\n%s", round, applied.errors, applied.output, config)
		}
		if again := w.ok("plan", "-detailed-exitcode"); again.code != 0 {
			left := w.ok("output").output
			w.ok("apply", "-refresh-only", "-auto-approve")
			t.Fatalf("round %d: the plan after the apply is not empty:\n%s\nthe apply before:\n%s\n%s\nthe round changed:\n%s\ndecisions before: %s\nafter the apply: %s\nnow: %s",
				round, again.output, applied.output, config, r.changed(before), decided, left, w.ok("output").output)
		}
	}
	w.file("main.tf.json", "{}")
	w.ok("apply", "-auto-approve")
}

// randomConfig draws configurations.
type randomConfig struct {
	*rand.Rand
	resources map[string]doc // by address
}

func (r *randomConfig) pick(from ...string) string { return from[r.IntN(len(from))] }

// some returns some of a list, in its order.
func (r *randomConfig) some(from ...string) []string {
	out := []string{}
	for _, text := range from {
		if r.IntN(2) == 0 {
			out = append(out, text)
		}
	}
	return out
}

// change draws some resources anew; all of them draws every one. A resource is removed by its count: Terraform plans
// what is no longer in the configuration at all in no order.
func (r *randomConfig) change(all bool) {
	if r.resources == nil {
		r.resources = map[string]doc{}
	}
	makers := r.makers()
	for _, address := range slices.Sorted(maps.Keys(makers)) {
		switch {
		case !all && (r.IntN(3) > 0 || strings.HasPrefix(address, "scheduler_metric")):
			// Metrics stay: the server reads new values after the write, not with it.
		case !all && !strings.HasSuffix(address, "0") && r.IntN(6) == 0:
			r.remove(address)
		default:
			r.resources[address] = makers[address]()
			r.resources[address]["count"] = 1
		}
	}
	// A score goes with its cluster.
	for address := range r.resources {
		if number, ok := strings.CutPrefix(address, "scheduler_placement_score.s"); ok && r.resources["scheduler_cluster.c"+number]["count"] == 0 {
			r.remove(address)
		}
	}
}

func (r *randomConfig) remove(address string) {
	d := maps.Clone(r.resources[address])
	d["count"] = 0
	r.resources[address] = d
}

// changed shows what resources were before and are now.
func (r *randomConfig) changed(before map[string]doc) string {
	var out strings.Builder
	for _, address := range slices.Sorted(maps.Keys(r.resources)) {
		from, _ := json.Marshal(before[address]) // a doc has nothing that fails
		to, _ := json.Marshal(r.resources[address])
		if string(from) != string(to) {
			fmt.Fprintf(&out, "%s\n  %s\n  %s\n", address, from, to)
		}
	}
	return out.String()
}

// layers are the types of resources, each of which may depend on those before it.
var layers = []string{
	"scheduler_move_window", "scheduler_metrics_provider", "scheduler_metric", "scheduler_cluster_set", "scheduler_cloud", "scheduler_openstack_project",
	"scheduler_cluster", "scheduler_placement_score", "scheduler_placement", "scheduler_propagation_policy", "scheduler_workload", "scheduler_magnum_cluster",
}

// makers draw the resources, by their addresses.
func (r *randomConfig) makers() map[string]func() doc {
	labels := func() doc { return doc{"tier": r.pick("gold", "iron"), "zone": r.pick("n", "s")} }
	metrics := func() []doc { return []doc{{"name": "m" + r.pick("0", "1"), "weight": 1 + r.IntN(3)}} }
	wants := func() []string { return r.some("tier is "+r.pick("gold", "iron"), "zone is "+r.pick("n", "s")) }
	makers := map[string]func() doc{
		"scheduler_metrics_provider.p0": func() doc {
			return doc{"name": "p0", "type": "static", "static": doc{"metrics": doc{"v0": r.IntN(10), "v1": r.IntN(10)}}}
		},
		"scheduler_cluster_set.s0": func() doc {
			return doc{"name": "s0", "namespaces": []string{"shop"}, "selector": doc{"match_labels": doc{"zone": r.pick("n", "s")}}}
		},
		"scheduler_propagation_policy.p0": func() doc {
			return doc{
				"name": "p0", "namespace": "shop", "preemption": r.pick("Always", "Never"), "priority": r.IntN(3),
				"workload_preemption": "LowerPriority",
				"resource_selectors":  []doc{{"api_version": "apps/v1", "kind": "Deployment", "name": "w0"}, {"api_version": "apps/v1", "kind": "Deployment", "name": "w1"}},
				"placement": doc{
					"cluster_affinity":   doc{"label_selector": doc{"match_labels": doc{"tier": r.pick("gold", "iron")}}},
					"replica_scheduling": doc{"type": "Divided", "division_preference": r.pick("Aggregated", "Weighted")},
				},
			}
		},
		"scheduler_magnum_cluster.g0": func() doc {
			return doc{"name": "g0", "namespace": "shop", "label_constraints": wants(), "wait": doc{"on_timeout": "warning"}}
		},
	}
	for i := range 2 {
		n := strconv.Itoa(i)
		makers["scheduler_move_window.w"+n] = func() doc {
			d := doc{"name": "w" + n, "label_selector": doc{"match_labels": labels()}}
			if r.IntN(2) == 0 {
				d["namespace"] = "shop"
			}
			if r.IntN(3) == 0 {
				d["effect"], d["schedule"], d["duration"] = "allow", "0 0 29 2 *", "1m"
			}
			return d
		}
		makers["scheduler_metric.m"+n] = func() doc {
			return doc{"name": "m" + n, "min": 0, "max": 10, "direction": r.pick("ascending", "descending"), "metrics_provider": doc{"name": "p0", "metric": "v" + n}}
		}
		makers["scheduler_cloud.c"+n] = func() doc { return doc{"name": "c" + n, "labels": labels(), "metrics": metrics()} }
		makers["scheduler_openstack_project.o"+n] = func() doc {
			return doc{"name": "o" + n, "namespace": "shop", "labels": labels(), "metrics": metrics(), "project_id": n, "template_id": "t"}
		}
		makers["scheduler_workload.w"+n] = func() doc {
			priority, replicas, cpu := r.IntN(2), r.IntN(6), r.pick("1", "2")
			if i == 0 {
				// Planned before the other one, it takes what it needs from it, and never waits for what the other one frees.
				priority, replicas, cpu = 2, r.IntN(3), "1"
			}
			return doc{
				"name": "w" + n, "namespace": "shop", "labels": labels(), "api_version": "apps/v1", "kind": "Deployment", "replicas": replicas,
				"replica_requests": doc{"cpu": cpu}, "priority": priority, "wait": doc{"on_timeout": "warning"},
			}
		}
	}
	for i := range 4 {
		n := strconv.Itoa(i)
		makers["scheduler_cluster.c"+n] = func() doc {
			d := doc{"name": "c" + n, "labels": labels(), "metrics": metrics(), "allocatable": doc{"cpu": strconv.Itoa(2 + r.IntN(8)), "memory": r.pick("0", "1Ti")}}
			if r.IntN(4) == 0 {
				d["taints"] = []doc{{"key": "k", "effect": r.pick("NoSelect", "NoSelectIfNew", "PreferNoSelect")}}
			}
			if r.IntN(3) == 0 {
				d["cloud_constraints"], d["wait"] = doc{"label_constraints": wants()}, doc{"on_timeout": "warning"}
			}
			return d
		}
		makers["scheduler_placement_score.s"+n] = func() doc {
			return doc{"cluster": "c" + n, "name": "s", "scores": doc{"v": r.IntN(100)}}
		}
		makers["scheduler_placement.p"+n] = func() doc {
			d := doc{
				"name": "p" + n, "namespace": "shop", "labels": labels(), "label_constraints": wants(), "number_of_clusters": 1 + r.IntN(3),
				"reschedule_after": "0s", "wait": doc{"on_timeout": "warning"}, // there may be none
			}
			switch r.IntN(4) {
			case 0:
				d["strategy"] = "prioritizers"
				d["prioritizer_policy"] = doc{"configurations": []doc{{"type": "addon", "resource_name": "s", "score_name": "v", "weight": 1 + r.IntN(3)}}}
			case 1:
				d["metric_constraints"] = []string{"m0 > " + strconv.Itoa(r.IntN(5))}
			case 2:
				d["cluster_sets"] = []string{"s0"}
			}
			if r.IntN(3) == 0 {
				d["resource_requests"] = doc{"memory": "1Gi"} // no placement waits until another makes room
			}
			return d
		}
	}
	return makers
}

// config returns the configuration in JSON syntax: each resource depends on those of the layers before, and those that
// decisions are made for one after another also on the one before.
//
// released says that something is made for each cluster of a decision.
func (r *randomConfig) config(released bool) doc {
	byType, outputs := map[string]map[string]doc{}, doc{}
	var before, layer []string
	for _, kind := range layers {
		serial := slices.Contains([]string{"scheduler_placement", "scheduler_workload"}, kind)
		layer = nil
		for _, address := range slices.Sorted(maps.Keys(r.resources)) {
			typ, name, _ := strings.Cut(address, ".")
			if typ != kind {
				continue
			}
			d := maps.Clone(r.resources[address])
			dependsOn := append([]string{}, before...) // never null
			if serial {
				dependsOn = append(dependsOn, layer...)
			}
			d["depends_on"] = dependsOn
			if byType[typ] == nil {
				byType[typ] = map[string]doc{}
			}
			byType[typ][name] = d
			layer = append(layer, address)
		}
		before = append(before, layer...)
	}
	follow := map[string]doc{}
	for _, address := range r.decisions() {
		typ, name, _ := strings.Cut(address, ".")
		attribute := map[string]string{"scheduler_cluster": "cloud", "scheduler_placement": "clusters", "scheduler_workload": "clusters", "scheduler_magnum_cluster": "project"}[typ]
		if attribute == "" {
			continue // the workloads in the bindings of a policy depend on it, not it on them
		}
		expression := fmt.Sprintf("${one(%s[*].%s)}", address, attribute)
		id := strings.TrimPrefix(typ, "scheduler_") + "_" + name
		outputs[id] = doc{"value": expression}
		follow[id] = doc{"input": expression}
	}
	if released {
		follow["release"] = doc{"for_each": "${toset(scheduler_placement.p0[0].clusters)}"}
	}
	byType["terraform_data"] = follow
	return doc{"resource": byType, "output": outputs}
}

// decisions returns the addresses of everything that is decided.
func (r *randomConfig) decisions() []string {
	var out []string
	for _, address := range slices.Sorted(maps.Keys(r.resources)) {
		switch typ, _, _ := strings.Cut(address, "."); typ {
		case "scheduler_cluster", "scheduler_placement", "scheduler_workload", "scheduler_propagation_policy", "scheduler_magnum_cluster":
			out = append(out, address)
		}
	}
	return out
}
