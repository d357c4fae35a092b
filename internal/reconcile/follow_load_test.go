package reconcile

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestPlannerFollowsTheDecisionsOfOthers drives a planner with placements that count the decisions of others, on few
// clusters, so that one often moves because others did. After each pass, no decision is stale, and a server that was
// killed before the pass, one that takes over, and a simulation have the same decisions.
func TestPlannerFollowsTheDecisionsOfOthers(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		now := epoch
		clusters := rapid.IntRange(2, 5).Draw(t, "clusters")
		name := rapid.Custom(func(t *rapid.T) string { return fmt.Sprintf("c%d", rapid.IntRange(0, clusters-1).Draw(t, "cluster")) })
		putCluster := func(t *rapid.T, name string) {
			c := cluster(name, map[string]string{"zone": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "zone")})
			c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(fmt.Sprint(rapid.IntRange(2, 9).Draw(t, "cpu")))}
			c.Spec.Capacity = c.Spec.Allocatable
			w.write(p, c)
		}
		putScore := func(t *rapid.T, cluster string) {
			w.write(p, newScore(cluster, rapid.Int64Range(0, 5).Draw(t, "score")*20, time.Time{}))
		}
		for i := range clusters {
			putCluster(t, fmt.Sprintf("c%d", i))
			putScore(t, fmt.Sprintf("c%d", i))
		}
		builtin := func(name string, least, most int64) api.PrioritizerConfig {
			return api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: name, Weight: ptr(rapid.Int64Range(least, most).Draw(t, "weight"))}
		}
		mindful := func(s *api.PlacementSpec) {
			byScore(s)
			policy := s.PrioritizerPolicy
			switch rapid.IntRange(0, 9).Draw(t, "policy") {
			case 0:
				policy.Mode, policy.Configurations[0].Weight = api.ModeAdditive, ptr(int64(3))
			case 1:
				policy.Configurations = append(policy.Configurations, builtin(api.PrioritizerBalance, -2, -1))
			case 2, 3:
				policy.Configurations = append(policy.Configurations, builtin(api.PrioritizerAvailableCPU, -1, 1))
				s.ResourceRequests = rapid.SampledFrom([]api.Quantities{nil, {"cpu": "1"}, {"cpu": "2"}}).Draw(t, "requests")
			default:
				policy.Configurations = append(policy.Configurations, builtin(api.PrioritizerBalance, 1, 3))
			}
			if rapid.IntRange(0, 3).Draw(t, "spread") == 0 {
				s.SpreadConstraints = []api.SpreadConstraint{{
					Type: api.SpreadLabel, TopologyKey: "zone",
					WhenUnsatisfiable: rapid.SampledFrom([]api.Unsatisfiable{api.DoNotSchedule, api.ScheduleAnyway}).Draw(t, "hard"),
				}}
			}
		}
		t.Repeat(map[string]func(*rapid.T){
			"placement": func(t *rapid.T) {
				w.write(p, newPlacement(fmt.Sprintf("p%d", rapid.IntRange(0, 9).Draw(t, "placement")), rapid.Int64Range(1, 3).Draw(t, "wanted"), mindful))
			},
			"on one cluster": func(t *rapid.T) {
				w.write(p, newPlacement(fmt.Sprintf("q%d", rapid.IntRange(0, 5).Draw(t, "placement")), 1, func(s *api.PlacementSpec) {
					s.ClusterNames = []string{name.Draw(t, "name")}
					s.ResourceRequests = rapid.SampledFrom([]api.Quantities{nil, {"cpu": "1"}}).Draw(t, "requests")
				}))
			},
			"no placement": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: rapid.SampledFrom([]string{"p0", "p5", "q0", "q1", "q2"}).Draw(t, "name")})
			},
			"score":   func(t *rapid.T) { putScore(t, name.Draw(t, "name")) },
			"cluster": func(t *rapid.T) { putCluster(t, name.Draw(t, "name")) },
			"no cluster": func(t *rapid.T) {
				w.remove(p, api.Key{Kind: api.KindCluster, Name: name.Draw(t, "name")})
			},
			"": func(t *rapid.T) {
				if rapid.IntRange(0, 2).Draw(t, "wait") == 0 {
					return // for further changes in the same pass
				}
				now = now.Add(time.Second)
				p.pass(now)
				checkSettled(t, p, now)
				checkKilled(t, w, p, now)
				checkFork(t, w, p, now)
				checkSecond(t, w, p, now)
			},
		})
	})
}
