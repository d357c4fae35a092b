package kubernetes

import (
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

func asJSON(t *testing.T, v any) string {
	t.Helper()
	data, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(data)
}

// TestObserve checks that the status of a cluster is complete when the write of the cluster returns, that it follows
// changes, and that it is written only when something changes.
func TestObserve(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1", in("eu-west", "b")), machine("n2", in("eu-west", "a")), machine("n3", in("eu-north", "a"), cordoned))
		s.put(running("p1", "n1", "cpu", "250m", "memory", "1Gi"), running("p2", "n2", "cpu", "1"), running("p3", "n3", "cpu", "2"))
		s.put(definition("crontabs.stable.example.com"), definition("a.example.com"))
		began := time.Now().UTC()
		w.put(on("eu", "eu"))
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		got := w.status("eu")
		for what, pair := range map[string][2]string{
			"capacity":    {asJSON(t, got.Capacity), `{"cpu":"12","memory":"48Gi","pods":"330"}`},
			"allocatable": {asJSON(t, got.Allocatable), `{"cpu":"7","memory":"30Gi","pods":"220"}`},
			"allocated":   {asJSON(t, got.Allocated), `{"cpu":"1250m","memory":"1Gi","pods":"2"}`},
			"topology":    {got.Region + asJSON(t, got.Zones), `eu-west["a","b"]`},
			"definitions": {asJSON(t, got.CustomResources), `["a.example.com","crontabs.stable.example.com"]`},
			"types":       {asJSON(t, got.APIResources), `["apps/v1/Deployment","v1/Node","v1/Pod"]`},
			"version":     {got.KubernetesVersion, "v1.37.1"},
			"nodes":       {asJSON(t, got.Nodes), `{"total":3,"ready":3}`},
			"generation":  {fmt.Sprint(got.ObservedGeneration), "1"},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
			}
		}
		if at := got.CapacityReportedAt; at == nil || at.Before(began) {
			t.Errorf("capacity reported at %v, want a time after the start", at)
		}
		w.steady(10 * time.Minute)

		s.put(machine("n4", in("eu-north", "c")), machine("n5", in("eu-north", "c")))
		s.remove(running("p1", "n1"))
		s.put(definition("b.example.com"))
		s.remove(definition("a.example.com"))
		s.do(func() { s.types["example.com/v1"] = []string{"Thing"} })
		faketime.Sleep(15 * time.Second)
		got = w.status("eu")
		for what, pair := range map[string][2]string{
			"capacity":    {asJSON(t, got.Capacity), `{"cpu":"20","memory":"80Gi","pods":"550"}`},
			"allocated":   {asJSON(t, got.Allocated), `{"cpu":"1","memory":"0","pods":"1"}`},
			"topology":    {got.Region + asJSON(t, got.Zones), `eu-north["a","b","c"]`},
			"definitions": {asJSON(t, got.CustomResources), `["b.example.com","crontabs.stable.example.com"]`},
			"types":       {asJSON(t, got.APIResources), `["apps/v1/Deployment","example.com/v1/Thing","v1/Node","v1/Pod"]`},
		} {
			if pair[0] != pair[1] {
				t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
			}
		}
		w.steady(10 * time.Minute)

		// After a restart, the stored status is still correct.
		w.stop()
		before := w.status("eu")
		w.start()
		w.steady(time.Minute)
		if after := w.status("eu"); asJSON(t, before) != asJSON(t, after) {
			t.Errorf("status %s after a restart, want %s", asJSON(t, after), asJSON(t, before))
		}
	})
}

// TestChurn checks that a burst of pods causes few writes, and that the last one includes all of them.
func TestChurn(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1"))
		w.put(on("eu", "eu"))
		before := w.count()
		const pods = 1000
		for i := range pods {
			s.put(running(fmt.Sprint("p", i), "n1", "cpu", "10m"))
			faketime.Sleep(5 * time.Millisecond)
		}
		faketime.Sleep(time.Second)
		if got := asJSON(t, w.status("eu").Allocated); got != `{"cpu":"10","memory":"0","pods":"1000"}` {
			t.Errorf("unexpected allocated amounts %s", got)
		}
		if writes := w.count() - before; writes > 7 {
			t.Errorf("%d writes for %d pods within 5 s", writes, pods)
		}
		// Replacing one pod by another keeps the sums, but is still a capacity report, which includes later decisions.
		reported := *w.status("eu").CapacityReportedAt
		faketime.Sleep(time.Minute)
		s.remove(running("p1", "n1", "cpu", "10m"))
		s.put(running("new", "n1", "cpu", "10m"))
		faketime.Sleep(2 * time.Second)
		if at := *w.status("eu").CapacityReportedAt; at.Sub(reported) < time.Minute {
			t.Errorf("capacity reported at %s, previously at %s", at, reported)
		}
	})
}

