package runner

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/webhook"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// cluster is an API server that only has empty webhook configurations, and rejects changes to them.
type cluster struct {
	*httptest.Server
	mu      sync.Mutex
	removed int
	written int
	refuses bool
	failing int           // number of removals that will still fail
	hold    chan struct{} // delays removals until it is closed
	event   chan struct{} // receives after each request
}

func startCluster(t *testing.T) *cluster {
	t.Helper()
	c := &cluster{event: make(chan struct{}, 1)}
	c.Server = httptest.NewServer(http.HandlerFunc(c.serve))
	t.Cleanup(c.Close)
	return c
}

func (c *cluster) serve(w http.ResponseWriter, r *http.Request) {
	c.mu.Lock()
	fails := false
	hooks := strings.Contains(r.URL.Path, "webhookconfigurations")
	switch {
	case hooks && r.Method == http.MethodDelete:
		c.removed++
		fails = c.failing > 0
		c.failing--
	case hooks && r.Method != http.MethodGet:
		c.written++
	}
	refuses, hold := c.refuses, c.hold
	c.mu.Unlock()
	select {
	case c.event <- struct{}{}:
	default:
	}
	w.Header().Set("Content-Type", "application/json")
	if hooks && r.Method == http.MethodDelete && hold != nil {
		<-hold
	}
	answer := func(code int, reason string) {
		w.WriteHeader(code)
		_, _ = fmt.Fprintf(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":%q,"code":%d,"message":"no"}`, reason, code)
	}
	switch last := r.URL.Path[strings.LastIndexByte(r.URL.Path, '/')+1:]; {
	case fails:
		answer(http.StatusInternalServerError, "InternalError")
	case hooks && r.Method == http.MethodGet:
		kind := "MutatingWebhookConfiguration"
		if strings.Contains(r.URL.Path, "validating") {
			kind = "ValidatingWebhookConfiguration"
		}
		_, _ = fmt.Fprintf(w, `{"apiVersion":"admissionregistration.k8s.io/v1","kind":%q,"metadata":{"name":"scheduler-distribution","uid":"u","resourceVersion":"1"}}`, kind)
	case hooks && r.Method != http.MethodDelete:
		answer(http.StatusForbidden, "Forbidden")
	case hooks, r.Method != http.MethodGet:
		answer(http.StatusNotFound, "NotFound")
	case refuses:
		answer(http.StatusUnauthorized, "Unauthorized")
	case r.URL.Query().Get("watch") != "" && r.URL.Query().Get("sendInitialEvents") == "true":
		answer(http.StatusBadRequest, "Invalid")
	case r.URL.Query().Get("watch") != "":
		w.WriteHeader(http.StatusOK)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	default:
		kinds := map[string]string{
			"pods": "v1/PodList", "nodes": "v1/NodeList", "namespaces": "v1/NamespaceList",
			"deployments": "apps/v1/DeploymentList", "statefulsets": "apps/v1/StatefulSetList", "replicasets": "apps/v1/ReplicaSetList",
		}
		kind, ok := kinds[last]
		if !ok {
			answer(http.StatusNotFound, "NotFound")
			return
		}
		at := strings.LastIndexByte(kind, '/')
		_, _ = fmt.Fprintf(w, `{"apiVersion":%q,"kind":%q,"metadata":{"resourceVersion":"1"},"items":[]}`, kind[:at], kind[at+1:])
	}
}

func (c *cluster) counts() (removed, written int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.removed, c.written
}

func (c *cluster) kubeconfig(token string) api.Secret {
	return api.NewSecret(fmt.Sprintf(`{"apiVersion":"v1","kind":"Config","current-context":"x",
"clusters":[{"name":"x","cluster":{"server":%q}}],"users":[{"name":"x","user":{"token":%q}}],
"contexts":[{"name":"x","context":{"cluster":"x","user":"x"}}]}`, c.URL, token))
}

// authority is one that every cluster trusts.
type authority struct{}

func (authority) Bundle() ([]byte, <-chan struct{}) { return []byte("bundle"), nil }
func (authority) Secret(uid string) string          { return "secret-" + uid }

// statuses records what is observed of clusters.
type statuses struct {
	mu   sync.Mutex
	last map[string]api.Condition
}

func (s *statuses) ObservedSpot(cluster, _ string, _ *api.SpotStatus, condition api.Condition) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last[cluster] = condition
}

