//go:build integration

package integration

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
)

// fleetHub is a Kubernetes cluster whose objects the server reads and writes.
type fleetHub struct {
	*control
	client dynamic.Interface
}

var (
	multiclusterDecisions = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "placementdecisions"}
	clusterProfiles       = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}
	ocmDecisions          = schema.GroupVersionResource{Group: "cluster.open-cluster-management.io", Version: "v1beta1", Resource: "placementdecisions"}
)

// startFleetHub starts a hub with the definitions in testdata/hub, and with the rights that the guide gives the server.
func startFleetHub(t *testing.T) *fleetHub {
	t.Helper()
	h := &fleetHub{control: startControl(t)}
	config, err := clientcmd.RESTConfigFromKubeConfig([]byte(h.kubeconfig(userTest).Reveal()))
	if err != nil {
		t.Fatal(err)
	}
	config.QPS, config.WarningHandler = -1, rest.NoWarnings{} // -1 = no limit
	if h.client, err = dynamic.NewForConfig(config); err != nil {
		t.Fatal(err)
	}
	definitions, err := filepath.Glob(filepath.Join("testdata", "hub", "*.yaml"))
	if err != nil || len(definitions) == 0 {
		t.Fatal(definitions, err)
	}
	for _, file := range append(definitions, filepath.Join("..", "examples", "kubernetes-hub", "rbac.yaml")) {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for part := range strings.SplitSeq(string(text), "\n---\n") {
			// A user with a certificate stands for the service account.
			part = strings.NewReplacer("kind: ServiceAccount", "kind: User\n    apiGroup: rbac.authorization.k8s.io", "\n    namespace: scheduler", "").Replace(part)
			object := map[string]any{}
			if err := yaml.Unmarshal([]byte(part), &object); err != nil {
				t.Fatal(file, err)
			}
			kind := object["kind"].(string)
			h.do(http.MethodPost, "/apis/"+object["apiVersion"].(string)+"/"+strings.ToLower(kind)+"s", object)
		}
	}
	h.do(http.MethodPost, "/api/v1/namespaces", document{"apiVersion": "v1", "kind": "Namespace", "metadata": document{"name": "shop"}})
	for _, resource := range []schema.GroupVersionResource{multiclusterDecisions, ocmDecisions, clusterProfiles, kueueWorkloads, kueueChecks, kueueConfigs} {
		eventually.True(t, resource.String()+" is defined", func() bool {
			_, err := h.client.Resource(resource).List(t.Context(), metav1.ListOptions{})
			if err != nil && !apierrors.IsNotFound(err) {
				t.Fatal(err)
			}
			return err == nil
		})
	}
	h.write("server.kubeconfig", []byte(h.kubeconfigIn(userServer).Reveal()))
	return h
}

// flags are those of a server that uses the hub, with exactly the rights of the guide.
func (h *fleetHub) flags(more ...string) []string {
	return append([]string{"--gitops-kubeconfig-file", filepath.Join(h.dir, "server.kubeconfig")}, more...)
}

// decisionWatcher sees the decision of a placement as its consumers do: all objects with its label together.
type decisionWatcher struct {
	t        *testing.T
	what     string
	clusters func(*unstructured.Unstructured) []string

	mu      sync.Mutex
	objects map[string][]string // guarded by mu: clusters by object
	staying map[string]bool     // guarded by mu: clusters that must not be missing
	least   int                 // guarded by mu: least number of clusters
	events  int                 // guarded by mu
}

// watch watches the decision of placement web in an API until the test ends.
func (h *fleetHub) watch(resource schema.GroupVersionResource, label string, clusters func(*unstructured.Unstructured) []string) *decisionWatcher {
	w := &decisionWatcher{t: h.t, what: resource.Group, clusters: clusters, objects: map[string][]string{}, staying: map[string]bool{}}
	var running sync.WaitGroup
	events, err := h.client.Resource(resource).Namespace("shop").Watch(h.t.Context(), metav1.ListOptions{LabelSelector: label + "=web", AllowWatchBookmarks: false})
	if err != nil {
		h.t.Fatal(err)
	}
	running.Go(func() {
		for event := range events.ResultChan() {
			w.take(event)
		}
	})
	h.t.Cleanup(func() { events.Stop(); running.Wait() })
	return w
}