// TestFailures checks that error messages are stable, and never contain the credentials.
func TestFailures(t *testing.T) {
	for _, c := range []struct {
		name    string
		broken  func(s *apiServer)
		state   api.ClusterState
		reason  string
		message string
	}{
		{"connection refused", func(s *apiServer) { s.refuse(true) }, api.StateOffline, api.ReasonUnreachable, "the API server cannot be reached: dial: connection refused"},
		{"hangs", func(s *apiServer) { s.do(func() { s.hangAll = true }) }, api.StateOffline, api.ReasonUnreachable, "the API server cannot be reached: no response in time"},
		{"readyz hangs", func(s *apiServer) { s.do(func() { s.readyz = -1 }) }, api.StateOffline, api.ReasonUnreachable, "the API server cannot be reached: no response in time"},
		{"proxy without a server", func(s *apiServer) { s.do(func() { s.readyz = 503 }) }, api.StateOffline, api.ReasonUnreachable, "the API server cannot be reached (503)"},
		{"wrong credentials", func(s *apiServer) { s.do(func() { s.token = "another" }) }, api.StateOffline, api.ReasonUnauthorized, "the API server does not accept the credentials (401)"},
		{"not ready", func(s *apiServer) { s.do(func() { s.readyz = 500 }) }, api.StateUnhealthy, "", "the API server says that it is not ready (500)"},
		{"redirects", func(s *apiServer) { s.do(func() { s.redirect = "http://elsewhere" }) }, api.StateUnhealthy, "", "the API server says that it is not ready (302)"},
		{"readyz forbidden", func(s *apiServer) { s.do(func() { s.readyz = 403 }) }, api.StateOnline, "", ""},
		{"pods forbidden", func(s *apiServer) { s.do(func() { s.collections[podsPath].status = 403 }) }, api.StateOnline, api.ReasonForbidden, "pods: the credentials may not list and watch them (403)"},
		{"nodes fail", func(s *apiServer) { s.do(func() { s.collections[nodesPath].status = 500 }) }, api.StateOnline, api.ReasonIncomplete, "nodes: the API server returned 500"},
		{"nodes hang", func(s *apiServer) { s.do(func() { s.collections[nodesPath].hang = true }) }, api.StateOnline, api.ReasonIncomplete, "nodes: no response in time"},
		{"definitions forbidden", func(s *apiServer) { s.do(func() { s.collections[definitionsPath].status = 403 }) }, api.StateOnline, api.ReasonForbidden, "custom resource definitions: the credentials may not list and watch them (403)"},
		{"services forbidden", func(s *apiServer) { s.do(func() { s.collections[servicesPath].status = 403 }) }, api.StateOnline, "", ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.server("eu")
				elsewhere := w.server("elsewhere")
				s.put(machine("n1"), running("p", "n1", "cpu", "1"), definition("a.example.com"))
				w.put(on("eu", "eu"))
				w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
				before := w.status("eu")
				c.broken(s)
				s.cutWatches()
				faketime.Sleep(2 * time.Minute)
				if c.reason == "" {
					// Redirects and readyz do not affect the watches.
					if c.name != "redirects" {
						w.expect("eu", c.state, api.ConditionTrue, api.ReasonObserved)
					}
				} else {
					w.expect("eu", c.state, api.ConditionFalse, c.reason)
				}
				got := w.status("eu")
				if text := asJSON(t, got.Conditions); !strings.Contains(text, c.message) || strings.Contains(text, "hush") {
					t.Errorf("conditions %s, want %q in them", text, c.message)
				}
				// Known facts stay known.
				if asJSON(t, got.Allocatable) != asJSON(t, before.Allocatable) || asJSON(t, got.CustomResources) != asJSON(t, before.CustomResources) {
					t.Errorf("the last facts were lost: %s", asJSON(t, got))
				}
				w.steady(10 * time.Minute)
				if n := elsewhere.asked("/readyz"); n > 0 {
					t.Errorf("the credentials were sent to another host %d times", n)
				}
			})
		})
	}
}

