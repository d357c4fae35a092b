package publish

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

	"github.com/prometheus/client_golang/prometheus"
	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet/fleettest"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops/slicing"
	"github.com/scheduler/terraform-provider-scheduler/internal/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.SmallLogs()
	goleak.VerifyTestMain(m)
}

// world is a store with a fleet, and a hub.
type world struct {
	*fleettest.World
	t      *testing.T
	client *fake.FakeDynamicClient
	logs   logtest.Buffer

	mu     sync.Mutex
	writes int
	// refuse is called with the number of each write.
	refuse func(write int) error
}

func newWorld(t *testing.T, hubNamespaces ...string) *world {
	t.Helper()
	w := &world{World: fleettest.Start(t), t: t}
	kinds := map[schema.GroupVersionResource]string{namespaces: "NamespaceList"}
	for _, f := range formats {
		kinds[f.resource] = "PlacementDecisionList"
	}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), kinds)
	w.client.PrependReactor("*", "placementdecisions", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetVerb() == "list" || action.GetVerb() == "watch" {
			return false, nil, nil
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		w.writes++
		if w.refuse != nil {
			if err := w.refuse(w.writes); err != nil {
				return true, nil, err
			}
		}
		if create, ok := action.(clienttesting.CreateAction); ok && action.GetVerb() == "create" { // as an API server does
			unstructured.RemoveNestedField(create.GetObject().(*unstructured.Unstructured).Object, "status")
		}
		return false, nil, nil
	})
	for _, name := range hubNamespaces {
		w.namespace(name)
	}
	return w
}

func (w *world) namespace(name string) {
	w.t.Helper()
	u := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "Namespace"}}
	u.SetName(name)
	if err := w.client.Tracker().Create(namespaces, u, ""); err != nil {
		w.t.Fatal(err)
	}
}

// run runs a publisher until stop is called, or the test ends.
func (w *world) run(apis ...API) (p *Publisher, stop func()) {
	p = New(Options{
		Fleet: w.Fleet, Store: w.Store.Identity(), APIs: apis, Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
		Open: func() (dynamic.Interface, func(), error) { return w.client, func() {}, nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := p.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return p, stop
}

func placement(name string, clusters ...string) *api.Placement {
	p := &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: name, UID: name, Generation: 1}}
	p.SetDefaults()
	p.Status = api.PlacementStatus{ObservedGeneration: 1, Clusters: clusters}
	return p
}

func key(name string) api.Key { return api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name} }

// objects returns what is in the hub, as name [clusters].
func (w *world) objects(name API) string {
	w.t.Helper()
	f := formats[name]
	list, err := w.client.Resource(f.resource).Namespace("").List(context.Background(), metav1.ListOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	var all []string
	for i := range list.Items {
		o, ok := f.read(&list.Items[i])
		text := fmt.Sprint(list.Items[i].GetName(), " ", o.Clusters)
		if !ok || o.Hidden {
			text += " hidden"
		}
		all = append(all, text)
	}
	slices.Sort(all)
	return strings.Join(all, ", ")
}

// has waits until the hub has exactly these objects.
func (w *world) has(what string, name API, want string) {
	w.t.Helper()
	got := ""
	defer func() {
		if got != want {
			w.t.Errorf("%s: the hub has %q, want %q", what, got, want)
		}
	}()
	eventually.True(w.t, what, func() bool { got = w.objects(name); return got == want })
}

// idle waits until nothing is being written.
func (w *world) idle(p *Publisher) {
	w.t.Helper()
	eventually.True(w.t, "nothing is being written", func() bool { n, _ := p.writing.Count(); return n == 0 })
}

func TestDecisionsAreWritten(t *testing.T) {
	w := newWorld(t, "shop")
	w.Write(placement("web", "rome", "berlin"))
	p, _ := w.run(APIs...)
	w.has("what was decided before", OCM, "web-decision-1 [rome berlin]")
	w.has("what was decided before", Multicluster, "web-decision-1 [/rome /berlin]")
	w.Write(placement("web", "paris", "berlin"))
	w.has("a move", OCM, "web-decision-1 [paris berlin]")
	w.has("a move", Multicluster, "web-decision-1 [/paris /berlin]")

	undecided := placement("web", "oslo")
	undecided.Metadata.Generation = 2
	w.Write(undecided) // its decision answers an earlier generation
	fits := placement("web")
	fits.Status.Conditions = []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionFalse, Message: "no cluster fits"}}
	w.Write(fits)
	eventually.True(t, "it is kept", func() bool { return w.figure(p, "scheduler_gitops_decisions_kept") == 2 })
	w.has("nothing fits", OCM, "web-decision-1 [paris berlin]")

	none := placement("web")
	zero := int64(0)
	none.Spec.NumberOfClusters = &zero
	w.Write(none)
	w.has("the spec asks for none", OCM, "web-decision-1 []")
	w.has("the spec asks for none", Multicluster, "web-decision-1 []")
	w.Delete(key("web"))
	w.has("the placement is deleted", OCM, "")
	w.has("the placement is deleted", Multicluster, "")
	if n := w.figure(p, "scheduler_gitops_decisions_kept"); n != 0 {
		t.Errorf("%v are kept", n)
	}
}

