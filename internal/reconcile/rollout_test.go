package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// scenes plays decisions that change in steps.
type scene struct {
	*world
	t   *testing.T
	p   *planner
	now time.Time
	key api.Key
}

// newScene has the clusters blue-1, blue-2, green-1, green-2 and green-3, of two generations.
func newScene(t *testing.T) *scene {
	s := &scene{world: newWorld(), t: t, p: newPlanner(discard()), now: epoch}
	for _, name := range []string{"blue-1", "blue-2", "green-1", "green-2", "green-3"} {
		generation, number, _ := strings.Cut(name, "-")
		s.write(s.p, cluster(name, map[string]string{"generation": generation, "number": number}))
	}
	return s
}

// placed writes a placement of two clusters of a generation.
func (s *scene) placed(generation string, rollout *api.Rollout) *scene {
	s.key = api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	s.write(s.p, newPlacement("web", 2, func(spec *api.PlacementSpec) {
		spec.LabelConstraints, spec.Rollout = []string{"generation is " + generation}, rollout
	}))
	return s
}

// divided writes a workload with 6 replicas, divided over the clusters of a generation.
func (s *scene) divided(generation string, rollout *api.Rollout) *scene {
	s.key = api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}
	s.write(s.p, &api.PropagationPolicy{Metadata: api.Metadata{Name: "web", Namespace: "shop"}, Spec: api.PropagationPolicySpec{
		ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
		Placement: api.PropagationPlacement{
			ClusterAffinity:   &api.ClusterAffinity{LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"generation": generation}}, ExcludeClusters: []string{"green-3"}},
			ReplicaScheduling: &api.ReplicaScheduling{},
		},
		Rollout: rollout,
	}})
	if s.objects[s.key] == nil {
		s.write(s.p, &api.Workload{Metadata: api.Metadata{Name: "web", Namespace: "shop"}, Spec: api.WorkloadSpec{
			APIVersion: "apps/v1", Kind: "Deployment", Replicas: ptr(int64(6)), ReplicaRequests: api.Quantities{"cpu": "1"},
		}})
	}
	return s
}

func (s *scene) row(cluster string) int {
	row, _ := s.p.fleet.Row(cluster)
	return row
}

// pass lets time pass, and everything be decided.
func (s *scene) pass(after time.Duration) *scene {
	s.now = s.now.Add(after)
	s.p.pass(s.now)
	return s
}

// expect checks what stands: names of clusters, with replicas if it is a workload, and what is waited for.
func (s *scene) expect(want string, waiting api.RolloutWait) *scene {
	s.t.Helper()
	d, err := s.p.attended(s.key)
	if err != nil {
		s.t.Fatal(err)
	}
	at, _ := whereIs(d.result())
	var stands []string
	for _, name := range slices.Sorted(slices.Values(at.clusters)) {
		if n, ok := at.replicas[name]; ok {
			name += fmt.Sprintf(":%d", n)
		}
		stands = append(stands, name)
	}
	r := d.underway()
	if got := strings.Join(stands, " "); got != want || (r == nil) != (waiting == "") || r != nil && r.WaitingFor != waiting {
		s.t.Fatalf("after %s: %q stand, want %q; rollout %+v, want one that waits for %q", s.now.Sub(epoch), got, want, r, waiting)
	}
	if c := api.FindCondition(*api.ConditionsOf(d.result()), api.ConditionRollingOut); (c == nil) != (r == nil) {
		s.t.Fatalf("condition %+v with rollout %+v", c, r)
	}
	return s
}

func (s *scene) report(cluster string, status api.HealthStatus) *scene {
	s.t.Helper()
	d, err := s.p.attended(s.key)
	if err != nil || !d.runsOn(cluster) {
		s.t.Fatalf("%s does not run on %s: %v", s.key, cluster, err)
	}
	s.now = s.now.Add(time.Millisecond)
	d.report(s.p, api.HealthReport{Cluster: cluster, Status: status}, s.now)
	return s.pass(0)
}

