package refresh

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet/fleettest"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/hub"
	"github.com/scheduler/terraform-provider-scheduler/internal/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.SmallLogs()
	goleak.VerifyTestMain(m)
}

// world is a store with a fleet, and a cluster of controllers.
type world struct {
	*fleettest.World
	t         *testing.T
	client    *fake.FakeDynamicClient
	logs      logtest.Buffer
	refresher *Refresher

	mu      sync.Mutex
	told    map[string]int
	refuse  error // the answer to patches
	opening error // of the connection
}

func newWorld(t *testing.T, manifests ...string) *world {
	t.Helper()
	w := &world{World: fleettest.Start(t), t: t, told: map[string]int{}}
	kinds := map[schema.GroupVersionResource]string{resources[argocd]: "ApplicationSetList", resources[flux]: "ResourceSetInputProviderList"}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	w.client.PrependReactor("patch", "*", func(action clienttesting.Action) (bool, runtime.Object, error) {
		patch := action.(clienttesting.PatchAction)
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.refuse != nil {
			return true, nil, w.refuse
		}
		switch text := string(patch.GetPatch()); {
		case strings.Contains(text, `application-set-refresh":"true"`), strings.Contains(text, "reconcile.fluxcd.io/requestedAt"):
			w.told[patch.GetNamespace()+"/"+patch.GetName()]++
		}
		return false, nil, nil
	})
	for _, manifest := range manifests {
		w.create(manifest)
	}
	w.refresher = New(Options{Fleet: w.Fleet, Logger: slog.New(slog.NewTextHandler(&w.logs, nil)), Open: func() (dynamic.Interface, func(), error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.client, func() {}, w.opening
	}})
	return w
}

// run runs the refresher until the test ends.
func (w *world) run() {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := w.refresher.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	w.t.Cleanup(func() { cancel(); running.Wait() })
}

func (w *world) create(manifest string) {
	w.t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(manifest), &object.Object); err != nil {
		w.t.Fatal(err)
	}
	resource := resources[argocd]
	if object.GetKind() == "ResourceSetInputProvider" {
		resource = resources[flux]
	}
	if err := w.client.Tracker().Create(resource, object, object.GetNamespace()); err != nil {
		w.t.Fatal(err)
	}
}

// tells waits until exactly these objects have been told since the last call, at least once each.
func (w *world) tells(what string, names ...string) {
	w.t.Helper()
	slices.Sort(names)
	eventually.True(w.t, what, func() bool {
		w.mu.Lock()
		defer w.mu.Unlock()
		for _, name := range names {
			if w.told[name] == 0 {
				return false
			}
		}
		return true
	})
	w.idle() // several changes may be told one after the other
	w.mu.Lock()
	defer w.mu.Unlock()
	if got := slices.Sorted(maps.Keys(w.told)); !slices.Equal(got, names) {
		w.t.Errorf("%s: told %v, want %v", what, w.told, names)
	}
	w.told = map[string]int{}
}

// idle waits until nothing is being told.
func (w *world) idle() {
	w.t.Helper()
	eventually.True(w.t, "nothing waits", func() bool {
		waiting, _ := w.refresher.telling.Count()
		return waiting == 0
	})
}

func placement(namespace, name string, labels map[string]string, clusters ...string) *api.Placement {
	p := &api.Placement{Metadata: api.Metadata{Namespace: namespace, Name: name, UID: name, Labels: labels}}
	p.SetDefaults()
	p.Status = api.PlacementStatus{ObservedGeneration: 1, Clusters: clusters}
	return p
}

func workload(name, policy string, clusters ...string) *api.Workload {
	w := &api.Workload{Metadata: api.Metadata{Namespace: "shop", Name: name, UID: name}, Spec: api.WorkloadSpec{APIVersion: "apps/v1", Kind: "Deployment"}}
	w.SetDefaults()
	w.Status = api.WorkloadStatus{ObservedGeneration: 1, Policy: policy}
	for _, cluster := range clusters {
		w.Status.Clusters = append(w.Status.Clusters, api.WorkloadCluster{Name: cluster})
	}
	return w
}

func applicationSet(name, generators string) string {
	return fmt.Sprintf("apiVersion: argoproj.io/v1alpha1\nkind: ApplicationSet\nmetadata: {name: %s, namespace: argocd}\nspec: {generators: [%s]}", name, generators)
}