// bench is a runner that gets its input from the test.
type bench struct {
	t *testing.T
	*Runner
	statuses *statuses
	ctx      context.Context
	gone     []string
}

func newBench(t *testing.T) *bench {
	t.Helper()
	b := &bench{t: t, statuses: &statuses{last: map[string]api.Condition{}}}
	b.Runner = New(Options{
		Kubernetes: informer.NewGroup(kube.New(addresspolicy.OnLoopback(), nil), nil),
		Fleet:      fleet.New(fleet.Options{}), Clusters: b.statuses, Workloads: &sink{}, Authority: authority{}, WebhookURL: "https://scheduler.example.com:8443",
		Gone: func(name string) { b.gone = append(b.gone, name) },
	})
	ctx, cancel := context.WithCancel(context.Background())
	b.ctx = ctx
	ended := make(chan struct{})
	go func() { defer close(ended); _ = b.running.Run(ctx) }()
	t.Cleanup(func() { cancel(); <-ended })
	return b
}

// eventually waits for the work of other goroutines.
func (b *bench) eventually(what string, ok func() bool) {
	b.t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	timeout := time.After(eventually.Limit)
	for !ok() {
		select {
		case <-tick.C:
		case <-timeout:
			b.t.Fatalf("timeout: %s", what)
		}
	}
}

func (b *bench) enable(c *cluster, uid, token string, alter ...func(*target)) {
	t := target{uid: uid, kubeconfig: c.kubeconfig(token), label: api.DefaultNodeTypeKey, enabled: true}
	for _, f := range alter {
		f(&t)
	}
	b.putTarget("a", t)
}

func (b *bench) synced() bool { _, err := b.connected("a"); return err == nil }

// TestInstalledAndRemoved checks that the installation in a cluster is removed when spot is disabled there, and only
// then.
func TestInstalledAndRemoved(t *testing.T) {
	for _, test := range []struct {
		name    string
		do      func(b *bench, c *cluster)
		removed bool
		splits  bool
	}{
		{"no change", func(b *bench, c *cluster) { b.enable(c, "1", "one") }, false, true},
		{"kubeconfig rotated", func(b *bench, c *cluster) { b.enable(c, "1", "two") }, false, true},
		{"another node type key", func(b *bench, c *cluster) { b.enable(c, "1", "one", func(t *target) { t.label = "k" }) }, false, true},
		{"recreate", func(b *bench, c *cluster) { b.enable(c, "1", "one", func(t *target) { t.recreate = true }) }, false, true},
		{"disabled", func(b *bench, c *cluster) { b.enable(c, "1", "one", func(t *target) { t.enabled = false }) }, true, false},
		{"deleted", func(b *bench, _ *cluster) { b.putTarget("a", target{}) }, true, false},
		{"other cluster of the same name", func(b *bench, c *cluster) { b.enable(c, "2", "one") }, true, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			c, b := startCluster(t), newBench(t)
			b.enable(c, "1", "one")
			b.eventually("it is connected", b.synced)
			old := b.agent("a")
			test.do(b, c)
			if now := b.agent("a"); now != old {
				b.eventually("the old one has ended", func() bool {
					select {
					case <-old.done:
						return true
					default:
						return false
					}
				})
			}
			if removed, _ := c.counts(); (removed > 0) != test.removed {
				t.Errorf("%d configurations removed", removed)
			}
			if _, ok := b.Cluster("a"); ok != test.splits || (len(b.gone) == 0) != test.splits {
				t.Errorf("served by the webhook: %t; removed from it: %v", ok, b.gone)
			}
			if test.splits {
				b.eventually("it is connected again", b.synced)
			} else if err := b.Interrupt(t.Context(), "a", "n", time.Now()); !errors.Is(err, spot.ErrNotEnabled) {
				t.Errorf("Interrupt: %v", err)
			}
		})
	}
}

