package health

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// shown formats the taints of a status, with the seconds since the test started.
func shown(taints []api.ClusterTaint, began time.Time) string {
	var out []string
	for _, t := range taints {
		text := t.Key
		if t.Value != "" {
			text += "=" + t.Value
		}
		at := "never"
		if t.TimeAdded != nil {
			at = fmt.Sprint(int(t.TimeAdded.Sub(began).Seconds()))
		}
		out = append(out, text+":"+string(t.Effect)+"@"+at)
	}
	return strings.Join(out, " ")
}

func (w *world) expectTaints(name string, began time.Time, want string) {
	w.t.Helper()
	if got := shown(w.status(name).Taints, began); got != want {
		w.t.Errorf("taints %q, want %q", got, want)
	}
}

func tainted(name string, taints ...api.Taint) *api.Cluster {
	c := named(name)
	c.Spec.Taints = taints
	return c
}

// TestDeclaredTaints declares other taints in each step, ten seconds after the previous one.
func TestDeclaredTaints(t *testing.T) {
	gpu := api.Taint{Key: "gpu", Value: "yes", Effect: api.EffectNoSelect}
	disk := api.Taint{Key: "disk", Effect: api.EffectPreferNoSelect}
	for _, c := range []struct {
		name  string
		steps [][]api.Taint
		want  []string
	}{
		{"declared and removed", [][]api.Taint{{gpu}, nil}, []string{"gpu=yes:NoSelect@0", ""}},
		{"declared later", [][]api.Taint{nil, {gpu}}, []string{"", "gpu=yes:NoSelect@10"}},
		{"declared again", [][]api.Taint{{gpu}, nil, {gpu}}, []string{"gpu=yes:NoSelect@0", "", "gpu=yes:NoSelect@20"}},
		{
			"others come and go", [][]api.Taint{{gpu}, {disk, gpu}, {gpu, disk}, {disk}},
			[]string{"gpu=yes:NoSelect@0", "disk:PreferNoSelect@10 gpu=yes:NoSelect@0", "gpu=yes:NoSelect@0 disk:PreferNoSelect@10", "disk:PreferNoSelect@10"},
		},
		{
			"the other spelling is the same taint", [][]api.Taint{{gpu}, {{Key: "gpu", Value: "yes", Effect: api.EffectNoExecute}}},
			[]string{"gpu=yes:NoSelect@0", "gpu=yes:NoExecute@0"},
		},
		{
			"another effect is another taint", [][]api.Taint{{gpu}, {{Key: "gpu", Value: "yes", Effect: api.EffectNoSelectIfNew}}},
			[]string{"gpu=yes:NoSelect@0", "gpu=yes:NoSelectIfNew@10"},
		},
		{
			"another value is another taint", [][]api.Taint{{gpu}, {{Key: "gpu", Value: "no", Effect: api.EffectNoSelect}}},
			[]string{"gpu=yes:NoSelect@0", "gpu=no:NoSelect@10"},
		},
		{
			"one key with two effects", [][]api.Taint{{gpu}, {gpu, {Key: "gpu", Value: "yes", Effect: api.EffectPreferNoSelect}}},
			[]string{"gpu=yes:NoSelect@0", "gpu=yes:NoSelect@0 gpu=yes:PreferNoSelect@10"},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				w := newWorld(t, newSite())
				defer w.run()()
				began := time.Now()
				for i, taints := range c.steps {
					w.settle(w.put(tainted("a", taints...)))
					w.expectTaints("a", began, c.want[i])
					if s := w.status("a"); c.want[i] != "" && s.ObservedGeneration != int64(i+1) {
						t.Errorf("step %d: observed generation %d", i, s.ObservedGeneration)
					}
					writes := w.count()
					faketime.Sleep(10 * time.Second)
					if w.count() != writes {
						t.Errorf("step %d: %d writes without a change", i, w.count()-writes)
					}
				}
			})
		})
	}
}

// TestTaintsOverARestart checks that times survive, and that a taint that was declared while the server was down counts
// from its declaration.
func TestTaintsOverARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		gpu := api.Taint{Key: "gpu", Effect: api.EffectNoSelect}
		w := newWorld(t, newSite())
		stop := w.run()
		began := time.Now()
		w.settle(w.put(tainted("a", gpu)))
		down := probedCluster("down")
		down.Spec.Taints = []api.Taint{gpu}
		w.settle(w.put(down))
		faketime.Sleep(30 * time.Second)
		w.expect("down", api.StateOffline)
		before := shown(w.status("down").Taints, began)
		if !strings.HasPrefix(before, "gpu:NoSelect@0 scheduler/unreachable:NoSelect@") {
			t.Fatalf("unexpected taints %q", before)
		}
		stop()
		faketime.Sleep(time.Hour)
		w = w.restart()
		stop = w.run()
		faketime.Sleep(time.Minute)
		w.expectTaints("a", began, "gpu:NoSelect@0")
		w.expectTaints("down", began, before)
		if w.count() != 0 {
			t.Errorf("%d writes after a restart, want none", w.count())
		}
		stop()
		// The server is down when the cluster is written.
		disk := api.Taint{Key: "disk", Effect: api.EffectNoSelect}
		at := int(time.Since(began).Seconds())
		revision := w.put(tainted("a", disk, gpu))
		faketime.Sleep(time.Hour)
		w = w.restart()
		defer w.run()()
		w.settle(revision)
		w.expectTaints("a", began, fmt.Sprintf("disk:NoSelect@%d gpu:NoSelect@0", at))
	})
}