func (w *decisionWatcher) take(event watch.Event) {
	w.mu.Lock()
	defer w.mu.Unlock()
	u, ok := event.Object.(*unstructured.Unstructured)
	if !ok && w.t.Context().Err() != nil {
		return // the test is over
	}
	if !ok {
		w.t.Errorf("%s: event %v %v", w.what, event.Type, event.Object)
		return
	}
	if w.events++; event.Type == watch.Deleted {
		delete(w.objects, u.GetName())
	} else {
		w.objects[u.GetName()] = w.clusters(u)
	}
	if n := len(w.objects[u.GetName()]); n > 100 {
		w.t.Errorf("%s: %s has %d clusters", w.what, u.GetName(), n)
	}
	now := w.seen()
	for cluster := range w.staying {
		if !now[cluster] {
			w.t.Errorf("%s: %s is missing after %s of %s", w.what, cluster, event.Type, u.GetName())
		}
	}
	if len(now) < w.least {
		w.t.Errorf("%s: %d clusters after %s of %s, want at least %d", w.what, len(now), event.Type, u.GetName(), w.least)
	}
}

// seen returns the clusters of all objects together. The caller holds the lock.
func (w *decisionWatcher) seen() map[string]bool {
	all := map[string]bool{}
	for _, clusters := range w.objects {
		for _, cluster := range clusters {
			all[cluster] = true
		}
	}
	return all
}

// expect says which clusters must not be missing from now on, and how many there must be at least.
func (w *decisionWatcher) expect(staying map[string]bool, least int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.staying, w.least = staying, least
}

// shows waits until the decision is exactly these clusters, each once, in as few objects as possible.
func (w *decisionWatcher) shows(want map[string]bool, objects int) {
	w.t.Helper()
	eventually.True(w.t, fmt.Sprintf("%s shows %d clusters", w.what, len(want)), func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		total := 0
		for _, clusters := range w.objects {
			total += len(clusters)
		}
		return total == len(want) && len(w.objects) == objects && maps.Equal(w.seen(), want)
	})
}

func multiclusterClusters(u *unstructured.Unstructured) (names []string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "decisions")
	for _, one := range list {
		name, _, _ := unstructured.NestedString(one.(map[string]any), "clusterProfileRef", "name")
		names = append(names, name)
	}
	return names
}

func ocmClusters(u *unstructured.Unstructured) (names []string) {
	list, _, _ := unstructured.NestedSlice(u.Object, "status", "decisions")
	for _, one := range list {
		names = append(names, one.(map[string]any)["clusterName"].(string))
	}
	return names
}

// TestHubDecisions changes a decision over 1,000 clusters at random, and kills the server in the middle: whoever watches
// its PlacementDecisions never misses a cluster that stays chosen, and what was begun is completed.
func TestHubDecisions(t *testing.T) {
	h := startFleetHub(t)
	dir := t.TempDir()
	start := func() *process { return startServer(t, dir, h.flags("--gitops-decisions", "multicluster,ocm")...) }
	p := start()
	names := make([]string, 1000)
	var group sync.WaitGroup
	for worker := range 8 {
		group.Go(func() {
			for i := worker; i < len(names); i += 8 {
				names[i] = fmt.Sprintf("c%03d", i)
				put(p, &api.Cluster{Metadata: api.Metadata{Name: names[i], Labels: map[string]string{"tenth": fmt.Sprint(i % 10)}}})
			}
		})
	}
	group.Wait()
	watchers := []*decisionWatcher{
		h.watch(multiclusterDecisions, "multicluster.x-k8s.io/decision-key", multiclusterClusters),
		h.watch(ocmDecisions, "cluster.open-cluster-management.io/placement", ocmClusters),
	}
	random := rand.New(rand.NewPCG(1, 2))
	before := map[string]bool{}
	for i := range 24 {
		after := map[string]bool{}
		for _, i := range random.Perm(len(names))[:[]int{1, 99, 100, 101, 350, 777, 1000}[random.IntN(7)]] {
			after[names[i]] = true
		}
		staying := maps.Clone(before)
		maps.DeleteFunc(staying, func(name string, _ bool) bool { return !after[name] })
		for _, w := range watchers {
			w.expect(staying, min(len(before), len(after)))
		}
		canary := ""
		if i%3 > 0 {
			canary = fmt.Sprint(random.IntN(10))
		}
		put(p, hubPlacement("web", after, canary))
		if i%6 == 5 {
			time.Sleep(time.Duration(random.IntN(20)) * time.Millisecond) //nolint:forbidigo // to a random moment of the writes
			p.kill()
			p = start()
		}
		watchers[0].shows(after, slicesFor(len(after)))
		in := 0
		for name := range after {
			if canary != "" && strings.HasSuffix(name, canary) {
				in++
			}
		}
		watchers[1].shows(after, slicesFor(in)+slicesFor(len(after)-in))
		before = after
	}
	for _, w := range watchers {
		w.mu.Lock()
		t.Logf("%s: %d events", w.what, w.events)
		w.mu.Unlock()
		w.expect(nil, 0)
	}
	if err := p.client.Delete(t.Context(), api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}); err != nil {
		t.Fatal(err)
	}
	for _, w := range watchers {
		w.shows(map[string]bool{}, 0)
	}
}

