package kubernetes

import (
	"fmt"
	"maps"
	"math"
	"math/big"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
)

func container(requests ...string) corev1.Container {
	return corev1.Container{Resources: corev1.ResourceRequirements{Requests: list(requests...)}}
}

func sidecar(requests ...string) corev1.Container {
	c := container(requests...)
	always := corev1.ContainerRestartPolicyAlways
	c.RestartPolicy = &always
	return c
}

// TestPodRequests checks that a pod uses what the Kubernetes scheduler reserves for it.
func TestPodRequests(t *testing.T) {
	for _, c := range []struct {
		name   string
		change func(p *corev1.Pod)
		want   string // "" = takes up nothing
	}{
		{"one container", func(*corev1.Pod) {}, `{"cpu":"1","memory":"1Gi","pods":"1"}`},
		{"two containers", func(p *corev1.Pod) { p.Spec.Containers = append(p.Spec.Containers, container("cpu", "250m")) }, `{"cpu":"1250m","memory":"1Gi","pods":"1"}`},
		{"larger init container", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{container("cpu", "3"), container("memory", "512Mi")}
		}, `{"cpu":"3","memory":"1Gi","pods":"1"}`},
		{"sidecar", func(p *corev1.Pod) {
			p.Spec.InitContainers = []corev1.Container{sidecar("cpu", "500m"), container("cpu", "1")}
		}, `{"cpu":"1500m","memory":"1Gi","pods":"1"}`},
		{"overhead", func(p *corev1.Pod) { p.Spec.Overhead = list("cpu", "100m") }, `{"cpu":"1100m","memory":"1Gi","pods":"1"}`},
		{"requests of the whole pod", func(p *corev1.Pod) { p.Spec.Resources = &corev1.ResourceRequirements{Requests: list("cpu", "2")} }, `{"cpu":"2","memory":"1Gi","pods":"1"}`},
		{"other resources", func(p *corev1.Pod) {
			p.Spec.Containers[0] = container("nvidia.com/gpu", "2", "ephemeral-storage", "10Gi")
		}, `{"cpu":"0","ephemeral-storage":"10Gi","memory":"0","nvidia.com/gpu":"2","pods":"1"}`},
		{"no requests", func(p *corev1.Pod) { p.Spec.Containers[0] = container() }, `{"cpu":"0","memory":"0","pods":"1"}`},
		{"pending on a node", func(p *corev1.Pod) { p.Status.Phase = corev1.PodPending }, `{"cpu":"1","memory":"1Gi","pods":"1"}`},
		{"without a node", func(p *corev1.Pod) { p.Spec.NodeName = "" }, ""},
		{"succeeded", func(p *corev1.Pod) { p.Status.Phase = corev1.PodSucceeded }, ""},
		{"failed", func(p *corev1.Pod) { p.Status.Phase = corev1.PodFailed }, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := running("p", "n1", "cpu", "1", "memory", "1Gi")
			c.change(p)
			got, ok := informer.PodOf(p)
			if ok != (c.want != "") {
				t.Fatalf("counted = %t, want the opposite", ok)
			}
			if text := asJSON(t, allocated(map[informer.UID]informer.Pod{{}: got}, nil)); ok && text != c.want {
				t.Errorf("got %s, want %s", text, c.want)
			}
		})
	}
}

// TestSums compares the sums over any nodes and pods with adding up quantities.
func TestSums(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		nodes, pods := map[informer.UID]informer.Node{}, map[informer.UID]informer.Pod{}
		allocatable, used := map[string]resource.Quantity{}, map[string]resource.Quantity{}
		add := func(sum map[string]resource.Quantity, l corev1.ResourceList) {
			for name, q := range l {
				total := sum[string(name)]
				total.Add(q)
				sum[string(name)] = total
			}
		}
		amounts := rapid.Custom(func(t *rapid.T) corev1.ResourceList {
			return list("cpu", fmt.Sprintf("%dm", rapid.Int64Range(0, 100_000).Draw(t, "cpu")),
				"memory", fmt.Sprint(rapid.Int64Range(0, 1<<42).Draw(t, "memory")),
				"nvidia.com/gpu", fmt.Sprint(rapid.IntRange(0, 8).Draw(t, "gpu")))
		})
		for i := range rapid.IntRange(0, 6).Draw(t, "nodes") {
			n := machine(fmt.Sprint("n", i))
			n.Status.Allocatable = amounts.Draw(t, "allocatable")
			n.Spec.Unschedulable = rapid.Bool().Draw(t, "cordoned")
			reduced, _ := informer.NodeOf(n)
			nodes[informer.UID{byte(i)}] = reduced
			if !n.Spec.Unschedulable {
				add(allocatable, n.Status.Allocatable)
			}
			for j := range rapid.IntRange(0, 4).Draw(t, "pods") {
				p := running("p", n.Name)
				p.Spec.Containers[0].Resources.Requests = amounts.Draw(t, "requests")
				reduced, _ := informer.PodOf(p)
				pods[informer.UID{byte(i), byte(j)}] = reduced
				if !n.Spec.Unschedulable {
					add(used, p.Spec.Containers[0].Resources.Requests)
				}
			}
		}
		check := func(what string, got api.Quantities, want map[string]resource.Quantity) {
			for name, q := range want {
				text := string(got[name])
				if text == "" {
					text = "0"
				}
				if have := resource.MustParse(text); have.Cmp(q) != 0 {
					t.Fatalf("%s: %s is %s, want %s", what, name, text, q.String())
				}
			}
		}
		check("allocatable", nodeFacts(nodes).Allocatable, allocatable)
		check("allocated", allocated(pods, nodes), used)
	})
}

