package split_test

import (
	"fmt"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
)

var kinds = []string{api.KindDeployment, api.KindStatefulSet}

func drawDistribution(t *rapid.T) api.DistributionSpec {
	d := api.DistributionSpec{Mode: rapid.SampledFrom(append([]api.DistributionMode{api.ModeDefault}, api.DistributionModes...)).Draw(t, "mode")}
	if d.Mode == api.ModeCustom {
		if rapid.Bool().Draw(t, "percent") {
			d.CustomOnDemand = api.OnDemandAmount(fmt.Sprintf("%d%%", rapid.IntRange(0, 100).Draw(t, "share")))
		} else {
			d.CustomOnDemand = api.OnDemandAmount(fmt.Sprint(rapid.IntRange(0, 30).Draw(t, "count")))
		}
	}
	return d
}

// TestTargetsGrow checks that a larger workload has no fewer pods of either type. Otherwise a rollout or scaling would
// replace pods that are correct.
func TestTargetsGrow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDistribution(t)
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		before := split.Targets(kind, 0, d)
		if before.Split != (split.Split{}) {
			t.Fatalf("split of 0 replicas: %+v", before)
		}
		for n := int64(1); n <= 40; n++ {
			now := split.Targets(kind, n, d)
			if now.Total() != n || now.OnDemand < 0 || now.Spot < 0 {
				t.Fatalf("split of %d replicas: %+v", n, now)
			}
			if now.OnDemand < before.OnDemand || now.Spot < before.Spot {
				t.Fatalf("%+v with %d replicas, but %+v with %d", before, n-1, now, n)
			}
			before = now
		}
	})
}

// TestDivideKeepsTheFloor checks that, however replicas are divided over clusters, as many are on on-demand nodes as
// there would be in one cluster. A count is met exactly.
func TestDivideKeepsTheFloor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d := drawDistribution(t)
		kind := rapid.SampledFrom(kinds).Draw(t, "kind")
		shares := rapid.SliceOfN(rapid.Int64Range(0, 20), 1, 6).Draw(t, "shares")
		total := int64(0)
		for _, n := range shares {
			total += n
		}
		whole := split.Targets(kind, total, d)
		sum := int64(0)
		for i, target := range split.Divide(kind, total, shares, d) {
			if target.Total() != shares[i] || target.OnDemand < 0 || target.Spot < 0 {
				t.Fatalf("cluster %d: %+v of %d", i, target, shares[i])
			}
			sum += target.OnDemand
		}
		counted := d.Mode == api.ModeCustom && d.CustomOnDemand[len(d.CustomOnDemand)-1] != '%'
		if sum < whole.OnDemand || counted && sum != whole.OnDemand {
			t.Fatalf("%d on-demand in all, want %d", sum, whole.OnDemand)
		}
	})
}

// TestReplacementArrives checks that replacing pods one at a time ends with the intended split, for any pods, and
// deletes no more pods than necessary.
func TestReplacementArrives(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := split.Workload{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Managed: true}
		labels := []split.NodeType{split.OnDemand, split.Spot, split.Unset}
		n := rapid.IntRange(0, 12).Draw(t, "replicas")
		w.Replicas = int64(n)
		w.Target = split.Targets(w.Kind, w.Replicas, drawDistribution(t))
		for i := range n {
			p := split.Pod{Name: fmt.Sprintf("p-%d", i), UID: fmt.Sprint(i), Ready: true, Ordinal: i, Created: time.Unix(rapid.Int64Range(0, 9).Draw(t, "created"), 0)}
			p.For, p.On = rapid.SampledFrom(labels).Draw(t, "for"), rapid.SampledFrom(labels).Draw(t, "on")
			if p.For == split.OnDemand {
				p.On = split.OnDemand
			}
			w.Pods = append(w.Pods, p)
		}
		live := split.Live(w.Pods)
		off := max(w.Target.OnDemand-live.OnDemand, 0) + max(w.Target.Spot-live.Spot, 0)
		if replaced := replaceAll(&w); int64(replaced) != off {
			t.Errorf("%d pods replaced, want %d", replaced, off)
		}
		if live := split.Live(w.Pods); live != w.Target.Split {
			t.Errorf("final split %+v, want %+v", live, w.Target.Split)
		}
	})
}

// TestOnlyOnePodIsDown checks that no pod is deleted while another is not ready, except on a node that is about to
// terminate.
func TestOnlyOnePodIsDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		now := time.Unix(1000, 0)
		w := split.Workload{Kind: rapid.SampledFrom(kinds).Draw(t, "kind"), Managed: rapid.Bool().Draw(t, "managed"), Recreate: rapid.Bool().Draw(t, "recreate")}
		n := rapid.IntRange(1, 8).Draw(t, "pods")
		w.Replicas = int64(n)
		w.Target = split.Targets(w.Kind, w.Replicas, drawDistribution(t))
		ill := 0
		for i := range n {
			p := split.Pod{Name: fmt.Sprintf("p-%d", i), UID: fmt.Sprint(i), Ready: rapid.Bool().Draw(t, "ready"), Terminating: rapid.Bool().Draw(t, "terminating")}
			p.For, p.On = rapid.SampledFrom([]split.NodeType{split.OnDemand, split.Spot, split.Unset}).Draw(t, "for"), rapid.SampledFrom([]split.NodeType{split.OnDemand, split.Spot, split.Unset}).Draw(t, "on")
			if rapid.IntRange(0, 5).Draw(t, "ends") == 0 {
				p.Ends = now.Add(time.Duration(rapid.IntRange(-60, 200).Draw(t, "in")) * time.Second)
			}
			if !p.Ready || p.Terminating {
				ill++
			}
			w.Pods = append(w.Pods, p)
		}
		plan := w.Next(split.Circumstances{Now: now, MayReturn: func(*split.Pod) bool { return true }})
		switch {
		case plan.Replace == nil:
		case plan.Replace.Terminating:
			t.Errorf("%s is already terminating", plan.Replace.Name)
		case ill > 0 && (plan.Reason != split.ReasonNodeEnds || plan.Replace.Ends.After(now.Add(split.LastCall))):
			t.Errorf("%s is replaced because of %s while %d pods are unhealthy", plan.Replace.Name, plan.Reason, ill)
		}
	})
}