// slicesFor returns how many objects a number of clusters needs.
func slicesFor(clusters int) int { return (clusters + 99) / 100 }

// hubPlacement chooses exactly some clusters. Those whose label tenth is canary are a decision group of their own.
func hubPlacement(name string, clusters map[string]bool, canary string) *api.Placement {
	placement := &api.Placement{
		Metadata: api.Metadata{Namespace: "shop", Name: name},
		Spec:     api.PlacementSpec{ClusterNames: slices.Sorted(maps.Keys(clusters)), RescheduleAfter: "0s"},
	}
	if canary != "" {
		placement.Spec.DecisionStrategy = &api.DecisionStrategy{DecisionGroups: []api.DecisionGroup{
			{Name: "canary", LabelSelector: &api.LabelSelector{MatchLabels: map[string]string{"tenth": canary}}},
		}}
	}
	return placement
}

// TestHubObjectsOfOthers has PlacementDecisions that another controller, and another store, have made: they are never
// changed, and the server says why it cannot write its own.
func TestHubObjectsOfOthers(t *testing.T) {
	h := startFleetHub(t)
	foreign := map[string]map[string]any{
		"web-decision-1": {"cluster.open-cluster-management.io/placement": "other"},
		"db-decision-1":  {"app.kubernetes.io/managed-by": "scheduler-server", "scheduler/store": "ANOTHER", "scheduler/placement": "db"},
	}
	versions := map[string]string{}
	client := h.client.Resource(ocmDecisions).Namespace("shop")
	for name, labels := range foreign {
		u, err := client.Create(t.Context(), &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": ocmDecisions.GroupVersion().String(), "kind": "PlacementDecision", "metadata": map[string]any{"name": name, "labels": labels},
		}}, metav1.CreateOptions{})
		if err != nil {
			t.Fatal(err)
		}
		versions[name] = u.GetResourceVersion()
	}
	p := startServer(t, t.TempDir(), h.flags("--gitops-decisions", "ocm")...)
	put(p, &api.Cluster{Metadata: api.Metadata{Name: "rome"}})
	for _, name := range []string{"web", "db", "api"} {
		put(p, hubPlacement(name, map[string]bool{"rome": true}, ""))
	}
	eventually.True(t, "both failures are said, and the third is written", func() bool {
		log := p.stderr.String()
		_, err := client.Get(t.Context(), "api-decision-1", metav1.GetOptions{})
		return err == nil && strings.Contains(log, "create web-decision-1: there is a PlacementDecision of this name") && strings.Contains(log, "create db-decision-1: there is a PlacementDecision of this name")
	})
	for _, name := range []string{"web", "db"} {
		if err := p.client.Delete(t.Context(), api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name}); err != nil {
			t.Fatal(err)
		}
	}
	put(p, hubPlacement("later", map[string]bool{"rome": true}, ""))
	eventually.True(t, "a later decision is written", func() bool {
		u, err := client.Get(t.Context(), "later-decision-1", metav1.GetOptions{})
		return err == nil && slices.Equal(ocmClusters(u), []string{"rome"})
	})
	// A server on another store knows none of these placements, and owns none of their objects.
	p.stop()
	p = startServer(t, t.TempDir(), h.flags("--gitops-decisions", "ocm")...)
	put(p, &api.Cluster{Metadata: api.Metadata{Name: "rome"}})
	put(p, hubPlacement("new", map[string]bool{"rome": true}, ""))
	eventually.True(t, "the other server writes", func() bool {
		_, err := client.Get(t.Context(), "new-decision-1", metav1.GetOptions{})
		return err == nil
	})
	for _, name := range []string{"api-decision-1", "later-decision-1"} {
		if _, err := client.Get(t.Context(), name, metav1.GetOptions{}); err != nil {
			t.Error(err)
		}
	}
	for name, version := range versions {
		u, err := client.Get(t.Context(), name, metav1.GetOptions{})
		if err != nil || u.GetResourceVersion() != version {
			t.Errorf("%s of somebody else was changed: %v", name, err)
		}
	}
}

