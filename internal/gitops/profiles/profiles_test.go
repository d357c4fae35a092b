package profiles

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
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

// world is a store with a fleet, and a hub with profiles.
type world struct {
	*fleettest.World
	t      *testing.T
	client *fake.FakeDynamicClient
	logs   logtest.Buffer

	mu     sync.Mutex
	refuse error // the answer to lists
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{World: fleettest.Start(t), t: t}
	w.client = fake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{resource: "ClusterProfileList"})
	w.client.PrependReactor("list", "*", func(clienttesting.Action) (bool, runtime.Object, error) {
		w.mu.Lock()
		defer w.mu.Unlock()
		return w.refuse != nil, nil, w.refuse
	})
	return w
}

func (w *world) refuses(err error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.refuse = err
}

// run runs an importer until stop is called, or the test ends.
func (w *world) run() (i *Importer, stop func()) {
	i = New(Options{
		Fleet: w.Fleet, Store: w.Store, Codec: w.Codec, Now: time.Now, Logger: slog.New(slog.NewTextHandler(&w.logs, nil)),
		Open: func() (dynamic.Interface, func(), error) { return w.client, func() {}, nil },
	})
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		if err := i.Run(ctx); err != nil {
			w.t.Error(err)
		}
	})
	stop = func() { cancel(); running.Wait() }
	w.t.Cleanup(stop)
	return i, stop
}

// profile creates or changes a profile.
func (w *world) profile(namespace, name, rest string) {
	w.t.Helper()
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, "apiVersion: multicluster.x-k8s.io/v1alpha1\nkind: ClusterProfile\n%s", rest), &u.Object); err != nil {
		w.t.Fatal(err)
	}
	u.SetNamespace(namespace)
	u.SetName(name)
	u.SetUID(types.UID(namespace + "/" + name))
	err := w.client.Tracker().Create(resource, u, namespace)
	if apierrors.IsAlreadyExists(err) {
		err = w.client.Tracker().Update(resource, u, namespace)
	}
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) gone(namespace, name string) {
	w.t.Helper()
	if err := w.client.Tracker().Delete(resource, namespace, name); err != nil {
		w.t.Fatal(err)
	}
}

func (w *world) cluster(name string) *api.Cluster {
	entry := w.Fleet.Snapshot().Get(api.Key{Kind: api.KindCluster, Name: name})
	if entry == nil {
		return nil
	}
	return entry.Object.(*api.Cluster)
}

// is waits until a cluster is as wanted, in short: labels, claims and taints; "" = there is none.
func (w *world) is(name, want string) {
	w.t.Helper()
	got := ""
	defer func() {
		if got != want {
			w.t.Errorf("%s is %q, want %q", name, got, want)
		}
	}()
	eventually.True(w.t, name+" is "+want, func() bool { got = short(w.cluster(name)); return got == want })
}

func short(c *api.Cluster) string {
	if c == nil {
		return ""
	}
	taints := []string{}
	for _, t := range c.Spec.Taints {
		taints = append(taints, t.Key+"="+t.Value+":"+string(t.Effect))
	}
	return strings.TrimSpace(fmt.Sprint(c.Metadata.Labels, c.Spec.Claims, taints))
}

func declared(name string) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: name, Generation: 1, Labels: map[string]string{"by": "user"}}}
	c.SetDefaults()
	return c
}

const users = "map[by:user] map[] []"

func TestProfilesComeChangeAndGo(t *testing.T) {
	w := newWorld(t)
	w.profile("fleet", "rome", `
metadata: {labels: {tier: prod}}
spec: {displayName: "Rome, first floor", clusterManager: {name: ours}}
status:
  version: {kubernetes: v1.35.2}
  properties: [{name: region.example.com, value: it}, {name: "not a claim", value: x}]
  conditions: [{type: ControlPlaneHealthy, status: "True"}]
`)
	w.profile("fleet", "stays", "")
	_, stop := w.run()
	const claims = "map[kubeversion.open-cluster-management.io:v1.35.2 multicluster.x-k8s.io/cluster-profile:fleet/rome region.example.com:it]"
	w.is("rome", "map[tier:prod] "+claims+" []")
	first := *w.cluster("rome")
	if first.Spec.Description != "Rome, first floor" || !first.Metadata.Declared || first.Metadata.Generation != 1 || first.Metadata.UID == "" {
		t.Errorf("got %+v", first)
	}
	for _, c := range []struct{ status, want string }{
		{"False", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/rome] [multicluster.x-k8s.io/control-plane-unhealthy=False:NoSelect]"},
		{"Unknown", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/rome] [multicluster.x-k8s.io/control-plane-unhealthy=Unknown:NoSelectIfNew]"},
		{"True", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/rome] []"},
	} {
		w.profile("fleet", "rome", fmt.Sprintf("status: {conditions: [{type: Other, status: \"False\"}, {type: ControlPlaneHealthy, status: %q}]}", c.status))
		w.is("rome", c.want)
	}
	if now := w.cluster("rome"); now.Metadata.UID != first.Metadata.UID || now.Metadata.Generation != 4 {
		t.Errorf("UID %s, generation %d after three changes; it was %+v", now.Metadata.UID, now.Metadata.Generation, first.Metadata)
	}
	w.gone("fleet", "rome")
	w.is("rome", "")

	// What a user deletes is made again while its profile is there; what goes while nobody leads goes later.
	w.Delete(api.Key{Kind: api.KindCluster, Name: "stays"})
	w.is("stays", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/stays] []")
	w.profile("fleet", "oslo", "")
	w.is("oslo", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/oslo] []")
	stop()
	w.gone("fleet", "oslo")
	i, _ := w.run()
	w.is("oslo", "")
	if err := i.Failure(); err != nil {
		t.Error(err)
	}
	w.is("stays", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/stays] []")
}

