package httpapi

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// world generates clusters, policies and workloads. The same seed generates the same ones.
type world struct{ random *rand.Rand }

func (w world) oneOf(texts ...string) string { return texts[w.random.IntN(len(texts))] }

func (w world) cluster() string {
	allocatable := w.oneOf("", `,"allocatable":{"cpu":"3"}`, `,"allocatable":{"cpu":"20","pods":"6"}`, `,"allocatable":{"cpu":"100"}`)
	return fmt.Sprintf(`{"metadata":{"labels":{"tier":"%s"}},"spec":{"region":"%s","zones":["%s"]%s%s}}`,
		w.oneOf("gold", "lead"), w.oneOf("eu", "us"), w.oneOf("a", "b", "c"), allocatable,
		w.oneOf("", "", "", `,"taints":[{"key":"broken","effect":"NoSelect"}]`, `,"taints":[{"key":"full","effect":"NoSelectIfNew"}]`))
}

func (w world) workload(namespace, name string) string {
	replicas := w.oneOf("", fmt.Sprintf(`,"replicas":%d`, w.random.IntN(9)), fmt.Sprintf(`,"replicas":%d`, w.random.IntN(30)))
	return fmt.Sprintf(`{"kind":"workload","metadata":{"namespace":"%s","name":"%s","labels":{"app":"%s"}},"spec":{"api_version":"apps/v1","kind":"Deployment"%s%s,"priority":%d}}`,
		namespace, name, w.oneOf("x", "y"), replicas, w.oneOf("", `,"replica_requests":{"cpu":"1"}`), w.random.IntN(2))
}

func (w world) affinity() string {
	return w.oneOf(`"cluster_names":["c0","c1","c2"]`, `"label_selector":{"match_labels":{"tier":"gold"}}`,
		`"field_selector":[{"key":"region","operator":"In","values":["eu"]}]`, `"field_selector":[{"key":"zone","operator":"NotIn","values":["a"]}]`)
}

func (w world) policy(namespace, name string) string {
	metadata := `"name":"` + name + `"`
	if namespace != "" {
		metadata += `,"namespace":"` + namespace + `"`
	}
	where := w.oneOf("", `"cluster_affinity":{`+w.affinity()+`},`,
		`"cluster_affinities":[{"affinity_name":"first",`+w.affinity()+`},{"affinity_name":"second",`+w.affinity()+`},{"affinity_name":"rest"}],`)
	how := w.oneOf(`{"type":"Duplicated"}`, `{"type":"Divided"}`, `{"division_preference":"Aggregated"}`, `{"weight_preference":{"dynamic_weight":"AvailableReplicas"}}`,
		`{"weight_preference":{"static_weights":[{"affinity":{`+w.affinity()+`},"weight":3},{"weight":1}]}}`)
	spread := w.oneOf("[]", "[]", `[{"max_groups":2}]`, `[{"min_groups":2}]`, `[{"spread_by_field":"region","min_groups":2},{"spread_by_field":"cluster"}]`)
	return fmt.Sprintf(`{"kind":"propagation_policy","metadata":{%s},"spec":{"resource_selectors":[{"api_version":"apps/v1","kind":"Deployment"%s}],"placement":{%s"replica_scheduling":%s,"spread_constraints":%s},"priority":%d%s%s}}`,
		metadata, w.oneOf("", "", `,"label_selector":{"match_labels":{"app":"x"}}`), where, how, spread, w.random.IntN(3),
		w.oneOf("", `,"failover":{"cluster":{"purge_mode":"Directly"}}`), w.oneOf("", "", `,"workload_preemption":"LowerPriority"`))
}

// If nothing else changes in the fleet, a write commits exactly what was previewed, and later decisions change nothing.
func TestWritesCommitWhatWasPreviewed(t *testing.T) {
	t.Parallel()
	s := startEndToEnd(t, store.Options{DataDir: t.TempDir(), NoFsync: true})
	for seed := range uint64(40) {
		w := world{rand.New(rand.NewPCG(seed, 4))}
		namespace := fmt.Sprintf("n%d", seed)
		for i := range 6 {
			s.mustPut(fmt.Sprintf("/v1/clusters/c%d", i), w.cluster())
		}
		for step := range 6 {
			name := fmt.Sprintf("w%d", w.random.IntN(3))
			path, body := "/v1/namespaces/"+namespace+"/workloads/"+name, w.workload(namespace, name)
			switch w.random.IntN(4) {
			case 0:
				path, body = "/v1/propagation-policies/all", w.policy("", "all")
			case 1:
				name = fmt.Sprintf("p%d", w.random.IntN(2))
				path, body = "/v1/namespaces/"+namespace+"/propagation-policies/"+name, w.policy(namespace, name)
			}
			p := s.mustPreview(body)
			a := s.do(http.MethodPut, path, body, "Preview-Token", p.Token)
			if a.StatusCode >= 300 {
				t.Fatalf("seed %d, step %d: %s\n%d %s", seed, step, body, a.StatusCode, a.body)
			}
			expect := func(path string, want map[string]int64) {
				status := s.statusOf(path)
				if got := status.ReplicasByCluster(); !maps.Equal(got, want) {
					t.Errorf("seed %d, step %d: %s\n%s has %v, previewed %v", seed, step, body, path, got, want)
				}
			}
			if p.Kind == api.KindWorkload {
				expect(path, p.Replicas)
				continue
			}
			shown := bindingsOf(decodeAs[api.PropagationPolicy](t, a))
			var claimed []string
			for _, b := range p.Bindings {
				expect(urlOf(b.Workload), b.Replicas)
				if b.Claimed {
					claimed = append(claimed, b.Workload)
				}
			}
			if got := strings.Join(claimed, " "); got != shown {
				t.Errorf("seed %d, step %d: %s\nthe policy has %q, previewed %q", seed, step, body, shown, got)
			}
		}
		// Clean up for the next round.
		for _, kind := range []api.Kind{api.KindWorkload, api.KindPropagationPolicy} {
			for entry := range s.fleet.Snapshot().All(kind, "") {
				s.do(http.MethodDelete, api.KeyOf(entry.Object).URLPath(), "")
			}
		}
	}
}
