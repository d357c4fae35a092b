package informer

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	kruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is a cluster that counts requests.
type cluster struct {
	*fake.Clientset
	mu    sync.Mutex
	asked []string
}

func newCluster(objects ...kruntime.Object) *cluster {
	c := &cluster{Clientset: fake.NewClientset(objects...)}
	c.PrependReactor("list", "*", func(action clienttesting.Action) (bool, kruntime.Object, error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		text := action.GetResource().Resource
		if list, ok := action.(clienttesting.ListAction); ok && !list.GetListRestrictions().Fields.Empty() {
			text += " in part"
		}
		c.asked = append(c.asked, text)
		return false, nil, nil
	})
	return c
}

// lists returns the list requests since the last call, sorted.
func (c *cluster) lists() string {
	synctest.Wait()
	c.mu.Lock()
	defer c.mu.Unlock()
	slices.Sort(c.asked)
	text := strings.Join(c.asked, ", ")
	c.asked = nil
	return text
}

func nodeNamed(name string) *corev1.Node {
	return &corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}}
}

func podNamed(name, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec: corev1.PodSpec{NodeName: node, Containers: []corev1.Container{{
			Name: "main", Resources: corev1.ResourceRequirements{Requests: corev1.ResourceList{"cpu": resource.MustParse("100m")}},
		}}},
	}
}

// received is what a follower of details has received.
type received struct {
	mu    sync.Mutex
	known map[string]bool
	calls int
}

func (p *received) details() *Details {
	p.known = map[string]bool{}
	return &Details{
		NodeOf: func(o *corev1.Node) any { return o.Name }, PodOf: func(o *corev1.Pod, a Amount) any { return fmt.Sprint(o.Name, a.MilliCPU) },
		Nodes: func(changes iter.Seq[Change[Node]]) {
			for c := range changes {
				p.take(c.Old.Detail, c.New.Detail)
			}
		},
		Pods: func(changes iter.Seq[Change[Pod]]) {
			for c := range changes {
				p.take(c.Old.Detail, c.New.Detail)
			}
		},
	}
}

func (p *received) take(old, now any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.calls++
	if name, ok := old.(string); ok {
		delete(p.known, name)
	}
	if name, ok := now.(string); ok {
		p.known[name] = true
	}
}

func (p *received) String() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return strings.Join(slices.Sorted(maps.Keys(p.known)), " ")
}