// Clusters of users are never changed or deleted, nor are those that they have written since.
func TestClustersOfUsersStay(t *testing.T) {
	w := newWorld(t)
	w.Write(declared("rome"))
	w.profile("fleet", "rome", "metadata: {labels: {by: profile}}")
	w.profile("fleet", "oslo", "metadata: {labels: {by: profile}}")
	w.profile("fleet", "stays", "")
	w.run()
	w.is("oslo", "map[by:profile] map[multicluster.x-k8s.io/cluster-profile:fleet/oslo] []")
	eventually.True(t, "the refusal is said", func() bool {
		return strings.Contains(w.logs.String(), "profile=fleet/rome") && strings.Contains(w.logs.String(), "somebody has declared a cluster of its name")
	})
	w.Write(declared("oslo")) // a user adopts it
	w.profile("fleet", "oslo", "metadata: {labels: {by: another}}")
	w.gone("fleet", "rome")
	w.gone("fleet", "oslo")
	w.profile("fleet", "later", "")
	w.is("later", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/later] []")
	w.is("rome", users)
	w.is("oslo", users)
}

// Of two profiles with one name, the cluster stays that of the first one, until that goes.
func TestProfilesOfOneName(t *testing.T) {
	w := newWorld(t)
	w.profile("b", "rome", "")
	w.profile("x", "stays", "")
	i, _ := w.run()
	w.is("rome", "map[] map[multicluster.x-k8s.io/cluster-profile:b/rome] []")
	w.profile("a", "rome", "")
	eventually.True(t, "the second is refused", func() bool { i.mu.Lock(); defer i.mu.Unlock(); return i.refused["a/rome"] != "" })
	w.is("rome", "map[] map[multicluster.x-k8s.io/cluster-profile:b/rome] []")
	w.gone("b", "rome")
	w.is("rome", "map[] map[multicluster.x-k8s.io/cluster-profile:a/rome] []")
	eventually.True(t, "it is not refused any more", func() bool { i.mu.Lock(); defer i.mu.Unlock(); return len(i.refused) == 0 })
	w.profile("a", "dotted.name", "")
	eventually.True(t, "an invalid one is refused", func() bool {
		i.mu.Lock()
		defer i.mu.Unlock()
		return strings.Contains(i.refused["a/dotted.name"], "name")
	})
}

// A cluster does not go because its profile cannot be read, or because the hub has no profile at all.
func TestUnknownIsNotGone(t *testing.T) {
	w := newWorld(t)
	w.profile("fleet", "rome", "")
	w.profile("fleet", "oslo", "")
	_, stop := w.run()
	w.is("rome", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/rome] []")
	w.is("oslo", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/oslo] []")
	stop()
	w.gone("fleet", "rome")
	for what, err := range map[string]error{
		"without rights": apierrors.NewForbidden(resource.GroupResource(), "", errors.New("no")), "without the definition": apierrors.NewNotFound(resource.GroupResource(), ""),
	} {
		w.refuses(err)
		i, stop := w.run()
		eventually.True(t, what, func() bool { return i.Failure() != nil })
		stop()
		if w.cluster("rome") == nil {
			t.Fatalf("%s: the cluster is gone", what)
		}
	}
	w.refuses(nil)
	w.gone("fleet", "oslo")
	i, _ := w.run()
	eventually.True(t, "the empty hub is read", func() bool { i.mu.Lock(); defer i.mu.Unlock(); return i.begun })
	eventually.True(t, "it is said", func() bool { return strings.Contains(w.logs.String(), "has no ClusterProfile") })
	if w.cluster("rome") == nil || w.cluster("oslo") == nil {
		t.Fatal("an empty hub deletes all clusters")
	}
	w.profile("fleet", "oslo", "")
	w.is("rome", "")
	w.is("oslo", "map[] map[multicluster.x-k8s.io/cluster-profile:fleet/oslo] []")
}