// TestTopology: the region is that of most nodes, and does not depend on their
// order.
// TestNodesThatTakeNothing: a cluster without nodes, and one whose nodes are
// cordoned off, has 0 of everything that pods need, and not an unknown amount.
func TestNodesThatTakeNothing(t *testing.T) {
	four := informer.AmountOf(list("cpu", "4", "memory", "1", "gpu", "2", "pods", "110"))
	gpu := informer.Node{Ready: true, Capacity: four, Allocatable: four}
	cordoned := gpu
	cordoned.Unschedulable = true
	for name, c := range map[string]struct {
		nodes map[informer.UID]informer.Node
		want  api.Quantities
	}{
		"none":     {nil, api.Quantities{"cpu": "0", "memory": "0", "pods": "0"}},
		"cordoned": {map[informer.UID]informer.Node{{1}: cordoned}, api.Quantities{"cpu": "0", "memory": "0", "pods": "0", "gpu": "0"}},
		"one":      {map[informer.UID]informer.Node{{1}: gpu}, api.Quantities{"cpu": "4", "memory": "1", "pods": "110", "gpu": "2"}},
	} {
		if got := nodeFacts(c.nodes).Allocatable; !maps.Equal(got, c.want) {
			t.Errorf("%s: got %v, want %v", name, got, c.want)
		}
	}
}

// TestTopology checks that the region is that of the most nodes, and does not depend on their order.
func TestTopology(t *testing.T) {
	for _, c := range []struct {
		name  string
		nodes string // region/zone of each
		want  string
	}{
		{"none", "/ /", ""},
		{"one", "eu/a eu/b eu/a", "eu a b"},
		{"most nodes", "eu/a us/b us/c", "us a b c"},
		{"equal numbers", "us/a eu/b", "eu a b"},
		{"nodes without a zone", "eu/ eu/", "eu"},
	} {
		t.Run(c.name, func(t *testing.T) {
			nodes := map[informer.UID]informer.Node{}
			for i, text := range strings.Fields(c.nodes) {
				region, zone, _ := strings.Cut(text, "/")
				n, _ := informer.NodeOf(machine("n", in(region, zone)))
				nodes[informer.UID{byte(i)}] = n
			}
			f := nodeFacts(nodes)
			if got := strings.TrimSpace(strings.Join(slices.Concat([]string{f.Region}, f.Zones), " ")); got != c.want {
				t.Errorf("got %q, want %q", got, c.want)
			}
		})
	}
}

// TestHugeAmounts checks that a sum that no quantity can be is not reported.
func TestHugeAmounts(t *testing.T) {
	n := machine("n")
	n.Status.Capacity = list("memory", fmt.Sprint(math.MaxInt64), "cpu", "-4")
	reduced, _ := informer.NodeOf(n)
	f := nodeFacts(map[informer.UID]informer.Node{{1}: reduced})
	if got := asJSON(t, f.Capacity); got != `{"cpu":"0","memory":"9223372036854775807"}` {
		t.Errorf("unexpected capacity %s", got)
	}
	f = nodeFacts(map[informer.UID]informer.Node{{1}: reduced, {2}: reduced})
	if got := asJSON(t, f.Capacity); got != `{"cpu":"0"}` {
		t.Errorf("unexpected capacity %s", got)
	}
}

// TestSumsOfAllMagnitudes compares the sums over nodes with big integers.
func TestSumsOfAllMagnitudes(t *testing.T) {
	names := []string{"cpu", "memory", "hugepages-2Mi", "example.com/bytes"}
	rapid.Check(t, func(t *rapid.T) {
		bits := rapid.SampledFrom([]int{20, 53, 60, 63}).Draw(t, "bits")
		nodes, want := map[informer.UID]informer.Node{}, map[string]*big.Int{}
		for i := range rapid.IntRange(1, 12).Draw(t, "nodes") {
			n := machine("n")
			n.Status.Allocatable = corev1.ResourceList{}
			for _, name := range names {
				drawn := int64(rapid.Uint64().Draw(t, name) >> (64 - rapid.IntRange(1, bits).Draw(t, name+" bits")))
				q, thousandths := *resource.NewQuantity(drawn, resource.DecimalSI), int64(1000)
				if name == "cpu" {
					q, thousandths = *resource.NewMilliQuantity(drawn, resource.DecimalSI), 1
				}
				n.Status.Allocatable[corev1.ResourceName(name)] = q
				if want[name] == nil {
					want[name] = new(big.Int)
				}
				want[name].Add(want[name], new(big.Int).Mul(big.NewInt(drawn), big.NewInt(thousandths)))
			}
			nodes[informer.UID{byte(i)}], _ = informer.NodeOf(n)
		}
		sums := nodeFacts(nodes).Allocatable
		largest := new(big.Int).Mul(big.NewInt(math.MaxInt64), big.NewInt(1000))
		for _, name := range names {
			got, reported := sums[name]
			if fits := want[name].Cmp(largest) <= 0; reported != fits && (want[name].Sign() > 0 || reported) {
				t.Fatalf("%s: %s is reported as %q", name, want[name], got)
			}
			if !reported {
				continue
			}
			if milli, err := got.Milli(); err != nil || milli.String() != want[name].String() {
				t.Fatalf("%s: %s is reported as %q (%v)", name, want[name], got, err)
			}
		}
	})
}