// A decision is written as soon as the hub has the namespace of the placement, and before that it costs nothing.
func TestNamespaceOfTheHub(t *testing.T) {
	w := newWorld(t)
	w.Write(placement("web", "rome"))
	p, _ := w.run(OCM)
	eventually.True(t, "the hub is read", func() bool { p.mu.Lock(); defer p.mu.Unlock(); return p.begun[OCM] })
	if n, _ := p.writing.Count(); n != 0 || w.objects(OCM) != "" {
		t.Errorf("%d decisions are being written, the hub has %q", n, w.objects(OCM))
	}
	w.namespace("shop")
	w.has("the namespace is there", OCM, "web-decision-1 [rome]")
}

// What somebody changes or deletes is put right, and what was written for a placement that was deleted meanwhile goes.
func TestHubIsPutRight(t *testing.T) {
	w := newWorld(t, "shop")
	w.Write(placement("web", "rome"))
	w.Write(placement("old", "rome"))
	_, stop := w.run(OCM)
	w.has("all are written", OCM, "old-decision-1 [rome], web-decision-1 [rome]")
	stop()
	w.Delete(key("old"))
	p, _ := w.run(OCM)
	w.has("the next leader deletes what is over", OCM, "web-decision-1 [rome]")
	client := w.client.Resource(formats[OCM].resource).Namespace("shop")
	for what, change := range map[string]func(u *unstructured.Unstructured){
		"other clusters": func(u *unstructured.Unstructured) { _ = formats[OCM].put(u, []string{"oslo"}) },
		"another group":  func(u *unstructured.Unstructured) { label(u, map[string]string{ocmGroupIndexLabel: "x"}) },
		"another label":  func(u *unstructured.Unstructured) { label(u, map[string]string{ocmPlacementLabel: "x"}) },
	} {
		w.idle(p)
		list, err := client.List(t.Context(), metav1.ListOptions{})
		if err != nil || len(list.Items) != 1 {
			t.Fatal(list, err)
		}
		u := &list.Items[0]
		change(u)
		if err := w.client.Tracker().Update(formats[OCM].resource, u, "shop"); err != nil {
			t.Fatal(err)
		}
		eventually.True(t, what, func() bool {
			return strings.HasSuffix(w.objects(OCM), "[rome]") && !strings.Contains(w.objects(OCM), ",")
		})
	}
	w.idle(p)
	if err := w.client.Tracker().Delete(formats[OCM].resource, "shop", strings.Fields(w.objects(OCM))[0]); err != nil {
		t.Fatal(err)
	}
	w.has("it was deleted", OCM, "web-decision-1 [rome]")
}

// A cluster is named as its claim says, also when that changes.
func TestProfileOfACluster(t *testing.T) {
	w := newWorld(t, "shop")
	cluster := func(profile string) {
		c := &api.Cluster{Metadata: api.Metadata{Name: "rome", UID: "rome", Generation: 1}, Spec: api.ClusterSpec{Claims: map[string]string{gitops.ProfileClaim: profile}}}
		c.SetDefaults()
		w.Write(c)
	}
	cluster("fleet/rome-1")
	w.Write(placement("web", "rome", "oslo"))
	w.run(Multicluster)
	w.has("at first", Multicluster, "web-decision-1 [fleet/rome-1 /oslo]")
	cluster("fleet/rome-2")
	w.has("another profile", Multicluster, "web-decision-1 [fleet/rome-2 /oslo]")
	cluster("nonsense")
	w.has("not the name of a profile", Multicluster, "web-decision-1 [/rome /oslo]")
}

func TestDecisionGroups(t *testing.T) {
	w := newWorld(t, "shop")
	p := placement("web", "a", "b", "c")
	zero, one := int64(0), int64(1)
	p.Status.Decisions = []api.Decision{{Cluster: "a", Group: "canary", GroupIndex: &zero}, {Cluster: "b", GroupIndex: &one}, {Cluster: "c", GroupIndex: &one}}
	w.Write(p)
	w.run(APIs...)
	w.has("by group", OCM, "web-decision-1 [a], web-decision-2 [b c]")
	w.has("groups are of OCM", Multicluster, "web-decision-1 [/a /b /c]")
	list, err := w.client.Resource(formats[OCM].resource).Namespace("shop").List(t.Context(), metav1.ListOptions{LabelSelector: ocmPlacementLabel + "=web," + ocmGroupIndexLabel + "=0," + ocmGroupNameLabel + "=canary"})
	if err != nil || len(list.Items) != 1 || list.Items[0].GetName() != "web-decision-1" {
		t.Error(list, err)
	}
}