// restart continues with another planner, which has read everything from the store.
func (s *scene) restart() *scene {
	s.t.Helper()
	all := s.afterPass(s.p)
	for key, object := range all {
		text, err := json.Marshal(object)
		if err != nil {
			s.t.Fatal(err)
		}
		read, err := api.Decode(text)
		if err != nil {
			s.t.Fatal(err)
		}
		all[key] = read
	}
	next, rests := replay(all, time.Time{}, s.now)
	if !rests {
		s.t.Fatalf("the restart changes a decision: %+v", next.known(s.key).result())
	}
	s.p, s.specs = next, map[api.Key]int64{}
	return s
}

func TestRolloutOfPlacements(t *testing.T) {
	byCluster := &api.Rollout{Health: api.HealthCluster}
	reported := &api.Rollout{Health: api.HealthReported}
	for name, play := range map[string]func(s *scene){
		"one by one": func(s *scene) {
			s.placed("blue", byCluster).pass(0).expect("blue-1 blue-2", "")
			s.placed("green", byCluster).pass(time.Second)
			d, _ := s.p.attended(s.key)
			first := d.underway().Moves[0].Cluster
			if got, _ := whereIs(d.result()); len(got.clusters) != 3 || !slices.Contains(got.clusters, first) {
				s.t.Fatalf("%v stand", got.clusters)
			}
			if at := s.p.nextAt(); !at.Equal(s.now.Add(time.Minute)) {
				s.t.Fatalf("looks again at %s, want in a minute", at)
			}
			s.pass(time.Minute).restart().pass(time.Minute)
			if d, _ = s.p.attended(s.key); d.underway() != nil {
				s.t.Fatalf("not done: %+v", d.underway())
			}
		},
		"a restart forgets nothing": func(s *scene) {
			all := &api.Rollout{Health: api.HealthReported, MaxConcurrent: "100%"}
			s.placed("blue", all).pass(0)
			s.write(s.p, cluster("green-3", nil))
			s.placed("green", all).pass(time.Second).expect("blue-1 blue-2 green-1 green-2", api.WaitHealth).
				restart().report("green-1", api.Healthy).restart().pass(time.Minute).report("green-2", api.Healthy).restart().
				pass(time.Minute)
			s.expect("green-1 green-2", "")
		},
		"a cluster that is lost is left at once": func(s *scene) {
			s.placed("blue", reported).pass(0)
			s.write(s.p, cluster("green-3", nil))
			s.placed("green", reported).pass(time.Second)
			lost := cluster("blue-1", map[string]string{"generation": "blue"})
			lose(lost, s.now)
			s.write(s.p, lost)
			s.pass(time.Second)
			d, _ := s.p.attended(s.key)
			if at, _ := whereIs(d.result()); slices.Contains(at.clusters, "blue-1") || len(at.clusters) != 2 {
				s.t.Fatalf("%v stand", at.clusters)
			}
		},
		"a cluster that is paused before its step is replaced": func(s *scene) {
			approved := &api.Rollout{Approval: api.ApprovalStep}
			s.placed("blue", approved).pass(0)
			s.placed("green", approved).pass(time.Second).expect("blue-1 blue-2", api.WaitApproval)
			d, _ := s.p.attended(s.key)
			target := d.underway().Target[0].Cluster
			paused := cluster(target, map[string]string{"generation": "green"})
			paused.Spec.Paused = true
			s.write(s.p, paused)
			s.pass(time.Second).expect("blue-1 blue-2", api.WaitApproval)
			if r := d.underway(); r.Targets(target) || r.Revision != 2 {
				s.t.Fatalf("rollout %+v, want another one without %s", r, target)
			}
		},
		"without rules the rest happens at once": func(s *scene) {
			s.placed("blue", reported).pass(0)
			s.write(s.p, cluster("green-3", nil))
			s.placed("green", reported).pass(time.Second)
			s.placed("green", nil).pass(time.Second).expect("green-1 green-2", "")
		},
		"what is meant and what stands are reserved": func(s *scene) {
			s.key = api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
			spec := func(generation string) *api.Placement {
				return newPlacement("web", 1, func(spec *api.PlacementSpec) {
					spec.LabelConstraints, spec.Rollout = []string{"generation is " + generation}, &api.Rollout{Approval: api.ApprovalStep}
					spec.ResourceRequests = api.Quantities{"cpu": "3"}
				})
			}
			for _, name := range []string{"blue-1", "green-1"} {
				c := cluster(name, map[string]string{"generation": strings.TrimSuffix(name, "-1")})
				c.Spec.Allocatable = api.Quantities{"cpu": "4"}
				s.write(s.p, c)
			}
			s.write(s.p, spec("blue"))
			s.pass(0)
			s.write(s.p, spec("green"))
			s.pass(time.Second).expect("blue-1", api.WaitApproval)
			if d, _ := s.p.attended(s.key); !d.underway().Targets("green-1") || s.p.reserved.Column("cpu")[s.row("green-1")] != 3000 {
				s.t.Fatalf("%+v is under way, and %v is reserved", d.underway(), s.p.reserved.Column("cpu"))
			}
			other := newPlacement("other", -1, func(spec *api.PlacementSpec) { spec.ResourceRequests = api.Quantities{"cpu": "2"} })
			s.write(s.p, other)
			s.pass(time.Second)
			if d, _ := s.p.attended(api.KeyOf(other)); len(d.result().(*api.Placement).Status.Clusters) != 0 {
				s.t.Fatalf("another placement took what is reserved: %+v", d.result())
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			play(s)
			checkSettled(t, s.p, s.now)
		})
	}
}

