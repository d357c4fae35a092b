//go:build integration

package integration

import (
	"fmt"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// TestDistributionRollouts changes the templates and sizes of workloads with a split: the split holds at the end of
// each. It also creates workloads while the server is down: they run nevertheless, and are corrected when it is back.
func TestDistributionRollouts(t *testing.T) {
	t.Parallel()
	s := startSplitCluster(t, 2, 2)
	s.startServer()
	s.register()
	s.namespace("rollout", nil)
	web := s.create(manifest{workloadID: workloadID{"Deployment", "rollout", "web"}, replicas: 10, labels: enabled("custom", "3"), readyAfter: pause / 3})
	safe := s.create(manifest{workloadID: workloadID{"Deployment", "rollout", "safe"}, replicas: 5, labels: enabled("all-in-on-demand", ""), readyAfter: pause / 3})
	db := s.create(manifest{workloadID: workloadID{"StatefulSet", "rollout", "db"}, replicas: 5, labels: enabled("", ""), readyAfter: pause / 3})
	split := func() {
		t.Helper()
		s.reaches(web, 3, 7)
		s.reaches(safe, 5, 0)
		s.reaches(db, 3, 2)
	}
	split()
	s.run("rollouts", func(t *testing.T) {
		for i := range 2 {
			before := map[string]bool{}
			for _, w := range []workloadID{web, safe, db} {
				for _, pod := range s.podsOf(w) {
					before[pod.template] = true
				}
				s.rollOut(w, fmt.Sprint("v", i))
			}
			for _, w := range []workloadID{web, safe, db} {
				s.becomes(w, func(c counts) bool {
					for _, pod := range s.podsOf(w) {
						if before[pod.template] {
							return false
						}
					}
					return c.complete()
				}, "rolled out")
			}
			split()
		}
		// During the rollouts, pods for on-demand nodes only never ran elsewhere.
		if most := s.most(safe, spotNode); most > 0 {
			t.Errorf("%s had %d pods for spot nodes at a time, want none", safe, most)
		}
	})
	s.run("a rollout right after a change of mode", func(t *testing.T) {
		s.relabel(web, "custom", "6")
		s.rollOut(web, "both")
		s.reaches(web, 6, 4)
		s.relabel(web, "custom", "3")
		s.reaches(web, 3, 7)
	})
	s.run("sizes", func(t *testing.T) {
		for _, size := range []struct{ replicas, web, safe, db int }{
			{12, 3, 12, 7}, {4, 3, 4, 3}, {2, 2, 2, 2}, {1, 1, 1, 1}, {0, 0, 0, 0}, {5, 3, 5, 3},
		} {
			for _, w := range []workloadID{web, safe, db} {
				s.scale(w, size.replicas)
			}
			s.reaches(web, size.web, size.replicas-size.web)
			s.reaches(safe, size.safe, size.replicas-size.safe)
			s.reaches(db, size.db, size.replicas-size.db)
		}
	})
	s.run("a smaller size", func(t *testing.T) { s.smaller(t) })
	s.run("the server is down", func(t *testing.T) { s.outage(t) })
}

// smaller scales workloads down: because of the pods' deletion costs, the controllers delete those that are too many,
// and nothing is replaced.
func (s *splitCluster) smaller(t *testing.T) {
	few := s.create(manifest{workloadID: workloadID{"Deployment", "rollout", "few"}, replicas: 10, labels: enabled("custom", "3")})
	most := s.create(manifest{workloadID: workloadID{"Deployment", "rollout", "most"}, replicas: 10, labels: enabled("majority-in-on-demand", "")})
	s.reaches(few, 3, 7)
	s.reaches(most, 6, 4)
	for _, size := range []struct{ replicas, few, most int }{{6, 3, 4}, {4, 3, 3}, {2, 2, 2}} {
		s.scale(few, size.replicas)
		s.scale(most, size.replicas)
		s.reaches(few, size.few, size.replicas-size.few)
		s.reaches(most, size.most, size.replicas-size.most)
	}
	s.ended(few, 0, "")
	t.Logf("%d pods of the workload whose targets of both types changed were replaced", len(s.replaced(most)))
}

// outage kills the server, and creates and changes workloads in the meantime.
func (s *splitCluster) outage(t *testing.T) {
	s.namespace("outage", nil)
	before := s.create(manifest{workloadID: workloadID{"Deployment", "outage", "before"}, replicas: 4, labels: enabled("custom", "1"), readyAfter: pause})
	s.reaches(before, 1, 3)
	s.server.kill()
	s.relabel(before, "custom", "3")
	web := s.create(manifest{workloadID: workloadID{"Deployment", "outage", "web"}, replicas: 6, labels: enabled("custom", "2"), readyAfter: pause})
	db := s.create(manifest{workloadID: workloadID{"StatefulSet", "outage", "db"}, replicas: 3, labels: enabled("all-in-on-demand", ""), readyAfter: pause})
	for _, w := range []workloadID{web, db} {
		s.becomes(w, func(c counts) bool { return c.complete() && c.otherLabels == c.wanted }, "complete without a split")
	}
	s.startServer()
	for w, onDemand := range map[workloadID]int{web: 2, db: 3, before: 3} {
		s.becomes(w, func(c counts) bool {
			return c.complete() && c.onDemandNodes == onDemand && c.spotNodes == c.wanted-onDemand
		}, "%d on on-demand nodes", onDemand)
	}
	s.ended(before, 2, spotNode)

	// Kill it again while it replaces pods: it still waits for the pod that it has just deleted.
	s.relabel(before, "all-in-on-demand", "")
	s.becomes(before, func(c counts) bool { return c.onDemandNodes == 4 }, "all on-demand")
	s.relabel(before, "all-in-spot", "")
	eventually.True(t, "the server replaces pods", func() bool { return s.counts(before).spotLabels > 0 })
	s.server.kill()
	s.startServer()
	s.reaches(before, 0, 4)
	// And new pods are split from the start again.
	after := s.create(manifest{workloadID: workloadID{"Deployment", "outage", "after"}, replicas: 6, labels: enabled("custom", "2")})
	s.reaches(after, 2, 4)
	s.ended(after, 0, "")
}
