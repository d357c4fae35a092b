package kubernetes

import (
	"fmt"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// pods returns the number of pods in the status.
func (w *world) pods(name string) string { return string(w.status(name).Allocated["pods"]) }

// TestWatchesResume checks that nothing is lost when a watch fails, and that a new list is read only if the watch
// cannot resume.
func TestWatchesResume(t *testing.T) {
	for _, c := range []struct {
		name   string
		broken func(s *apiServer)
		lists  int // in addition to the first
	}{
		{"watch cut off", func(s *apiServer) { s.cutWatches() }, 0},
		{"connections refused for a moment", func(s *apiServer) { s.refuse(true) }, 0},
		{"history compacted", func(s *apiServer) {
			s.refuse(true)
			s.put(running("p9", "n1"))
			s.remove(running("p9", "n1"))
			s.compact()
		}, 1},
		{"history compacted, with a newer bookmark", func(s *apiServer) {
			s.bookmark(podsPath)
			faketime.Sleep(time.Second)
			s.compact()
			s.cutWatches()
		}, 0},
		{"error response", func(s *apiServer) {
			s.do(func() { s.collections[podsPath].status = 500 })
			s.cutWatches()
			faketime.Sleep(5 * time.Second)
			s.do(func() { s.collections[podsPath].status = 0 })
		}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.server("eu")
				s.put(machine("n1"), running("p0", "n1"))
				w.put(on("eu", "eu"))
				s.put(running("p1", "n1"), running("p2", "n1"))
				faketime.Sleep(2 * time.Second)
				first, _, _ := s.counted(podsPath)
				c.broken(s)
				s.put(running("p3", "n1"), running("p4", "n1"))
				s.remove(running("p1", "n1"))
				s.refuse(false)
				faketime.Sleep(time.Minute)
				if got := w.pods("eu"); got != "4" {
					t.Errorf("%s pods, want 4", got)
				}
				if lists, _, _ := s.counted(podsPath); lists != first+c.lists {
					t.Errorf("%d more lists, want %d", lists-first, c.lists)
				}
				w.expect("eu", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
			})
		})
	}
}

// TestWatchesEnd checks that a watch that ends, as they do every few minutes, resumes without a list and without a
// write.
func TestWatchesEnd(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1"), running("p", "n1"))
		w.put(on("eu", "eu"))
		w.steady(2 * time.Hour)
		lists, watches, _ := s.counted(podsPath)
		if lists != 1 || watches < 10 || watches > 30 {
			t.Errorf("%d lists, %d watches in two hours", lists, watches)
		}
		s.put(running("p1", "n1"))
		faketime.Sleep(2 * time.Second)
		if got := w.pods("eu"); got != "2" {
			t.Errorf("%s pods, want 2", got)
		}
	})
}

// TestPages checks that a large list is read in pages, also if it must be restarted.
func TestPages(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		s.put(machine("n1"))
		const pods = 3*informer.PageSize + 7
		for i := range pods {
			s.put(running(fmt.Sprint("p", i), "n1"))
		}
		s.do(func() { s.collections[podsPath].expirePages = 2 })
		w.put(on("eu", "eu"))
		faketime.Sleep(10 * time.Second)
		if got := w.pods("eu"); got != fmt.Sprint(pods) {
			t.Errorf("%s pods, want %d", got, pods)
		}
		lists, _, largest := s.counted(podsPath)
		if largest > informer.PageSize || lists != 2+4 {
			t.Errorf("%d pages, the largest with %d objects", lists, largest)
		}
	})
}

// TestTypesInPart: an API server behind the cluster's own that is down takes none
// of its types away.
func TestTypesInPart(t *testing.T) {
	for name, legacy := range map[string]bool{"aggregated": false, "before Kubernetes 1.27": true} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(t *testing.T, w *world) {
				s := w.server("eu")
				s.do(func() { s.legacy = legacy; s.types["metrics.k8s.io/v1"] = []string{"PodMetrics"} })
				w.put(on("eu", "eu"))
				const all = `["apps/v1/Deployment","metrics.k8s.io/v1/PodMetrics","v1/Node","v1/Pod"]`
				if got := asJSON(t, w.status("eu").APIResources); got != all {
					t.Errorf("unexpected types %s", got)
				}
				s.do(func() { s.stale = []string{"metrics.k8s.io/v1"} })
				w.steady(time.Hour)
				// The API server is removed.
				s.do(func() { s.stale = nil; delete(s.types, "metrics.k8s.io/v1") })
				faketime.Sleep(typesEvery + time.Minute)
				if got := asJSON(t, w.status("eu").APIResources); got != `["apps/v1/Deployment","v1/Node","v1/Pod"]` {
					t.Errorf("unexpected types %s", got)
				}
			})
		})
	}
}

// TestManyDefinitions checks that a burst of definitions does not read the types for each of them.
func TestManyDefinitions(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		s := w.server("eu")
		w.put(on("eu", "eu"))
		before := s.asked("/apis")
		for i := range 300 {
			s.put(definition(fmt.Sprintf("things.g%d.example.com", i)))
			faketime.Sleep(100 * time.Millisecond)
		}
		faketime.Sleep(time.Minute)
		if reads := s.asked("/apis") - before; reads < 2 || reads > 10 {
			t.Errorf("the types were read %d times within 30 s", reads)
		}
		if got := len(w.status("eu").CustomResources); got != 300 {
			t.Errorf("%d definitions, want 300", got)
		}
	})
}