func TestRolloutOfWorkloads(t *testing.T) {
	for name, play := range map[string]func(s *scene){
		"replicas leave when those that replace them are healthy": func(s *scene) {
			one := &api.Rollout{Health: api.HealthReported}
			s.divided("blue", one).pass(0).expect("blue-1:3 blue-2:3", "")
			s.divided("green", one).pass(time.Second).expect("blue-1:3 blue-2:3 green-1:3", api.WaitHealth).
				report("green-1", api.Healthy).restart().pass(time.Minute).expect("blue-1:3 green-1:3 green-2:3", api.WaitHealth).
				report("green-2", api.Unhealthy).expect("blue-1:3 green-1:3 green-2:3", api.WaitRetry).
				pass(time.Hour).expect("blue-1:3 green-1:3 green-2:3", api.WaitRetry).
				report("green-2", api.Healthy).pass(time.Minute).expect("green-1:3 green-2:3", "").restart()
		},
		"a lost cluster is evicted at once": func(s *scene) {
			one := &api.Rollout{Health: api.HealthReported}
			s.divided("blue", one).pass(0)
			s.divided("green", one).pass(time.Second)
			lost := cluster("blue-1", map[string]string{"generation": "blue"})
			lose(lost, s.now)
			s.write(s.p, lost)
			s.pass(time.Second).expect("blue-2:3 green-1:3", api.WaitHealth)
		},
		"the policy is gone": func(s *scene) {
			one := &api.Rollout{Approval: api.ApprovalStep}
			s.divided("blue", one).pass(0)
			s.divided("green", one).pass(time.Second).expect("blue-1:3 blue-2:3", api.WaitApproval)
			s.remove(s.p, api.Key{Kind: api.KindPropagationPolicy, Namespace: "shop", Name: "web"})
			s.pass(time.Second).expect("blue-1:3 blue-2:3", "")
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := newScene(t)
			play(s)
			for _, w := range s.p.bindings.workloads {
				checkIndexes(t, s.p, w)
			}
		})
	}
}
