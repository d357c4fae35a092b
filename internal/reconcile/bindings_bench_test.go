package reconcile

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/cputime"
)

// boundWorld creates workloads on 1,000 clusters in ten regions. There are 300 policies with four ways to divide, each
// with a near group of one region and a far group of three. room is the capacity of a cluster in CPUs.
func boundWorld(workloads int, room string, change ...func(*api.PropagationPolicySpec)) (*world, *planner) {
	w, p := newWorld(), newPlanner(discard())
	for i := range 1_000 {
		w.write(p, regional(i, room))
	}
	for i := range 300 {
		near, far := regionsFrom(i, 1), regionsFrom(i+1, 3)
		w.write(p, policy(fmt.Sprintf("p%03d", i), func(s *api.PropagationPolicySpec) {
			s.ResourceSelectors[0].LabelSelector = &api.LabelSelector{MatchLabels: map[string]string{"class": fmt.Sprintf("p%03d", i)}}
			s.Placement.ClusterAffinities = []api.AffinityTerm{
				{AffinityName: "near", ClusterAffinity: near}, {AffinityName: "far", ClusterAffinity: far},
			}
			s.Placement.ReplicaScheduling = []*api.ReplicaScheduling{
				dynamic(), {DivisionPreference: api.Aggregated}, {}, {Type: api.Duplicated},
			}[i%4]
			for _, c := range change {
				c(s)
			}
			if i%4 == 3 {
				s.Placement.SpreadConstraints = []api.GroupConstraint{{SpreadByField: api.GroupByCluster, MaxGroups: ptr(int64(3))}}
			}
		}))
	}
	for i := range workloads {
		w.write(p, workload(fmt.Sprintf("w%05d", i), int64(2+i/300%7), func(w *api.Workload) {
			w.Metadata.Labels = map[string]string{"class": fmt.Sprintf("p%03d", i%300)}
			w.Spec.ReplicaRequests = api.Quantities{"cpu": api.Quantity(fmt.Sprintf("%dm", 100+i%400))}
		}))
	}
	return w, p
}

func regional(i int, room string) *api.Cluster {
	c := sized(fmt.Sprintf("c%04d", i), room)
	c.Spec.Region = fmt.Sprintf("r%d", i%10)
	return c
}

func regionsFrom(first, n int) api.ClusterAffinity {
	r := api.FieldRequirement{Key: api.GroupByRegion, Operator: api.SelectorIn}
	for i := range n {
		r.Values = append(r.Values, fmt.Sprintf("r%d", (first+i)%10))
	}
	return api.ClusterAffinity{FieldSelector: []api.FieldRequirement{r}}
}

// waiting counts the workloads without a binding.
func waiting(p *planner) int {
	n := 0
	for _, w := range p.bindings.workloads {
		if w.pending {
			n++
		}
	}
	return n
}

// BenchmarkBindAll binds 20,000 workloads, excluding the cost of the fleet itself. Target: 2 s.
func BenchmarkBindAll(b *testing.B) {
	b.ReportAllocs()
	total := time.Duration(0)
	for b.Loop() {
		b.StopTimer()
		_, p := boundWorld(20_000, "64")
		p.advance(epoch)
		b.StartTimer()
		begin := cputime.Used(b)
		p.pass(epoch)
		total += cputime.Used(b) - begin
		b.StopTimer()
		if n := waiting(p); n > 0 {
			b.Fatalf("%d workloads are pending, want none: there is enough room", n)
		}
		b.StartTimer()
	}
	b.ReportMetric(float64(total)/float64(b.N), "cpu-ns/op")
}

// BenchmarkClusterLost removes and restores one of 1,000 clusters, with 20,000 workloads. Target: 100 ms.
func BenchmarkClusterLost(b *testing.B) {
	w, p := boundWorld(20_000, "64")
	p.pass(epoch)
	now, i, moved := epoch, 0, 0
	b.ReportAllocs()
	begin := cputime.Used(b)
	for b.Loop() {
		lost := regional(i*37%1_000, "64")
		lost.Status.State = api.StateOffline
		w.write(p, lost)
		now = now.Add(time.Second)
		moved += len(p.pass(now))
		for w := range p.bindings.occupants[lost.Metadata.Name] {
			if slices.Contains(w.status.Names(), lost.Metadata.Name) {
				b.Fatalf("%s is still on the lost cluster", w.key())
			}
		}
		w.write(p, regional(i*37%1_000, "64"))
		now = now.Add(time.Second)
		p.pass(now)
		i++
	}
	b.ReportMetric(float64(cputime.Used(b)-begin)/float64(b.N), "cpu-ns/op")
	b.ReportMetric(float64(moved)/float64(b.N), "moved/op")
}

// BenchmarkReportWhileManyWait lets one cluster report slightly more or less capacity than before, while thousands of
// workloads wait for more than any cluster has. In "preempting", they could preempt others, but none has a lower
// priority. If the agents of 1,000 clusters report every ten seconds, this happens a hundred times a second, so it must
// take at most a millisecond.
func BenchmarkReportWhileManyWait(b *testing.B) {
	for _, sort := range []string{"more", "less", "preempting"} {
		b.Run(sort, func(b *testing.B) {
			w, p := boundWorld(20_000, "16", func(s *api.PropagationPolicySpec) {
				if sort == "preempting" {
					s.WorkloadPreemption = api.WorkloadPreemptionLowerPriority
				}
			})
			p.pass(epoch)
			n := waiting(p)
			if n < 1_000 {
				b.Fatalf("only %d workloads are pending", n)
			}
			now, i := epoch, 0
			b.ReportAllocs()
			b.ResetTimer()
			begin := cputime.Used(b)
			for b.Loop() {
				step := 1 + i/1_000 // milli-CPUs, another value each time
				if sort == "less" {
					step = -step
				}
				w.write(p, regional(i%1_000, fmt.Sprintf("%dm", 16_000+step)))
				now = now.Add(10 * time.Millisecond)
				p.pass(now)
				i++
			}
			b.ReportMetric(float64(cputime.Used(b)-begin)/float64(b.N), "cpu-ns/op")
			b.ReportMetric(float64(n), "waiting")
		})
	}
}