// TestDeletedAndBack: a cluster that is registered again while it is still being removed
// is begun with afterwards.
func TestDeletedAndBack(t *testing.T) {
	c, b := startCluster(t), newBench(t)
	b.enable(c, "1", "one")
	b.eventually("it is connected", b.synced)
	c.mu.Lock()
	c.hold = make(chan struct{})
	hold := c.hold
	c.mu.Unlock()
	old := b.agent("a")
	b.putTarget("a", target{})
	b.eventually("it is being removed", func() bool { removed, _ := c.counts(); return removed > 0 })
	b.enable(c, "2", "one")
	again := b.agent("a")
	again.mu.Lock()
	if again.inventory != nil {
		t.Error("the new agent started before the old one ended")
	}
	again.mu.Unlock()
	_, before := c.counts()
	close(hold)
	b.eventually("it is connected again", b.synced)
	select {
	case <-old.done:
	default:
		t.Error("the new agent connected before the old one ended")
	}
	b.eventually("it is installed again", func() bool { _, written := c.counts(); return written > before })
}

// TestQuestions: what is asked about a cluster in which nothing is split, that is not
// reached, or does not have the node.
func TestQuestions(t *testing.T) {
	c, b := startCluster(t), newBench(t)
	check := func(what string, want error) {
		t.Helper()
		_, err := b.Distributions("a")
		for call, err := range map[string]error{
			"Distributions": err, "Interrupt": b.Interrupt(t.Context(), "a", "n", time.Now()), "Withdraw": b.Withdraw(t.Context(), "a", "n"),
		} {
			if call == "Distributions" && errors.Is(want, spot.ErrNoNode) {
				want := error(nil)
				if !errors.Is(err, want) {
					t.Errorf("%s: %s: %v", what, call, err)
				}
				continue
			}
			if !errors.Is(err, want) {
				t.Errorf("%s: %s: %v, want %v", what, call, err, want)
			}
		}
	}
	check("unknown", spot.ErrNotEnabled)
	c.refuses = true
	b.enable(c, "1", "one")
	b.eventually("it is refused", func() bool {
		b.statuses.mu.Lock()
		defer b.statuses.mu.Unlock()
		return b.statuses.last["a"].Reason == api.ReasonUnauthorized
	})
	check("refused", spot.ErrNotConnected)
	if a, ok := b.Cluster("a"); !ok || a.Secret() != "secret-1" {
		t.Errorf("unexpected agent %v", a)
	} else {
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if got := a.Assign(ctx, webhook.Creation{}); got.Type != split.Unset {
			t.Errorf("a pod is for %s before anything is known", got.Type)
		}
	}
	c.mu.Lock()
	c.refuses = false
	c.mu.Unlock()
	b.eventually("it is connected", b.synced)
	check("connected", spot.ErrNoNode)
	b.putTarget("a", target{uid: "1", kubeconfig: api.NewSecret("{"), enabled: true})
	b.eventually("the kubeconfig is found to be wrong", func() bool {
		b.statuses.mu.Lock()
		defer b.statuses.mu.Unlock()
		return b.statuses.last["a"].Reason == api.ReasonInvalidKubeconfig
	})
	check("a wrong kubeconfig", spot.ErrNotConnected)
}

// TestAdmitOnly checks that a server that is not the leader follows clusters, for the pods that it admits, but changes
// and reports nothing.
func TestAdmitOnly(t *testing.T) {
	c, b := startCluster(t), newBench(t)
	b.AdmitOnly, b.Clusters, b.Workloads = true, nil, nil
	put := func(enabled bool) {
		b.putCluster(&api.Cluster{
			Metadata: api.Metadata{Name: "a", UID: "1"},
			Spec: api.ClusterSpec{
				Kubernetes: &api.KubernetesSpec{Kubeconfig: c.kubeconfig("one")},
				Spot:       &api.SpotSpec{Enabled: enabled, NodeTypeKey: api.DefaultNodeTypeKey, OnDisable: api.OnDisableRecreate},
			},
		})
	}
	put(true)
	b.eventually("it is connected", b.synced)
	admits, ok := b.Cluster("a")
	if !ok || admits.Secret() != "secret-1" {
		t.Fatalf("the cluster does not admit pods: %v", ok)
	}
	b.putWorkload(workload("web", custom("1"), on("a", 2, 1), on("b", 2, 1)))
	b.deliver()
	put(false)
	if _, ok := b.Cluster("a"); ok || b.agent("a") != nil {
		t.Error("pods of a cluster with spot disabled are admitted")
	}
	b.enable(c, "2", "no") // and a cluster that it cannot connect to
	b.putTarget("a", target{uid: "3", kubeconfig: api.NewSecret("{"), enabled: true})
	b.eventually("it says so to nobody", func() bool {
		a := b.agent("a")
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.invalid != nil
	})
	if removed, written := c.counts(); removed+written > 0 {
		t.Errorf("%d configurations removed and %d written, want none", removed, written)
	}
	if list := b.reports.take(); len(list) > 0 || len(b.statuses.last) > 0 {
		t.Errorf("reports %+v and statuses %+v, want none", list, b.statuses.last)
	}
}