// TestTaintMissingInAnAnsweredStatus covers a status that answers the present spec without its taints: they count from
// now.
func TestTaintMissingInAnAnsweredStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		began := time.Now()
		revision := w.put(tainted("a", api.Taint{Key: "gpu", Effect: api.EffectNoSelect}))
		w.clusters["a"].Status.ObservedGeneration = 1
		faketime.Sleep(time.Minute)
		w = w.restart()
		defer w.run()()
		w.settle(revision)
		w.expectTaints("a", began, "gpu:NoSelect@60")
	})
}

func TestTaintOfSilentCluster(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		began := time.Now()
		c := named("edge")
		c.Spec.Health = &api.HealthSpec{Interval: "10s"}
		c.Spec.Taints = []api.Taint{{Key: "gpu", Effect: api.EffectNoSelect}}
		w.settle(w.put(c))
		w.expect("edge", api.StatePending)
		w.expectTaints("edge", began, "gpu:NoSelect@0")
		w.beat("edge", api.Heartbeat{})
		w.expectTaints("edge", began, "gpu:NoSelect@0")
		faketime.Sleep(40 * time.Second)
		w.expect("edge", api.StateOffline)
		w.expectTaints("edge", began, "gpu:NoSelect@0 scheduler/unreachable:NoSelect@30")
		// Other taints are added and removed in between.
		c = named("edge")
		c.Spec.Health = &api.HealthSpec{Interval: "10s"}
		w.settle(w.put(c))
		w.expectTaints("edge", began, "scheduler/unreachable:NoSelect@30")
		// One heartbeat is not enough to be online again.
		w.beat("edge", api.Heartbeat{})
		w.expect("edge", api.StateConnecting)
		w.expectTaints("edge", began, "scheduler/unreachable:NoSelect@30")
		w.beat("edge", api.Heartbeat{})
		w.expect("edge", api.StateOnline)
		w.expectTaints("edge", began, "")
		// Offline again: a new time.
		faketime.Sleep(40 * time.Second)
		w.expectTaints("edge", began, "scheduler/unreachable:NoSelect@70")
		// No longer checked, it counts as online.
		c = probedCluster("edge")
		w.site.set("edge", 200)
		w.settle(w.put(c))
		faketime.Sleep(20 * time.Second)
		w.expectTaints("edge", began, "")
	})
}

// TestTaintOfFailedProbes checks that the taint says what is wrong and since when.
func TestTaintOfFailedProbes(t *testing.T) {
	for _, c := range []struct {
		name        string
		first, then int // responses of the cluster: 0 = no connection, -1 = hangs
		want        [2]string
		states      [2]api.ClusterState
	}{
		{"no connection, then unhealthy", 0, 503, [2]string{api.TaintUnreachable, api.TaintUnhealthy}, [2]api.ClusterState{api.StateOffline, api.StateUnhealthy}},
		{"unhealthy, then no connection", 500, 0, [2]string{api.TaintUnhealthy, api.TaintUnreachable}, [2]api.ClusterState{api.StateUnhealthy, api.StateOffline}},
		{"hangs, then unhealthy", -1, 302, [2]string{api.TaintUnreachable, api.TaintUnhealthy}, [2]api.ClusterState{api.StateOffline, api.StateUnhealthy}},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newSite()
				s.set("a", 200)
				w := newWorld(t, s)
				defer w.run()()
				w.settle(w.put(probedCluster("a")))
				w.expectTaints("a", time.Now(), "")
				s.set("a", c.first)
				faketime.Sleep(time.Minute)
				w.expect("a", c.states[0])
				taints := w.status("a").Taints
				ready := api.FindCondition(w.status("a").Conditions, api.ConditionReady)
				if len(taints) != 1 || taints[0].Key != c.want[0] || taints[0].Effect != api.EffectNoSelect || taints[0].Value != "" || !taints[0].TimeAdded.Equal(*ready.LastTransitionAt) {
					t.Fatalf("taints %+v, not ready since %s", taints, ready.LastTransitionAt)
				}
				since := *taints[0].TimeAdded
				s.set("a", c.then)
				faketime.Sleep(time.Minute)
				w.expect("a", c.states[1])
				w.expectTaints("a", since, c.want[1]+":NoSelect@0")
				s.set("a", 200)
				faketime.Sleep(time.Minute)
				w.expectTaints("a", since, "")
			})
		})
	}
}

// TestPendingClusterHasNoTaint checks that a pending cluster, which gets no placements anyway, has no taint.
func TestPendingClusterHasNoTaint(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		defer w.run()()
		w.settle(w.put(probedCluster("down")))
		w.expect("down", api.StatePending)
		w.expectTaints("down", time.Now(), "")
	})
}

// TestTaintsDoNotWaitForAProbe: the first probe of a cluster may hang for as long as a writer waits.
func TestTaintsDoNotWaitForAProbe(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newSite()
		s.set("a", -1)
		w := newWorld(t, s)
		defer w.run()()
		began := time.Now()
		c := probedCluster("a")
		c.Spec.Taints = []api.Taint{{Key: "gpu", Effect: api.EffectNoSelect}}
		revision := w.put(c)
		faketime.Sleep(time.Second)
		w.expectTaints("a", began, "gpu:NoSelect@0")
		w.settle(revision)
		w.expect("a", api.StatePending)
	})
}

// TestTaintAfterAFailedWrite checks that the time is that of the declaration, however long the store was down.
func TestTaintAfterAFailedWrite(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, newSite())
		w.broken = errors.New("store is not available")
		defer w.run()()
		began := time.Now()
		revision := w.put(tainted("a", api.Taint{Key: "gpu", Effect: api.EffectNoSelect}))
		faketime.Sleep(5 * time.Second)
		w.mu.Lock()
		w.broken = nil
		w.mu.Unlock()
		w.settle(revision)
		w.expectTaints("a", began, "gpu:NoSelect@0")
	})
}