// TestOneWatchForAll: nodes and pods are listed once for all who follow them, and once
// more only when somebody comes or goes who needs more of them.
func TestOneWatchForAll(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeNamed("n1"), podNamed("placed", "n1"), podNamed("waiting", ""))
		f := New("eu", c.CoreV1(), nil)
		want := func(what, lists string, placed int) {
			t.Helper()
			if got := c.lists(); got != lists {
				t.Errorf("%s: lists of %q, want %q", what, got, lists)
			}
			n := 0
			f.Pods.View(func(rows map[UID]Pod) {
				for _, p := range rows {
					if p.Node() != "" {
						n++
					}
				}
			})
			if n != placed || f.Nodes.Len() != 1 {
				t.Errorf("%s: %d placed pods, want %d; %d nodes", what, n, placed, f.Nodes.Len())
			}
		}
		var mu sync.Mutex
		told := 0
		leave := f.Follow(Follower{Probes: true, Changed: func() { mu.Lock(); defer mu.Unlock(); told++ }})
		if got := c.lists(); got != "" {
			t.Errorf("lists of %s before the first probe, want none", got)
		}
		f.Gate.Set(nil)
		want("the first", "nodes, pods in part", 1)
		leaveSecond := f.Follow(Follower{})
		want("one that needs no more", "", 1)
		var p received
		leaveDetails := f.Follow(Follower{Details: p.details()})
		want("one that needs details", "nodes, pods", 1)
		if p.String() != "n1 placed100 waiting0" {
			t.Errorf("unexpected state %s", &p)
		}
		mu.Lock()
		told = 0
		mu.Unlock()
		if _, err := c.CoreV1().Pods("shop").Create(t.Context(), podNamed("another", ""), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		want("a pod that waits", "", 1)
		mu.Lock()
		if told != 0 {
			t.Error("a pod that uses no resources was announced for sums")
		}
		mu.Unlock()
		if _, err := c.CoreV1().Pods("shop").Create(t.Context(), podNamed("new", "n1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		want("a pod that runs", "", 2)
		mu.Lock()
		if told == 0 {
			t.Error("a pod that uses resources was not announced")
		}
		mu.Unlock()
		if err := c.CoreV1().Pods("shop").Delete(t.Context(), "placed", metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		want("one that is gone", "", 1)
		if p.String() != "another0 n1 new100 waiting0" {
			t.Errorf("unexpected state %s", &p)
		}
		calls := p.calls
		leaveDetails()
		want("without details", "nodes, pods in part", 1)
		if p.calls != calls {
			t.Error("a follower that has left was called")
		}
		leave()
		leaveSecond()
		if _, err := c.CoreV1().Pods("shop").Create(t.Context(), podNamed("late", "n1"), metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
		faketime.Sleep(time.Hour)
		if got := c.lists(); got != "" || f.Nodes.Len() > 0 || f.Pods.Len() > 0 {
			t.Errorf("without followers: lists of %q, %d nodes, %d pods", got, f.Nodes.Len(), f.Pods.Len())
		}
		// A follower that returns receives everything again.
		p = received{}
		leave = f.Follow(Follower{Details: p.details()})
		want("again", "nodes, pods", 2)
		if p.String() != "another0 late100 n1 new100 waiting0" {
			t.Errorf("unexpected state %s", &p)
		}
		leave()
	})
}

// TestProbesSayWhy checks that, while the gate is closed, followers get the reason why it is closed.
func TestProbesSayWhy(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeNamed("n1"))
		f := New("eu", c.CoreV1(), nil)
		leaveProbes := f.Follow(Follower{Probes: true})
		f.Gate.Set(errors.New("no answer"))
		leave := f.Follow(Follower{}) // assumes nothing about probes
		faketime.Sleep(time.Minute)
		if got := c.lists(); got != "" {
			t.Errorf("unexpected requests for %s", got)
		}
		if err := f.Pods.Failure(f.Gate); err == nil || err.Error() != "no answer" {
			t.Errorf("Failure() = %v, want no answer", err)
		}
		f.Gate.Set(nil)
		synctest.Wait()
		if err := f.Pods.Failure(f.Gate); err != nil {
			t.Errorf("Failure() = %v once the server responds", err)
		}
		// An open watch survives a failing probe.
		f.Gate.Set(errors.New("no answer"))
		synctest.Wait()
		if err := f.Pods.Failure(f.Gate); err != nil {
			t.Errorf("Failure() = %v during the watch", err)
		}
		// Without probes, the cluster is still watched.
		leaveProbes()
		if !f.Gate.IsOpen() {
			t.Error("the gate does not open again")
		}
		leave()
	})
}

// TestDetailsChange checks that a follower that replaces another at any time receives everything, and nothing after it
// has left.
func TestDetailsChange(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeNamed("n1"), podNamed("p", "n1"))
		f := New("eu", c.CoreV1(), nil)
		defer f.Follow(Follower{})()
		for range 20 {
			var gone received
			f.Follow(Follower{Details: gone.details()})()
			calls := gone.calls
			var p received
			leave := f.Follow(Follower{Details: p.details()})
			synctest.Wait()
			if p.String() != "n1 p100" || gone.calls != calls {
				t.Fatalf("state %q, %d calls after leaving", &p, gone.calls-calls)
			}
			leave()
		}
	})
}

// BenchmarkMemory measures the memory of a pod if only sums are needed.
func BenchmarkMemory(b *testing.B) {
	const n = 10_000
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		f := New("eu", nil, nil)
		for k := range n {
			p := podNamed(fmt.Sprintf("pod-%d", k), fmt.Sprintf("node-%d", k%100))
			if _, err := f.Pods.Put(p); err != nil {
				b.Fatal(err)
			}
		}
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(after.HeapAlloc-before.HeapAlloc)/n, "B/pod")
		runtime.KeepAlive(f)
	}
}