// TestWorkloadsThatAreNotSplitAreReported checks the report on workloads in clusters where spot is disabled.
func TestWorkloadsThatAreNotSplitAreReported(t *testing.T) {
	b := newBench(t)
	b.putWorkload(workload("web", custom("1"), on("a", 2, 1)))
	b.deliver()
	list := b.reports.take()
	if len(list) != 1 || list[0].Distribution.State != api.DistributionUnmanaged || list[0].Distribution.Cluster != "a" {
		t.Errorf("unexpected reports %+v", list)
	}
}

// TestAbsentIsReported: an agent passes on what it finds, and what is asked for later.
func TestAbsentIsReported(t *testing.T) {
	c, b := startCluster(t), newBench(t)
	b.enable(c, "1", "one")
	b.eventually("it is connected", b.synced)
	b.putWorkload(workload("web", custom("1"), on("a", 2, 1)))
	b.deliver()
	key := inventory.Key{Kind: api.KindDeployment, Namespace: "shop", Name: "web"}
	b.eventually("it is said to be absent", func() bool {
		return b.agent("a").reported()[key].Distribution.State == api.DistributionAbsent
	})
	b.eventually("the report is on its way", func() bool {
		list := b.reports.take()
		return len(list) == 1 && list[0].Distribution.State == api.DistributionAbsent
	})
	if list, err := b.Distributions("a"); err != nil || len(list) != 1 || list[0].Cluster != "a" || list[0].Name != "web" {
		t.Errorf("Distributions() = %+v, %v", list, err)
	}
	b.wishes.remove(api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"})
	b.deliver()
	b.eventually("it is forgotten", func() bool { return len(b.agent("a").reported()) == 0 })
}

// TestRemovedAtLast: a cluster that cannot be worked on when spot is switched off does not
// keep what was installed for good.
func TestRemovedAtLast(t *testing.T) {
	c, b := startCluster(t), newBench(t)
	c.failing = 3 // both configurations, and a retry for one of them
	b.enable(c, "1", "one", func(t *target) { t.enabled = false })
	b.eventually("the removal has come to an end", func() bool {
		select {
		case <-b.agent("a").done:
			return true
		default:
			return false
		}
	})
	if removed, _ := c.counts(); removed != 6 {
		t.Errorf("%d removals, want 6: two that fail, two of which one fails, and two", removed)
	}
}

// TestWorkloadThatReturnsIsReported checks that a workload that returns to a cluster is reported, even if nothing about
// it is new.
func TestWorkloadThatReturnsIsReported(t *testing.T) {
	c, b := startCluster(t), newBench(t)
	b.enable(c, "1", "one")
	b.eventually("it is connected", b.synced)
	a := b.agent("a")
	web := workload("web", custom("1"), on("a", 2, 1))
	b.putWorkload(web)
	b.deliver()
	key := inventory.Key{Kind: api.KindDeployment, Namespace: "shop", Name: "web"}
	b.eventually("it is reported on", func() bool { return a.reported()[key].Distribution.State != "" })
	b.reports.put(workload("web", custom("1"))) // it no longer runs there
	b.reports.take()
	b.reports.put(web)
	a.ask(map[inventory.Key]inventory.Asked{key: {Distribution: *custom("1")}})
	if list := b.reports.take(); len(list) != 1 || list[0].Distribution.State != api.DistributionAbsent {
		t.Errorf("unexpected reports %+v", list)
	}
}
