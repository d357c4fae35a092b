//go:build integration

package integration

import (
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

var (
	kueueWorkloads = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "workloads"}
	kueueChecks    = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "admissionchecks"}
	kueueConfigs   = schema.GroupVersionResource{Group: "kueue.x-k8s.io", Version: "v1beta2", Resource: "multikueueconfigs"}
)

// kueue is a hub with MultiKueue, whose part the test plays.
type kueue struct{ *fleetHub }

// multiKueue makes the AdmissionCheck "mk" of MultiKueue with some clusters, and one of another controller.
func (h *fleetHub) multiKueue(clusters ...any) kueue {
	h.t.Helper()
	for _, one := range []struct {
		resource   schema.GroupVersionResource
		kind, name string
		spec       map[string]any
	}{
		{kueueChecks, "AdmissionCheck", "mk", map[string]any{
			"controllerName": "kueue.x-k8s.io/multikueue", "parameters": map[string]any{"apiGroup": "kueue.x-k8s.io", "kind": "MultiKueueConfig", "name": "fleet"},
		}},
		{kueueChecks, "AdmissionCheck", "budget", map[string]any{"controllerName": "example.com/budget"}},
		{kueueConfigs, "MultiKueueConfig", "fleet", map[string]any{"clusters": clusters}},
	} {
		u := &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": kueueChecks.GroupVersion().String(), "kind": one.kind, "metadata": map[string]any{"name": one.name}, "spec": one.spec,
		}}
		if _, err := h.client.Resource(one.resource).Create(h.t.Context(), u, metav1.CreateOptions{}); err != nil {
			h.t.Fatal(err)
		}
	}
	return kueue{h}
}

// queue creates a Workload without quota.
func (k kueue) queue(name, queue string, labels map[string]any) {
	k.t.Helper()
	_, err := k.client.Resource(kueueWorkloads).Namespace("shop").Create(k.t.Context(), &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kueueWorkloads.GroupVersion().String(), "kind": "Workload",
		"metadata": map[string]any{"name": name, "labels": labels}, "spec": map[string]any{"queueName": queue},
	}}, metav1.CreateOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
}

// reserved is what Kueue applies when a Workload gets quota.
func reserved(check string) map[string]any {
	const when = "2026-01-01T00:00:00Z"
	return map[string]any{
		"admission": map[string]any{"clusterQueue": "all", "podSetAssignments": []any{
			map[string]any{"name": "main", "count": int64(2), "flavors": map[string]any{"cpu": "default"}, "resourceUsage": map[string]any{"cpu": "2"}},
		}},
		"conditions": []any{map[string]any{
			"type": "QuotaReserved", "status": "True", "reason": "QuotaReserved", "message": "Quota reserved in ClusterQueue all", "lastTransitionTime": when, "observedGeneration": int64(1),
		}},
		"admissionChecks": []any{map[string]any{"name": check, "state": "Pending", "message": "", "lastTransitionTime": when}},
	}
}

// apply applies a status as Kueue does: all that it has to say.
func (k kueue) apply(name string, status map[string]any) error {
	_, err := k.client.Resource(kueueWorkloads).Namespace("shop").ApplyStatus(k.t.Context(), name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kueueWorkloads.GroupVersion().String(), "kind": "Workload", "metadata": map[string]any{"name": name, "namespace": "shop"}, "status": status,
	}}, metav1.ApplyOptions{FieldManager: "kueue-admission", Force: true})
	return err
}

func (k kueue) get(name string) *unstructured.Unstructured {
	k.t.Helper()
	u, err := k.client.Resource(kueueWorkloads).Namespace("shop").Get(k.t.Context(), name, metav1.GetOptions{})
	if err != nil {
		k.t.Fatal(err)
	}
	return u
}

// nominates waits until exactly these clusters are nominated for a Workload.
func (k kueue) nominates(name string, want ...string) {
	k.t.Helper()
	eventually.True(k.t, fmt.Sprintf("%v are nominated for %s", want, name), func() bool {
		got, _, _ := unstructured.NestedStringSlice(k.get(name).Object, "status", "nominatedClusterNames")
		return slices.Equal(got, want)
	})
}