func plugin(parameters string) string {
	return "{plugin: {configMapRef: {name: scheduler}, input: {parameters: " + parameters + "}}}"
}

func provider(name, query string) string {
	return fmt.Sprintf("apiVersion: fluxcd.controlplane.io/v1\nkind: ResourceSetInputProvider\nmetadata: {name: %s, namespace: flux}\nspec: {type: ExternalService, url: 'https://scheduler/integrations/flux/shop/inputs?%s'}", name, query)
}

// Each object is told about the decisions that it asks for, and about no others.
func TestTellsThoseWhoAsk(t *testing.T) {
	w := newWorld(t,
		applicationSet("web", plugin("{namespace: shop, name: web}")),
		applicationSet("web-anywhere", plugin("{name: web}")),
		applicationSet("in-a-matrix", "{matrix: {generators: [{list: {}}, {merge: {generators: ["+plugin("{namespace: shop, name: web}")+"]}}]}}"),
		applicationSet("labels", plugin("{namespace: shop, selector: {app: web}}")),
		applicationSet("workload", plugin("{kind: workload, namespace: shop, name: api}")),
		applicationSet("policy", plugin("{kind: policy, namespace: shop, name: all}")),
		applicationSet("another-plugin", plugin("{name: web, environment: prod}")),
		applicationSet("a-list", "{list: {elements: [{name: web}]}}"),
		strings.Replace(applicationSet("named", plugin("{namespace: shop, name: '{{.name}}'}")), "metadata: {", "metadata: {annotations: {scheduler/decisions: 'placement/shop/db, workload/shop/api'}, ", 1),
		provider("web", "name=web"), provider("labels", "selector=app%3Dweb"), provider("policy", "kind=policy&name=all"), provider("broken", "selector=x"),
		strings.Replace(provider("git", "name=web"), "ExternalService", "GitHubBranch", 1),
	)
	w.run()
	w.tells("all are told once at the beginning", "argocd/web", "argocd/web-anywhere", "argocd/in-a-matrix", "argocd/labels", "argocd/workload", "argocd/policy", "argocd/named", "flux/web", "flux/labels", "flux/policy")

	w.Write(placement("shop", "web", nil, "paris"))
	w.tells("a placement is decided", "argocd/web", "argocd/web-anywhere", "argocd/in-a-matrix", "flux/web")
	w.Write(placement("other", "web", nil, "paris"))
	w.tells("one of another namespace", "argocd/web-anywhere")
	w.Write(placement("shop", "labeled", map[string]string{"app": "web"}, "paris"))
	w.tells("one with labels", "argocd/labels", "flux/labels")
	w.Write(placement("shop", "labeled", nil, "paris"))
	w.tells("one that loses its labels", "argocd/labels", "flux/labels")
	w.Write(placement("shop", "db", nil, "paris"))
	w.tells("one in an annotation", "argocd/named")
	w.Write(workload("api", "", "paris"))
	w.tells("a workload", "argocd/workload", "argocd/named")
	w.Write(workload("api", "shop/all", "paris"))
	w.tells("a workload that a policy claims", "argocd/workload", "argocd/named", "argocd/policy", "flux/policy")

	// What does not change the answer is not told. The last change shows that the others are over.
	same := placement("shop", "web", nil, "paris")
	same.Status.Conditions = []api.Condition{{Type: api.ConditionSatisfied, Status: api.ConditionTrue}}
	w.Write(same)
	w.create(applicationSet("later", plugin("{namespace: shop, name: later}")))
	eventually.True(t, "the new ApplicationSet is known", func() bool { return w.refresher.index.Load().names[name{argocd, "argocd", "later"}] })
	w.Write(placement("shop", "later", nil, "rome"))
	w.tells("only one that was created later", "argocd/later")
	w.Delete(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "later"})
	w.tells("its placement is deleted", "argocd/later")
}

// Argo CD sees the annotation only when it is added, and it stays after a refresh that failed.
func TestAnnotationIsRemovedAndSetAgain(t *testing.T) {
	w := newWorld(t, applicationSet("web", plugin("{namespace: shop, name: web}")))
	w.run()
	w.tells("at the beginning", "argocd/web")
	var patches []string
	for _, action := range w.client.Actions() {
		if patch, ok := action.(clienttesting.PatchAction); ok {
			patches = append(patches, string(patch.GetPatch()))
		}
	}
	if len(patches) != 2 || !strings.Contains(patches[0], "refresh\":null") || !strings.Contains(patches[1], "refresh\":\"true\"") {
		t.Errorf("got %v", patches)
	}
}

