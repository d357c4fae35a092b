package dispatch

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
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
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/dynamic/fake"
	clienttesting "k8s.io/client-go/testing"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet/fleettest"
	"github.com/scheduler/terraform-provider-scheduler/internal/logtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

func TestMain(m *testing.M) {
	storetest.SmallLogs()
	goleak.VerifyTestMain(m)
}

// world is a store with a fleet, and a hub with Kueue.
type world struct {
	*fleettest.World
	t      *testing.T
	client *fake.FakeDynamicClient
	logs   logtest.Buffer

	mu     sync.Mutex
	writes int
	refuse func(write int) error // is called with the number of each write
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: fleettest.Start(t), t: t}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{
		workloads: "WorkloadList", checks: "AdmissionCheckList", configs: "MultiKueueConfigList",
	})
	w.client.PrependReactor("patch", "workloads", w.apply)
	return w
}

// apply replaces the status, as an API server does if nobody else has applied anything.
func (w *world) apply(action clienttesting.Action) (bool, runtime.Object, error) {
	patch, ok := action.(clienttesting.PatchAction)
	if !ok || patch.GetSubresource() != "status" || patch.GetPatchType() != types.ApplyPatchType {
		return true, nil, fmt.Errorf("unexpected %v", action)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.writes++
	if w.refuse != nil {
		if err := w.refuse(w.writes); err != nil {
			return true, nil, err
		}
	}
	var applied struct {
		Status map[string]any `json:"status"`
	}
	object, err := w.client.Tracker().Get(workloads, patch.GetNamespace(), patch.GetName())
	if err == nil {
		err = json.Unmarshal(patch.GetPatch(), &applied)
	}
	if err != nil {
		return true, nil, err
	}
	u := object.(*unstructured.Unstructured).DeepCopy()
	names := applied.Status["nominatedClusterNames"]
	status, _, _ := unstructured.NestedMap(u.Object, "status")
	if status["nominatedClusterNames"] = names; names == nil {
		delete(status, "nominatedClusterNames")
	}
	u.Object["status"] = status
	return true, u, w.client.Tracker().Update(workloads, u, u.GetNamespace())
}

// put creates or replaces objects of the hub.
func (w *world) put(manifest string) {
	w.t.Helper()
	for part := range strings.SplitSeq(manifest, "\n---\n") {
		u := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(part), &u.Object); err != nil {
			w.t.Fatal(err)
		}
		u.SetAPIVersion(workloads.GroupVersion().String())
		resource := workloads.GroupVersion().WithResource(strings.ToLower(u.GetKind()) + "s")
		if u.GetUID() == "" {
			u.SetUID(types.UID(u.GetKind() + u.GetName()))
		}
		err := w.client.Tracker().Create(resource, u, u.GetNamespace())
		if apierrors.IsAlreadyExists(err) {
			err = w.client.Tracker().Update(resource, u, u.GetNamespace())
		}
		if err != nil {
			w.t.Fatal(err)
		}
	}
}

// setup is a MultiKueue of three clusters.
const setup = `
kind: AdmissionCheck
metadata: {name: mk}
spec: {controllerName: kueue.x-k8s.io/multikueue, parameters: {kind: MultiKueueConfig, name: fleet}}
---
kind: AdmissionCheck
metadata: {name: other}
spec: {controllerName: example.com/budget}
---
kind: MultiKueueConfig
metadata: {name: fleet}
spec: {clusters: [berlin, paris, rome]}
`

// workload returns a Workload that waits for MultiKueue.
func workload(name, queue string, change func(*unstructured.Unstructured)) string {
	u := &unstructured.Unstructured{Object: map[string]any{
		"kind": "Workload", "metadata": map[string]any{"name": name, "namespace": "shop"}, "spec": map[string]any{"queueName": queue},
		"status": map[string]any{
			"conditions":      []any{map[string]any{"type": "QuotaReserved", "status": "True"}},
			"admissionChecks": []any{map[string]any{"name": "mk", "state": "Pending"}},
		},
	}}
	if change != nil {
		change(u)
	}
	text, err := yaml.Marshal(u.Object)
	if err != nil {
		panic(err)
	}
	return string(text)
}

