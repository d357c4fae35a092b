package reconcile

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestEvictionsEnd has a workload that leaves a lost cluster, and its successors report nothing.
func TestEvictionsEnd(t *testing.T) {
	reschedule := func(w *world, p *planner, change ...func(*api.Workload)) {
		again := *w.objects[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}].(*api.Workload)
		again.Metadata.RescheduleRequests++
		for _, c := range change {
			c(&again)
		}
		w.write(p, &again)
	}
	unclaim := func(w *world, p *planner) {
		w.remove(p, api.Key{Kind: api.KindPropagationPolicy, Namespace: "shop", Name: "base"})
	}
	for _, tt := range []struct {
		name  string
		do    func(w *world, p *planner)
		after time.Duration
		over  bool
	}{
		{"nothing happens", func(*world, *planner) {}, time.Minute, false},
		{"its grace passes", func(*world, *planner) {}, api.DefaultGracePeriod.Or(0), true},
		{"it is rescheduled by hand", func(w *world, p *planner) { reschedule(w, p) }, time.Minute, true},
		{"it is rescheduled by hand where there is no room for it", func(w *world, p *planner) {
			reschedule(w, p, func(x *api.Workload) { x.Spec.Replicas = ptr[int64](9) })
		}, time.Minute, true},
		{"no policy selects it any more", unclaim, time.Minute, false},
		{"no policy selects it any more, and its grace passes", unclaim, api.DefaultGracePeriod.Or(0), true},
		{"no policy selects it any more, and it is rescheduled by hand", func(w *world, p *planner) {
			unclaim(w, p)
			reschedule(w, p)
		}, time.Minute, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			w.write(p, policy("base", func(s *api.PropagationPolicySpec) { s.Placement.ReplicaScheduling = dynamic() }))
			lost := sized("a", "4")
			w.write(p, lost)
			w.write(p, workload("web", 4, important(0, "1")))
			p.pass(epoch)
			w.write(p, sized("b", "4"))
			gone := *lost
			lose(&gone, epoch)
			w.write(p, &gone)
			p.pass(epoch)
			web := p.bindings.workloads[api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}]
			if replicas := replicasOf(p, "web"); replicas["b"] != 4 || len(web.status.Evictions) != 1 {
				t.Fatalf("it runs on %v and leaves %v, want b and a", replicas, web.status.Evictions)
			}
			tt.do(w, p)
			p.pass(epoch)
			now := epoch.Add(tt.after)
			if at := p.nextAt(); !at.IsZero() && !at.After(now) {
				p.pass(now) // only what is due is decided again
			}
			if over := len(web.status.Evictions) == 0; over != tt.over {
				t.Errorf("it leaves %+v, over: %t, want %t", web.status.Evictions, over, tt.over)
			}
			if replicas := replicasOf(p, "web"); replicas["b"] != 4 {
				t.Errorf("it runs on %v, want b", replicas)
			}
		})
	}
}