// While the cluster refuses, changes wait, decisions do not, and later each object is told.
func TestTriesAgain(t *testing.T) {
	w := newWorld(t, applicationSet("web", plugin("{namespace: shop, name: web}")), applicationSet("gone", plugin("{namespace: shop, name: web}")), provider("web", "name=web"))
	w.opening = errors.New("the kubeconfig is not mounted yet")
	w.run()
	eventually.True(t, "the failure is said", func() bool {
		return w.refresher.Failure() != nil && strings.Contains(w.logs.String(), "not mounted yet")
	})
	w.mu.Lock()
	w.refuse = apierrors.NewServiceUnavailable("starting")
	w.opening = nil
	w.mu.Unlock()
	eventually.True(t, "a request fails", func() bool { return w.figure("scheduler_gitops_refreshes_total failed") > 0 })
	for i := range 20 {
		w.Write(placement("shop", "web", nil, fmt.Sprintf("c%d", i))) // returns although nobody can be told
	}
	if err := w.client.Tracker().Delete(resources[argocd], "argocd", "gone"); err != nil {
		t.Fatal(err)
	}
	w.mu.Lock()
	w.refuse = nil
	w.mu.Unlock()
	w.tells("the cluster takes requests again", "argocd/web", "flux/web")
	if err := w.refresher.Failure(); err != nil {
		t.Error(err)
	}
	if n := w.figure("scheduler_gitops_objects"); n != 2 {
		t.Errorf("%v objects, want 2", n)
	}
	if !strings.Contains(w.logs.String(), "told about decisions again") {
		t.Errorf("the log does not say that it works again:\n%s", w.logs.String())
	}
}

// A cluster without one of the controllers is not a failure; one without rights is.
func TestFailureOfTheCluster(t *testing.T) {
	w := newWorld(t, provider("web", "name=web"))
	w.client.PrependReactor("list", "applicationsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewNotFound(resources[argocd].GroupResource(), "")
	})
	w.run()
	w.tells("Flux is told without Argo CD", "flux/web")
	if err := w.refresher.Failure(); err != nil {
		t.Errorf("got %v", err)
	}

	forbidden := newWorld(t)
	forbidden.client.PrependReactor("list", "applicationsets", func(clienttesting.Action) (bool, runtime.Object, error) {
		return true, nil, apierrors.NewForbidden(resources[argocd].GroupResource(), "", errors.New("no"))
	})
	forbidden.run()
	eventually.True(t, "the failure is said", func() bool {
		err := forbidden.refresher.Failure()
		return err != nil && strings.Contains(err.Error(), "may not list and watch") && strings.Contains(forbidden.logs.String(), "not told about decisions")
	})
	if n := forbidden.figure("scheduler_gitops_connected"); n != 0 {
		t.Errorf("it counts as connected")
	}
}

// figure returns the sum of a metric, of the series that have the label value after its name if there is one.
func (w *world) figure(name string) float64 {
	w.t.Helper()
	name, value, _ := strings.Cut(name, " ")
	registry := prometheus.NewRegistry()
	registry.MustRegister(w.refresher.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() != name || value != "" && !strings.Contains(metric.String(), `"`+value+`"`) {
				continue
			}
			sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
		}
	}
	return sum
}

// While many decisions change, an object is told about all of them together.
func TestChangesAreToldTogether(t *testing.T) {
	w := newWorld(t, applicationSet("web", plugin("{namespace: shop, name: web}")))
	w.run()
	w.tells("at the beginning", "argocd/web")
	began := time.Now()
	for i := range 200 {
		w.Write(placement("shop", "web", nil, fmt.Sprintf("c%d", i)))
	}
	w.idle()
	w.mu.Lock()
	defer w.mu.Unlock()
	if most := 2 + int(time.Since(began)/hub.Apart); w.told["argocd/web"] > most {
		t.Errorf("told %d times within %s, want at most %d", w.told["argocd/web"], time.Since(began), most)
	}
}
