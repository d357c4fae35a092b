package inventory

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
)

// admitted is a pod whose type has been assigned and that has not been created yet.
type admitted struct {
	creation webhook.Creation
	kind     split.NodeType
}

// controller simulates the controller of a Deployment with one ReplicaSet, or of a StatefulSet with parallel pod
// management, and a watch that delivers everything late.
type controller struct {
	*rapid.T
	*world
	deployment *appsv1.Deployment
	set        *appsv1.StatefulSet
	owner      object
	spec       api.DistributionSpec
	replicas   int32
	pods       map[string]*corev1.Pod
	pending    []admitted
	late       map[string][]func() // events not yet delivered to each table
	heard      map[string]bool     // delivered pods, by UID
	depth      int
}

func newController(t *rapid.T, kind string) *controller {
	c := &controller{T: t, world: newWorld(plainLabel), pods: map[string]*corev1.Pod{}, late: map[string][]func(){}, heard: map[string]bool{}}
	mode := rapid.SampledFrom([]string{"all-in-spot", "all-in-on-demand", "majority-in-on-demand", "0", "1", "3"}).Draw(t, "mode")
	settings, err := spot.ParseSettings(labelsFor(mode), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.spec = settings.Distribution
	c.replicas = int32(rapid.IntRange(0, 5).Draw(t, "replicas"))
	if kind == kindDeployment {
		c.deployment = deployment("web", c.replicas, labelsFor(mode))
		rs := revisionOf(c.deployment, "abc", 1)
		c.owner = rs
		c.put(c.deployment, rs)
	} else {
		c.set = statefulSet("db", c.replicas, labelsFor(mode))
		c.owner = c.set
		c.put(c.set)
	}
	c.during = func() {
		if c.depth < 3 {
			c.depth++
			c.meanwhile()
			c.depth--
		}
	}
	return c
}

// meanwhile lets a few things happen while a response is on its way.
func (c *controller) meanwhile() {
	for range rapid.IntRange(0, 3).Draw(c.T, "meanwhile") {
		c.step()
	}
}

func (c *controller) target() split.Target {
	kind := kindDeployment
	if c.set != nil {
		kind = kindStatefulSet
	}
	return split.Targets(kind, int64(c.replicas), c.spec)
}

// step does one thing, if possible.
func (c *controller) step() {
	switch rapid.IntRange(0, 9).Draw(c.T, "step") {
	case 0:
		c.grow()
	case 1:
		c.end()
	case 2:
		c.remove()
	case 3, 4, 5:
		c.admit()
	case 6, 7:
		c.make()
	default:
		c.tell()
	}
}

func (c *controller) later(table string, do func()) { c.late[table] = append(c.late[table], do) }

func (c *controller) grow() {
	if c.replicas >= 9 {
		return
	}
	c.replicas += int32(rapid.IntRange(1, 3).Draw(c.T, "more"))
	if c.set != nil {
		c.set = c.set.DeepCopy()
		c.set.Spec.Replicas = new(c.replicas)
		now := c.set
		c.put(now)
		c.later("statefulsets", func() { c.hear(now) })
		return
	}
	c.deployment = c.deployment.DeepCopy()
	c.deployment.Spec.Replicas = new(c.replicas)
	now := c.deployment
	c.put(now)
	c.later("deployments", func() { c.hear(now) })
}

// some returns one of the pods that match, or nil.
func (c *controller) some(match func(*corev1.Pod) bool) *corev1.Pod {
	var names []string
	for _, name := range slices.Sorted(maps.Keys(c.pods)) {
		if match(c.pods[name]) {
			names = append(names, name)
		}
	}
	if len(names) == 0 {
		return nil
	}
	return c.pods[rapid.SampledFrom(names).Draw(c.T, "pod")]
}

func going(p *corev1.Pod) bool { return p.DeletionTimestamp != nil }

// end starts the deletion of a delivered pod: a pod that is created and deleted within moments cannot be distinguished
// from one that is still to come. It deletes none between a list and its arrival, which cannot be known either.
func (c *controller) end() {
	if c.depth > 0 {
		return
	}
	p := c.some(func(p *corev1.Pod) bool { return !going(p) && c.heard[string(p.UID)] })
	if p == nil {
		return
	}
	p = p.DeepCopy()
	p.DeletionTimestamp = new(metav1.NewTime(start))
	c.show(p)
}

func (c *controller) show(p *corev1.Pod) {
	c.pods[p.Name] = p
	c.put(p)
	c.later("pods", func() { c.hear(p); c.heard[string(p.UID)] = true })
}

// remove completes the deletion of a pod.
func (c *controller) remove() {
	if p := c.some(going); p != nil {
		delete(c.pods, p.Name)
		c.take(p)
		c.later("pods", func() { c.hearGone(p) })
	}
}

// admit starts to create a missing pod.
func (c *controller) admit() {
	if c.set == nil {
		n := len(c.pending) + c.depth // a creation is in progress at every depth
		for _, p := range c.pods {
			if !going(p) {
				n++
			}
		}
		if n < int(c.replicas) {
			creation := c.creation(c.owner)
			kind := c.assign(creation)
			c.pending = append(c.pending, admitted{creation, kind})
		}
		return
	}
	for ordinal := range int(c.replicas) {
		creation := c.creation(c.owner, ordinal)
		pending := slices.ContainsFunc(c.pending, func(a admitted) bool { return a.creation.Name == creation.Name })
		if c.pods[creation.Name] == nil && !pending {
			c.pending = append(c.pending, admitted{creation, c.assign(creation)})
			return
		}
	}
}

// make creates a pod that was admitted.
func (c *controller) make() {
	if len(c.pending) == 0 {
		return
	}
	i := rapid.IntRange(0, len(c.pending)-1).Draw(c.T, "which")
	a := c.pending[i]
	c.pending = slices.Delete(c.pending, i, i+1)
	c.show(podFor(a.creation, a.kind))
	if live := c.live(); live.OnDemand > c.target().OnDemand {
		c.Fatalf("live split %+v, want at most %+v", live, c.target().Split)
	}
}

func (c *controller) live() (s split.Split) {
	for _, p := range c.pods {
		if !going(p) {
			s = s.Plus(spot.AffinityOf(p.Labels))
		}
	}
	return s
}

// tell delivers the next event to one of the tables.
func (c *controller) tell() {
	tables := slices.Sorted(maps.Keys(c.late))
	if len(tables) == 0 {
		return
	}
	table := rapid.SampledFrom(tables).Draw(c.T, "table")
	next := c.late[table][0]
	if c.late[table] = c.late[table][1:]; len(c.late[table]) == 0 {
		delete(c.late, table)
	}
	next()
}

// rest completes all work of the controller, and delivers all events.
func (c *controller) rest() {
	c.during = nil
	for slices.ContainsFunc(slices.Collect(maps.Values(c.pods)), going) {
		c.remove()
	}
	for int(c.replicas) > len(c.pods) {
		c.admit()
		c.make()
	}
	if live, want := c.live(), c.target().Split; live != want {
		c.Fatalf("at rest there are %+v, want %+v", live, want)
	}
	for len(c.late) > 0 {
		c.tell()
	}
	if len(c.reservations) != 0 {
		c.Fatalf("reservations for existing pods: %v", c.reservations)
	}
	key := webKey
	if c.set != nil {
		key = Key{kindStatefulSet, shop, "db"}
	} else {
		c.hear(c.deployment, c.owner)
	}
	if c.replicas > 0 {
		c.hear(c.owner)
	}
	if v, ok := c.View(key, false); ok {
		if live := split.Live(v.Pods); live != c.target().Split {
			c.Fatalf("it shows %+v, want %+v", live, c.target().Split)
		}
	}
}

// TestAnyOrder: whatever comes and goes, and however late the watch is, there are never
// more pods for on-demand nodes than there should be, and at rest there is the split.
func TestAnyOrder(t *testing.T) {
	for _, kind := range []string{kindDeployment, kindStatefulSet} {
		t.Run(kind, func(t *testing.T) {
			rapid.Check(t, func(t *rapid.T) {
				c := newController(t, kind)
				for range rapid.IntRange(0, 60).Draw(t, "steps") {
					c.step()
				}
				c.rest()
			})
		})
	}
}

// TestDeletedObjectsAreForgotten checks that nothing of deleted objects stays in memory.
func TestDeletedObjectsAreForgotten(t *testing.T) {
	w := newWorld(plainLabel)
	for n := range 200 {
		d := deployment(fmt.Sprintf("web-%d", n), 2, labelsFor("1"))
		rs := revisionOf(d, "abc", 1)
		set := statefulSet(fmt.Sprintf("db-%d", n), 1, labelsFor("1"))
		w.hear(d, rs, set)
		var pods []*corev1.Pod
		for _, c := range []webhook.Creation{w.creation(rs), w.creation(rs), w.creation(set, 0)} {
			p := podFor(c, w.assign(c))
			p.Spec.NodeName = fmt.Sprintf("node-%d", n)
			w.hear(p)
			pods = append(pods, p)
		}
		o := nodeOf(fmt.Sprintf("node-%d", n), "spot")
		w.hear(o)
		for _, p := range pods {
			w.hearGone(p)
		}
		w.hearGone(o)
		w.hearGone(rs)
		w.hearGone(d)
		w.hearGone(set)
	}
	for name, n := range map[string]int{
		"workloads": len(w.workloads), "replica sets": len(w.replicaSets), "sets of deployments": len(w.setsOf), "pods": len(w.pods), "pods of controllers": len(w.podsOf),
		"nodes": len(w.nodes), "pods on nodes": len(w.podsOn), "reservations": len(w.reservations),
	} {
		if n != 0 {
			t.Errorf("%d %s are left", n, name)
		}
	}
	for _, s := range w.sorts {
		if n := w.table(s.what).Len(); n != 0 {
			t.Errorf("%d %s are left", n, s.what)
		}
	}
}