// TestHubWorkloads nominates clusters for Workloads of Kueue on a real API server, with exactly the rights of the guide: what
// Kueue has written stays, and Kueue can take the nomination back.
func TestHubWorkloads(t *testing.T) {
	h := startFleetHub(t)
	k := h.multiKueue("berlin", "paris", "rome")
	dir := t.TempDir()
	start := func() *process { return startServer(t, dir, h.flags("--gitops-multikueue")...) }
	p := start()
	for _, name := range []string{"berlin", "oslo", "paris", "rome"} {
		put(p, &api.Cluster{Metadata: api.Metadata{Name: name}})
	}
	place := func(name string, clusters ...string) {
		set := map[string]bool{}
		for _, cluster := range clusters {
			set[cluster] = true
		}
		put(p, hubPlacement(name, set, ""))
	}
	place("web", "rome", "oslo")
	place("batch", "paris")

	k.queue("waits", "batch", map[string]any{"scheduler/placement": "web"})
	k.queue("by-queue", "batch", nil)
	k.queue("elsewhere", "batch", nil)
	k.queue("lost", "unknown", nil)
	for name, check := range map[string]string{"waits": "mk", "by-queue": "mk", "elsewhere": "budget", "lost": "mk"} {
		if err := k.apply(name, reserved(check)); err != nil {
			t.Fatal(err)
		}
	}
	k.nominates("waits", "rome")
	k.nominates("by-queue", "paris")
	// Somebody else has written, too.
	if _, err := h.client.Resource(kueueWorkloads).Namespace("shop").ApplyStatus(t.Context(), "waits", &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": kueueWorkloads.GroupVersion().String(), "kind": "Workload", "metadata": map[string]any{"name": "waits", "namespace": "shop"},
		"status": map[string]any{"reclaimablePods": []any{map[string]any{"name": "main", "count": int64(1)}}},
	}}, metav1.ApplyOptions{FieldManager: "kueue-job"}); err != nil {
		t.Fatal(err)
	}
	place("web", "berlin", "paris")
	k.nominates("waits", "berlin", "paris")
	status := k.get("waits").Object["status"].(map[string]any)
	want := reserved("mk")
	maps.Copy(want, map[string]any{"nominatedClusterNames": []any{"berlin", "paris"}, "reclaimablePods": []any{map[string]any{"name": "main", "count": int64(1)}}})
	if !reflect.DeepEqual(status, want) {
		t.Errorf("the status is\n%v\nwant\n%v", status, want)
	}

	// Nothing is known of these.
	for _, stays := range []struct {
		say    string
		change func()
	}{
		{"has no clusters: ", func() {
			put(p, &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}, Spec: api.PlacementSpec{LabelConstraints: []string{"tier is none"}, RescheduleAfter: "0s"}})
		}},
		{"none of its clusters (oslo) is in MultiKueueConfig fleet", func() { place("web", "oslo") }},
		{"shop/web\\\" does not exist", func() {
			if err := p.client.Delete(t.Context(), api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}); err != nil {
				t.Fatal(err)
			}
		}},
	} {
		stays.change()
		eventually.True(t, "it is said: "+stays.say, func() bool { return strings.Contains(p.stderr.String(), stays.say) })
		k.nominates("waits", "berlin", "paris")
	}
	if log := p.stderr.String(); !strings.Contains(log, "unknown") || strings.Contains(log, "elsewhere") {
		t.Errorf("the log has\n%s", log)
	}

	// Killed, and the decision moves while the next one starts.
	p.kill()
	p = start()
	place("web", "rome")
	k.nominates("waits", "rome")

	// The cluster is known: what Kueue leaves out must be gone, or the API server refuses it.
	admitted := reserved("mk")
	admitted["clusterName"] = "rome"
	if err := k.apply("waits", admitted); err != nil {
		t.Fatal(err)
	}
	k.nominates("waits")
	version := k.get("waits").GetResourceVersion()
	place("web", "paris")
	place("batch", "berlin")
	k.nominates("by-queue", "berlin")
	if now := k.get("waits"); now.GetResourceVersion() != version {
		t.Errorf("a Workload with a cluster was changed: %v", now.Object["status"])
	}
	for _, name := range []string{"elsewhere", "lost"} {
		k.nominates(name)
	}
	zero := int64(0)
	put(p, &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "batch"}, Spec: api.PlacementSpec{NumberOfClusters: &zero, RescheduleAfter: "0s"}})
	k.nominates("by-queue")
}
