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

// rated makes web one of the prioritizers strategy: by the score of its clusters, and by a builtin of weight 1.
func rated(builtin string, wanted, scoreWeight int64, change ...func(*api.PlacementSpec)) *api.Placement {
	return newPlacement("web", wanted, append(change, func(s *api.PlacementSpec) {
		byScore(s)
		one := int64(1)
		s.PrioritizerPolicy.Configurations[0].Weight = &scoreWeight
		s.PrioritizerPolicy.Configurations = append(s.PrioritizerPolicy.Configurations,
			api.PrioritizerConfig{Type: api.PrioritizerBuiltin, Name: builtin, Weight: &one})
	})...)
}

// TestAPlacementFollowsTheHighestCount has a cluster that a placement may not use get as many decisions as the one that
// had the most. The placement does not count its own decision there, so the scale of its balance is another one.
func TestAPlacementFollowsTheHighestCount(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	for name, value := range map[string]int64{"a": 100, "b": 0, "c": 80, "e": -80} {
		w.write(p, cluster(name, nil))
		w.write(p, newScore(name, value, time.Time{}))
	}
	pin := func(name, cluster string) {
		w.write(p, newPlacement(name, 1, func(s *api.PlacementSpec) { s.ClusterNames = []string{cluster} }))
	}
	for i, on := range []string{"a", "a", "b", "b", "c", "c"} {
		pin(fmt.Sprintf("pin%d", i), on)
	}
	p.pass(epoch)
	w.write(p, rated(api.PrioritizerBalance, 2, 1, func(s *api.PlacementSpec) { s.ClusterNames = []string{"a", "c", "e"} }))
	p.pass(epoch)
	wantClusters(t, p, "the most are 2: e 100 - 80, a -100 + 100, c -100 + 80", "e", "a")
	pin("pin6", "b")
	p.pass(epoch)
	wantClusters(t, p, "the most are 3: a -33 + 100, c -33 + 80, e 100 - 80", "a", "c")
}

// TestAPlacementFollowsTheScaleOfWhatIsLeft adds a cluster to the candidates of a placement that has as many CPUs as the
// others, and the least left: what the others have left differs less then.
func TestAPlacementFollowsTheScaleOfWhatIsLeft(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	put := func(name, zone string) {
		c := sized(name, "10")
		c.Metadata.Labels = map[string]string{"zone": zone}
		w.write(p, c)
	}
	put("a", "x")
	put("b", "x")
	put("c", "y")
	for name, cpu := range map[string]api.Quantity{"a": "4", "b": "6", "c": "10"} {
		w.write(p, newPlacement("on-"+name, 1, func(s *api.PlacementSpec) {
			s.ClusterNames, s.ResourceRequests = []string{name}, api.Quantities{"cpu": cpu}
		}))
	}
	for name, value := range map[string]int64{"a": 0, "b": 50, "c": -100} {
		w.write(p, newScore(name, value, time.Time{}))
	}
	w.write(p, rated(api.PrioritizerAvailableCPU, 1, 2, func(s *api.PlacementSpec) { s.LabelConstraints = []string{"zone is x"} }))
	p.pass(epoch)
	wantClusters(t, p, "left are 6 and 4: a 100, b -100 + 100", "a")
	put("c", "x")
	p.pass(epoch)
	wantClusters(t, p, "left are 6, 4 and 0: a 100, b 33 + 100", "b")
}