// Every write of a change fails once: what was begun is completed, by this leader or the next one, and at no time is a
// cluster missing that stays, or a decision visible that is not complete.
func TestInterruptedWritesAreCompleted(t *testing.T) {
	many := func(from, to int) (names []string) {
		for i := from; i < to; i++ {
			names = append(names, fmt.Sprintf("c%03d", i))
		}
		return names
	}
	before, after := many(0, 250), many(60, 160)
	for _, restarts := range []bool{false, true} {
		t.Run(fmt.Sprintf("with another leader %v", restarts), func(t *testing.T) {
			w := newWorld(t, "shop")
			for failing := 1; ; failing++ {
				name := fmt.Sprintf("web%d", failing)
				w.mu.Lock()
				w.refuse = nil
				w.mu.Unlock()
				w.Write(placement(name, before...))
				p, stop := w.run(OCM)
				eventually.True(t, "it is written", func() bool { return maps.Equal(w.visible(name), setOf(before)) })
				w.idle(p)
				w.mu.Lock()
				first, refused := w.writes, false
				w.refuse = func(write int) error {
					if write == first+failing {
						refused = true
						return apierrors.NewInternalError(errors.New("interrupted"))
					}
					return nil
				}
				w.mu.Unlock()
				w.Write(placement(name, after...))
				if restarts {
					eventually.True(t, "a write is refused, or all is written", func() bool {
						w.mu.Lock()
						over := refused
						w.mu.Unlock()
						return over || maps.Equal(w.visible(name), setOf(after))
					})
					stop()
					for cluster := range setOf(after) {
						if !w.visible(name)[cluster] {
							t.Errorf("%s is missing after write %d was refused", cluster, failing)
						}
					}
					p, stop = w.run(OCM)
				}
				eventually.True(t, "it is completed", func() bool { return maps.Equal(w.visible(name), setOf(after)) && len(w.slices(name)) == 1 })
				w.idle(p)
				stop()
				w.mu.Lock()
				all := !refused
				w.mu.Unlock()
				w.Delete(key(name))
				if all {
					if failing < 3 {
						t.Errorf("the change was only %d writes", failing-1)
					}
					return
				}
			}
		})
	}
}

func setOf(names []string) map[string]bool {
	set := map[string]bool{}
	for _, name := range names {
		set[name] = true
	}
	return set
}

func (w *world) slices(name string) (all []slicing.Slice) {
	w.t.Helper()
	list, err := w.client.Resource(formats[OCM].resource).Namespace("shop").List(context.Background(), metav1.ListOptions{LabelSelector: ocmPlacementLabel + "=" + name})
	if err != nil {
		w.t.Fatal(err)
	}
	for i := range list.Items {
		o, _ := formats[OCM].read(&list.Items[i])
		if o.Hidden {
			w.t.Errorf("%s is visible and not complete", list.Items[i].GetName())
		}
		all = append(all, o.Slice)
	}
	return all
}

func (w *world) visible(name string) map[string]bool {
	w.t.Helper()
	set := map[string]bool{}
	for _, s := range w.slices(name) {
		maps.Copy(set, setOf(s.Clusters))
	}
	return set
}

// A hub without the definition, or without rights, is a failure that says so, and what works goes on.
func TestFailureOfTheHub(t *testing.T) {
	w := newWorld(t, "shop")
	w.client.PrependReactor("list", "placementdecisions", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetResource().Group == formats[OCM].resource.Group {
			return false, nil, nil
		}
		return true, nil, apierrors.NewNotFound(action.GetResource().GroupResource(), "")
	})
	w.Write(placement("web", "rome"))
	p, _ := w.run(APIs...)
	w.has("the other API", OCM, "web-decision-1 [rome]")
	eventually.True(t, "the failure is said", func() bool {
		err := p.Failure()
		return err != nil && strings.Contains(err.Error(), "placementdecisions.multicluster.x-k8s.io v1alpha1: the API server does not know this resource") && strings.Contains(w.logs.String(), "decisions are not written")
	})
	if w.figure(p, "scheduler_gitops_decisions_connected") != 0 {
		t.Error("it counts as connected")
	}
	w.mu.Lock()
	w.refuse = func(int) error {
		return apierrors.NewForbidden(formats[OCM].resource.GroupResource(), "x", errors.New("no"))
	}
	w.mu.Unlock()
	w.Write(placement("web", "oslo"))
	eventually.True(t, "the failed write is said", func() bool { return strings.Contains(w.logs.String(), "the credentials may not do that") })
	eventually.True(t, "and counted", func() bool {
		return w.figure(p, "scheduler_gitops_decisions_failing") == 1 && w.figure(p, "scheduler_gitops_decision_writes_total") > 1
	})
	w.mu.Lock()
	w.refuse = nil
	w.mu.Unlock()
	w.has("it is tried again", OCM, "web-decision-1 [oslo]")
}

// figure returns the sum of a metric.
func (w *world) figure(p *Publisher, name string) (sum float64) {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(p.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		for _, metric := range family.GetMetric() {
			if family.GetName() == name {
				sum += metric.GetCounter().GetValue() + metric.GetGauge().GetValue()
			}
		}
	}
	return sum
}