// TestFirstObservationFails checks that a write returns when the failure is clear, and does not wait long for a server
// that hangs.
func TestFirstObservationFails(t *testing.T) {
	for _, c := range []struct {
		name   string
		set    func(s *apiServer)
		within time.Duration
		state  api.ClusterState
		reason string
	}{
		{"all well", func(*apiServer) {}, 0, api.StateOnline, api.ReasonObserved},
		{"hangs", func(s *apiServer) { s.hangAll = true }, 10 * time.Second, api.StatePending, api.ReasonUnreachable},
		{"pods hang", func(s *apiServer) { s.collections[podsPath].hang = true }, firstWithin, api.StateOnline, api.ReasonIncomplete},
		{"everything but readyz forbidden", func(s *apiServer) {
			for _, c := range s.collections {
				c.status = http.StatusForbidden
			}
		}, 0, api.StateOnline, api.ReasonForbidden},
		{"wrong credentials", func(s *apiServer) { s.token = "another" }, 0, api.StatePending, api.ReasonUnauthorized},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.server("eu")
				s.do(func() { c.set(s) })
				if took := w.put(on("eu", "eu")); took > c.within {
					t.Errorf("the write took %s", took)
				}
				status := api.ConditionFalse
				if c.reason == api.ReasonObserved {
					status = api.ConditionTrue
				}
				w.expect("eu", c.state, status, c.reason)
				// It recovers without a write.
				s.do(func() {
					s.hangAll, s.token = false, ""
					for _, c := range s.collections {
						c.status, c.hang = 0, false
					}
				})
				faketime.Sleep(2 * time.Minute)
				w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
			})
		})
	}
}

// TestUnusableKubeconfig checks that a kubeconfig that was stored before it was checked is rejected here, too.
func TestUnusableKubeconfig(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.put(on("eu", "eu"))
		c := on("eu", "eu")
		c.Metadata.UID = "uid-eu"
		c.Spec.Kubernetes.Kubeconfig = api.NewSecret(strings.Replace(c.Spec.Kubernetes.Kubeconfig.Reveal(), `token: "hush-hush"`, `exec: {command: hush, apiVersion: client.authentication.k8s.io/v1, interactiveMode: Never}`, 1))
		w.mu.Lock()
		w.revision++
		w.clusters["eu"], w.specs["eu"] = c, w.revision
		revision := w.revision
		w.mu.Unlock()
		w.monitor.Put(c, revision, revision, revision)
		w.observer.Put(c)
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateOffline, api.ConditionFalse, api.ReasonInvalidKubeconfig)
		w.steady(10 * time.Minute)
	})
}

// TestRotation checks that new credentials take over without a gap in the state, and that the connections of the old
// ones are closed.
func TestRotation(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1"))
		w.put(on("eu", "eu"))
		next := on("eu", "eu")
		next.Spec.Kubernetes.Kubeconfig = kubeconfigOf("eu", "fresh")
		s.do(func() { s.token = "fresh" }) // the old token is no longer accepted
		s.put(machine("n2"))
		w.put(next)
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		if got := w.status("eu").Nodes.Total; got != 2 {
			t.Errorf("%d nodes when the write was answered, want 2", got)
		}
		s.mu.Lock()
		old := s.tokens["hush-hush"]
		s.mu.Unlock()
		faketime.Sleep(10 * time.Minute)
		s.put(machine("n3"))
		faketime.Sleep(time.Minute)
		s.mu.Lock()
		again := s.tokens["hush-hush"]
		s.mu.Unlock()
		if again != old {
			t.Errorf("%d requests with the old credentials", again-old)
		}
		if got := w.history("eu"); got != "online" {
			t.Errorf("states %s, want online", got)
		}
		s.mu.Lock()
		if len(s.open) != 1 {
			t.Errorf("%d open connections, want 1", len(s.open))
		}
		s.mu.Unlock()
		if got := w.status("eu").Nodes.Total; got != 3 {
			t.Errorf("%d nodes, want 3", got)
		}
	})
}

// TestOtherThresholds: what changes nothing about the watching is answered at once.
func TestOtherThresholds(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1"))
		with := func(interval api.Duration, failures int64) *api.Cluster {
			c := on("eu", "eu")
			c.Spec.Health = &api.HealthSpec{Interval: interval, FailureThreshold: failures}
			return c
		}
		w.put(with("5m", 3))
		asked := s.asked("/readyz")
		if took := w.put(with("5m", 1)); took > 0 {
			t.Errorf("a change of the threshold took %s", took)
		}
		if s.asked("/readyz") != asked {
			t.Error("a change of the threshold caused a request")
		}
		if took := w.put(with("10s", 1)); took > 0 {
			t.Errorf("a change of the interval took %s", took)
		}
		s.refuse(true)
		faketime.Sleep(11 * time.Second)
		w.expect("eu", api.StateOffline, api.ConditionFalse, api.ReasonUnreachable)
	})
}