// profile creates or replaces a ClusterProfile with its status.
func (h *fleetHub) profile(name string, labels map[string]any, healthy, region string) {
	h.t.Helper()
	client := h.client.Resource(clusterProfiles).Namespace("shop")
	u, err := client.Apply(h.t.Context(), name, &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": clusterProfiles.GroupVersion().String(), "kind": "ClusterProfile",
		"metadata": map[string]any{"name": name, "labels": labels}, "spec": map[string]any{"clusterManager": map[string]any{"name": "test"}},
	}}, metav1.ApplyOptions{FieldManager: "test", Force: true})
	if err != nil {
		h.t.Fatal(err)
	}
	u.Object["status"] = map[string]any{
		"version":    map[string]any{"kubernetes": "v1.35.0"},
		"properties": []any{map[string]any{"name": "region.example.com", "value": region}},
		"conditions": []any{map[string]any{"type": "ControlPlaneHealthy", "status": healthy, "reason": "Test", "message": "", "lastTransitionTime": "2026-01-01T00:00:00Z"}},
	}
	if _, err := client.UpdateStatus(h.t.Context(), u, metav1.UpdateOptions{}); err != nil {
		h.t.Fatal(err)
	}
}

// TestHubProfiles makes clusters from ClusterProfiles: decisions follow as they come, change, fail and go, and name them.
func TestHubProfiles(t *testing.T) {
	h := startFleetHub(t)
	dir := t.TempDir()
	start := func() *process {
		return startServer(t, dir, h.flags("--gitops-cluster-profiles", "--gitops-decisions", "multicluster")...)
	}
	p := start()
	put(p, &api.Cluster{Metadata: api.Metadata{Name: "mine", Labels: map[string]string{"tier": "test"}}})
	put(p, &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}, Spec: api.PlacementSpec{
		LabelConstraints: []string{"tier is prod"}, RescheduleAfter: "0s",
	}})
	w := h.watch(multiclusterDecisions, "multicluster.x-k8s.io/decision-key", func(u *unstructured.Unstructured) (profiles []string) {
		list, _, _ := unstructured.NestedSlice(u.Object, "decisions")
		for _, one := range list {
			name, _, _ := unstructured.NestedString(one.(map[string]any), "clusterProfileRef", "name")
			namespace, _, _ := unstructured.NestedString(one.(map[string]any), "clusterProfileRef", "namespace")
			profiles = append(profiles, namespace+"/"+name)
		}
		return profiles
	})
	prod := map[string]any{"tier": "prod"}
	for _, name := range []string{"mine", "oslo", "paris", "rome"} {
		h.profile(name, prod, "True", "eu")
	}
	set := func(names ...string) map[string]bool {
		all := map[string]bool{}
		for _, name := range names {
			all["shop/"+name] = true
		}
		return all
	}
	w.shows(set("oslo", "paris", "rome"), 1)
	eventually.True(t, "the cluster has what the status of its profile says, which comes later", func() bool {
		rome := get[*api.Cluster](p, api.Key{Kind: api.KindCluster, Name: "rome"})
		return rome.Spec.Claims["region.example.com"] == "eu" && rome.Metadata.Declared
	})
	h.profile("rome", prod, "False", "eu")
	w.shows(set("oslo", "paris"), 1)
	h.profile("rome", prod, "True", "eu")
	w.shows(set("oslo", "paris", "rome"), 1)
	h.profile("paris", map[string]any{"tier": "test"}, "True", "eu")
	w.shows(set("oslo", "rome"), 1)
	p.stop()
	if err := h.client.Resource(clusterProfiles).Namespace("shop").Delete(t.Context(), "oslo", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	p = start()
	w.shows(set("rome"), 1)
	eventually.True(t, "the cluster goes with its profile", func() bool {
		_, err := p.client.Get(t.Context(), api.Key{Kind: api.KindCluster, Name: "oslo"})
		return client.IsNotFound(err)
	})
	mine := get[*api.Cluster](p, api.Key{Kind: api.KindCluster, Name: "mine"})
	if mine.Metadata.Labels["tier"] != "test" || mine.Metadata.Declared || len(mine.Spec.Claims) > 0 {
		t.Errorf("the cluster of a user was changed: %+v", mine)
	}
}