func status(field string, value any) func(*unstructured.Unstructured) {
	return func(u *unstructured.Unstructured) {
		if err := unstructured.SetNestedField(u.Object, value, "status", field); err != nil {
			panic(err)
		}
	}
}

func condition(kind string) func(*unstructured.Unstructured) {
	return status("conditions", []any{map[string]any{"type": "QuotaReserved", "status": "True"}, map[string]any{"type": kind, "status": "True"}})
}

func placement(name string, clusters ...string) *api.Placement {
	p := &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: name, UID: name, Generation: 1}}
	p.SetDefaults()
	p.Status = api.PlacementStatus{ObservedGeneration: 1, Clusters: clusters}
	return p
}

// run runs a dispatcher until stop is called, or the test ends.
func (w *world) run() (d *Dispatcher, stop func()) {
	d = New(Options{
		Fleet: w.Fleet, Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
		Open: func() (dynamic.Interface, func(), error) { return w.client, func() {}, nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := d.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return d, stop
}

// nominated returns the clusters of a Workload.
func (w *world) nominated(name string) string {
	w.t.Helper()
	u, err := w.client.Resource(workloads).Namespace("shop").Get(context.Background(), name, metav1.GetOptions{})
	if err != nil {
		w.t.Fatal(err)
	}
	names, _, _ := unstructured.NestedStringSlice(u.Object, "status", "nominatedClusterNames")
	return strings.Join(names, " ")
}

// has waits until a Workload has these clusters.
func (w *world) has(what, name, want string) {
	w.t.Helper()
	got := ""
	defer func() {
		if got != want {
			w.t.Errorf("%s: %s has %q, want %q\n%s", what, name, got, want, w.logs.String())
		}
	}()
	eventually.True(w.t, what, func() bool { got = w.nominated(name); return got == want })
}

// figure returns the value of a metric without labels.
func (w *world) figure(d *Dispatcher, name string) float64 {
	w.t.Helper()
	registry := prometheus.NewRegistry()
	registry.MustRegister(d.Collectors()...)
	families, err := registry.Gather()
	if err != nil {
		w.t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == name {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	w.t.Fatalf("there is no %s", name)
	return 0
}

// TestNominationsFollowDecisions moves placements before and after Workloads come.
func TestNominationsFollowDecisions(t *testing.T) {
	w := newWorld(t)
	w.put(setup)
	w.Write(placement("web", "rome", "oslo", "berlin"))
	w.Write(placement("batch", "paris"))
	labeled := func(u *unstructured.Unstructured) { u.SetLabels(map[string]string{"scheduler/placement": "web"}) }
	w.put(workload("queued", "batch", nil))
	w.put(workload("labeled", "batch", labeled))
	d, _ := w.run()
	w.has("its queue names the placement", "queued", "paris")
	w.has("its label does, of whose clusters MultiKueue has two", "labeled", "berlin rome")
	w.Write(placement("web", "paris"))
	w.has("a move", "labeled", "paris")
	w.put(workload("later", "web", nil))
	w.has("a Workload that comes later", "later", "paris")
	w.put("kind: MultiKueueConfig\nmetadata: {name: fleet}\nspec: {clusters: [berlin, oslo, paris]}")
	w.Write(placement("web", "oslo"))
	w.has("MultiKueue has another cluster", "labeled", "oslo")

	none := placement("web")
	zero := int64(0)
	none.Spec.NumberOfClusters = &zero
	w.Write(none)
	w.has("the spec asks for none", "labeled", "")
	w.has("it stays with another placement", "queued", "paris")
	eventually.True(t, "nothing is left as it is", func() bool {
		return w.figure(d, "scheduler_gitops_workloads") == 3 && w.figure(d, "scheduler_gitops_workloads_kept") == 0
	})
	if log := w.logs.String(); log != "" {
		t.Errorf("the log has %s", log)
	}
}

// TestNominationsStay has decisions that are not known, each of which is said once.
func TestNominationsStay(t *testing.T) {
	undecided := placement("web", "rome")
	undecided.Metadata.Generation = 2
	fits := placement("web")
	fits.Status.Conditions = []api.Condition{{Type: api.ConditionScheduled, Status: api.ConditionFalse, Message: "no cluster has 400 CPUs"}}
	for _, test := range []struct {
		name, manifest string
		placement      *api.Placement
		say            string // "" = it goes away by itself
	}{
		{name: "no placement", say: `shop/web\" does not exist`},
		{name: "no cluster fits", placement: fits, say: "no cluster has 400 CPUs"},
		{name: "not decided yet", placement: undecided},
		{name: "clusters that MultiKueue does not have", placement: placement("web", "oslo", "lima"), say: "none of its clusters (oslo, lima) is in MultiKueueConfig fleet"},
		{name: "no MultiKueueConfig", placement: placement("web", "rome"), manifest: "kind: AdmissionCheck\nmetadata: {name: mk}\nspec: {controllerName: kueue.x-k8s.io/multikueue, parameters: {name: lost}}",
			say: `MultiKueueConfig \"lost\" does not exist`},
	} {
		t.Run(test.name, func(t *testing.T) {
			w := newWorld(t)
			w.put(setup)
			if test.manifest != "" {
				w.put(test.manifest)
			}
			if test.placement != nil {
				w.Write(test.placement)
			}
			for i := range 3 {
				w.put(workload(fmt.Sprint("w", i), "web", status("nominatedClusterNames", []any{"paris"})))
			}
			d, _ := w.run()
			eventually.True(t, "they are kept", func() bool { return w.figure(d, "scheduler_gitops_workloads_kept") == 3 })
			for i := range 3 {
				if got := w.nominated(fmt.Sprint("w", i)); got != "paris" {
					t.Errorf("w%d has %q", i, got)
				}
			}
			log := w.logs.String()
			if lines := strings.Count(log, "\n"); !strings.Contains(log, test.say) || test.say != "" && lines != 1 || test.say == "" && lines != 0 {
				t.Errorf("want %q once:\n%s", test.say, log)
			}
			w.put(setup)
			w.Write(placement("web", "berlin"))
			for i := range 3 {
				w.has("the decision is known", fmt.Sprint("w", i), "berlin")
			}
			if kept := w.figure(d, "scheduler_gitops_workloads_kept"); kept != 0 {
				t.Errorf("%v are kept", kept)
			}
		})
	}
}

// TestWorkloadsOfOthers has Workloads that are none of the dispatcher's business.
func TestWorkloadsOfOthers(t *testing.T) {
	w := newWorld(t)
	w.put(setup)
	w.Write(placement("web", "rome"))
	now := metav1.Now()
	others := map[string]func(*unstructured.Unstructured){
		"has a cluster":             status("clusterName", "paris"),
		"has no quota":              status("conditions", []any{map[string]any{"type": "QuotaReserved", "status": "False"}}),
		"has ended":                 condition("Finished"),
		"is being taken back":       condition("Evicted"),
		"is being deleted":          func(u *unstructured.Unstructured) { u.SetDeletionTimestamp(&now); u.SetFinalizers([]string{"a/b"}) },
		"waits for another":         status("admissionChecks", []any{map[string]any{"name": "other", "state": "Pending"}}),
		"waits for nobody any more": status("admissionChecks", []any{map[string]any{"name": "mk", "state": "Ready"}}),
		"has a check that is gone":  status("admissionChecks", []any{map[string]any{"name": "gone", "state": "Pending"}}),
	}
	for what, change := range others {
		w.put(workload(strings.ReplaceAll(what, " ", "-"), "web", change))
	}
	w.put(workload("ours", "web", status("admissionChecks", []any{map[string]any{"name": "other", "state": "Pending"}, map[string]any{"name": "mk", "state": "Pending"}})))
	d, _ := w.run()
	w.has("the one that waits", "ours", "rome")
	w.Write(placement("web", "berlin"))
	w.has("the one that waits", "ours", "berlin")
	for what := range others {
		if got := w.nominated(strings.ReplaceAll(what, " ", "-")); got != "" {
			t.Errorf("a Workload that %s has %q", what, got)
		}
	}
	w.put(workload("ours", "web", status("clusterName", "berlin")))
	eventually.True(t, "it waits no more", func() bool { d.mu.Lock(); defer d.mu.Unlock(); return len(d.wrote) == 0 })
	w.Write(placement("web", "rome"))
	w.put(workload("next", "web", nil))
	w.has("the next one", "next", "rome")
	if got := w.nominated("ours"); got != "" {
		t.Errorf("a Workload that has got a cluster has %q", got)
	}
}

// TestNominationIsTriedAgain has writes that fail, and one that somebody else comes before.
func TestNominationIsTriedAgain(t *testing.T) {
	w := newWorld(t)
	w.put(setup)
	w.Write(placement("web", "rome"))
	w.refuse = func(write int) error {
		if write == 1 {
			return apierrors.NewConflict(workloads.GroupResource(), "w", errors.New("changed"))
		}
		if write < 4 {
			return apierrors.NewForbidden(workloads.GroupResource(), "w", errors.New("secret"))
		}
		return nil
	}
	w.put(workload("w", "web", nil))
	d, _ := w.run()
	w.has("it succeeds at last", "w", "rome")
	eventually.True(t, "nothing fails", func() bool { return w.figure(d, "scheduler_gitops_workloads_failing") == 0 })
	if log := w.logs.String(); strings.Count(log, "it is tried again") != 1 || !strings.Contains(log, "may not do that (403)") {
		t.Errorf("got %s", log)
	}
}

// TestAnotherDispatcher replaces every nomination: the dispatcher says so, and does not write all the time.
func TestAnotherDispatcher(t *testing.T) {
	w := newWorld(t)
	w.put(setup)
	w.Write(placement("web", "rome"))
	w.put(workload("w", "web", nil))
	d, _ := w.run()
	all := status("nominatedClusterNames", []any{"berlin", "paris", "rome"})
	eventually.True(t, "it is said", func() bool {
		if w.nominated("w") == "rome" {
			w.put(workload("w", "web", all))
		}
		return strings.Contains(w.logs.String(), "set multiKueue.dispatcherName")
	})
	w.has("the last word", "w", "rome")
	eventually.True(t, "peace", func() bool { return w.figure(d, "scheduler_gitops_workloads_failing") == 0 })
	w.Write(placement("web", "paris"))
	w.has("a move is no quarrel", "w", "paris")
	if n := strings.Count(w.logs.String(), "tried again"); n != 1 {
		t.Errorf("it is said %d times", n)
	}
}

// TestLimitOfNominations nominates the best clusters of more than Kueue accepts.
func TestLimitOfNominations(t *testing.T) {
	w := newWorld(t)
	w.put(setup)
	var clusters []string
	for i := range 25 {
		clusters = append(clusters, fmt.Sprintf("c%02d", 24-i))
	}
	w.put("kind: MultiKueueConfig\nmetadata: {name: fleet}\nspec: {clusters: [" + strings.Join(clusters, ", ") + "]}")
	w.Write(placement("web", clusters...))
	w.put(workload("w", "web", nil))
	w.run()
	best := slices.Sorted(slices.Values(clusters[:20]))
	w.has("the best", "w", strings.Join(best, " "))
}