// TestKubeconfigTakenBack: what was observed with it disappears; what is declared
// stays.
func TestKubeconfigTakenBack(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1", in("eu-west", "a")), running("p", "n1", "cpu", "1"), definition("a.example.com"))
		w.put(on("eu", "eu"))
		w.put(&api.Cluster{Metadata: api.Metadata{Name: "eu"}, Spec: api.ClusterSpec{Allocatable: api.Quantities{"cpu": "3"}}})
		got := w.status("eu")
		got.CapacityReportedAt, got.ObservedGeneration = nil, 0
		if text := asJSON(t, got); text != "{}" {
			t.Errorf("status %s, want an empty one", text)
		}
		asked := s.asked("/readyz")
		w.steady(10 * time.Minute)
		if s.asked("/readyz") != asked {
			t.Error("requests continue after the kubeconfig was removed")
		}
		// When it is added again, it is observed as if for the first time. Then the cluster is deleted.
		w.put(on("eu", "eu"))
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		w.observer.Remove("eu")
		w.monitor.Remove("eu", 1000)
		asked = s.asked("/readyz")
		faketime.Sleep(10 * time.Minute)
		if s.asked("/readyz") != asked {
			t.Error("requests continue after the cluster was deleted")
		}
	})
}

// TestHealthURLDecides checks that, with a probe, observations provide only facts, not the state.
func TestHealthURLDecides(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1", says(corev1.NodeReady, corev1.ConditionFalse)))
		c := on("eu", "eu")
		c.Spec.Health = &api.HealthSpec{URL: "http://eu/healthz"}
		w.put(c)
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		if got := asJSON(t, w.status("eu").Nodes); got != `{"total":1,"ready":0}` {
			t.Errorf("unexpected nodes %s", got)
		}
		w.mu.Lock()
		w.probe = http.StatusInternalServerError
		w.mu.Unlock()
		s.put(machine("n1"), machine("n2"))
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateUnhealthy, api.ConditionTrue, api.ReasonObserved)
		if got := asJSON(t, w.status("eu").Nodes); got != `{"total":2,"ready":2}` {
			t.Errorf("unexpected nodes %s", got)
		}
		// Without the URL, the nodes decide.
		w.put(on("eu", "eu"))
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
	})
}

// TestManyHangingClusters checks that API servers that accept requests and never respond do not use up the slots of
// others.
func TestManyHangingClusters(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		for i := range 3 * informer.ListsAtOnce {
			host := fmt.Sprint("bad", i)
			s := w.server(host)
			s.do(func() {
				s.readyz = -1
				for _, c := range s.collections {
					c.hang = true
				}
			})
			w.write(on(host, host))
		}
		s := w.server("good")
		s.put(machine("n1"))
		if took := w.put(on("good", "good")); took > 2*time.Second { // includes one second of waiting for others
			t.Errorf("a write of a cluster that responds took %s", took)
		}
		w.expect("good", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
	})
}

// TestListsAtOnce checks that only few lists are read at once, for any number of clusters.
func TestListsAtOnce(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1"))
		s.do(func() { s.slow = 100 * time.Millisecond })
		const clusters = 30
		for i := range clusters {
			w.write(on(fmt.Sprint("c", i), "eu"))
		}
		faketime.Sleep(time.Minute)
		for i := range clusters {
			w.expect(fmt.Sprint("c", i), api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.most > informer.ListsAtOnce || s.most < 2 {
			t.Errorf("%d concurrent lists, want at most %d", s.most, informer.ListsAtOnce)
		}
	})
}

// TestStates covers what can happen to the nodes of a cluster.
func TestStates(t *testing.T) {
	notReady := says(corev1.NodeReady, corev1.ConditionUnknown)
	disk := says(corev1.NodeDiskPressure, corev1.ConditionTrue)
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		w.put(on("eu", "eu")) // no nodes: an autoscaler may add some
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		for i := range 5 {
			s.put(machine(fmt.Sprint("n", i)))
		}
		s.put(machine("n0", notReady), machine("n1", disk))
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		if got := asJSON(t, w.status("eu").Nodes); got != `{"total":5,"ready":3,"pressure":1}` {
			t.Errorf("unexpected nodes %s", got)
		}
		s.put(machine("n1", notReady), machine("n2", notReady))
		faketime.Sleep(5 * time.Second)
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved) // fewer failures than the threshold
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateNotReady, api.ConditionTrue, api.ReasonObserved)
		s.put(machine("n0", disk), machine("n1", disk), machine("n2", disk))
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateUnhealthy, api.ConditionTrue, api.ReasonObserved)
		s.put(machine("n0"), machine("n1"), machine("n2"))
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		s.do(func() { s.hangAll = true })
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateOffline, api.ConditionFalse, api.ReasonUnreachable)
		s.do(func() { s.hangAll = false })
		faketime.Sleep(time.Minute)
		w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		synctest.Wait()
		if got := w.history("eu"); got != "online notready unhealthy online offline connecting online" {
			t.Errorf("unexpected states %s", got)
		}
	})
}
