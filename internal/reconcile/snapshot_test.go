package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// reads returns everything that a reader can request, by name.
func (y *system) reads() map[string]func() (any, error) {
	r := y.reconciler
	explain := func(kind api.Kind, namespace, name string) func() (any, error) {
		return func() (any, error) {
			x, err := r.Explain(key(kind, namespace, name))
			if x != nil {
				x.At = time.Time{}
			}
			return x, err
		}
	}
	observe := func(k api.Key) func() (any, error) {
		return func() (any, error) {
			object := y.fleet.Snapshot().Get(k).Object
			if policy, ok := object.(*api.PropagationPolicy); ok {
				object = r.ObservePolicy(policy)
			}
			return r.Observe(object).StatusPart(), nil
		}
	}
	return map[string]func() (any, error){
		"explain a placement": explain(api.KindPlacement, "shop", "held"),
		"explain a workload":  explain(api.KindWorkload, "shop", "web"),
		"explain a cluster":   explain(api.KindCluster, "", "guest"),
		"observe a cluster":   observe(key(api.KindCluster, "", "c1")),
		"observe a placement": observe(key(api.KindPlacement, "shop", "held")),
		"observe a policy":    observe(key(api.KindPropagationPolicy, "shop", "all")),
		"preview a placement": func() (any, error) {
			p := newPlacement("new", 1)
			p.SetDefaults()
			status, _, err := r.Preview(p)
			return status.Clusters, err
		},
		"preview a workload": func() (any, error) {
			w := plainWorkload("new")
			w.SetDefaults()
			status, _, err := r.PreviewWorkload(y.t.Context(), w)
			return status.Names(), err
		},
		"preview a policy": func() (any, error) {
			bindings, err := r.PreviewPolicy(y.t.Context(), everywhere("all", ""))
			return len(bindings), err
		},
		"simulate": func() (any, error) {
			result, err := r.Simulate(y.t.Context(), api.Simulation{
				Objects: raw(`{"kind":"cluster","metadata":{"name":"c1"},"spec":{"allocatable":{"cpu":"1"}}}`,
					`{"kind":"cluster","metadata":{"name":"another","labels":{"zone":"a"}},"spec":{"allocatable":{"cpu":"9"}}}`,
					`{"kind":"placement","metadata":{"name":"another","namespace":"shop"},"spec":{"number_of_clusters":2,"resource_requests":{"cpu":"1"}}}`,
					`{"kind":"metric","metadata":{"name":"another"},"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"m"}},"status":{"value":0.5}}`,
					`{"kind":"cloud","metadata":{"name":"another"},"spec":{}}`),
				Delete: []api.Key{key(api.KindCluster, "", "c2")},
			})
			if err != nil {
				return nil, err
			}
			return len(result.Changes), nil
		},
	}
}

// checkRecords checks that readers see everything as the planner has it.
func checkRecords(t checker, p *planner) {
	s, n := p.snapshot(nil), 0
	found := func(key api.Key, status any) *record {
		n++
		d, ok := s.get(key)
		if !ok {
			t.Fatalf("no record of %s", key)
		}
		if is := d.decided().StatusPart(); status != nil && !reflect.DeepEqual(is, status) {
			t.Fatalf("record of %s has %+v, want %+v", key, is, status)
		}
		return &d
	}
	for key, placed := range p.placer.placements {
		found(key, placed.status)
	}
	for key, w := range p.bindings.workloads {
		if d := found(key, &w.status); d.binding.policy != w.policy || d.binding.reason != w.reason {
			t.Fatalf("record of %s has %+v, want policy %v: %s", key, d.binding, w.policy, w.reason)
		}
	}
	for _, h := range []*hosts{p.clouds, p.projects} {
		for key, g := range h.guests {
			if d := found(key, nil); d.guest.host != g.host || d.object != g.object {
				t.Fatalf("record of %s has host %q, want %q", key, d.guest.host, g.host)
			}
		}
	}
	for path := range p.projectObjects {
		namespace, name, _ := strings.Cut(path, "/")
		found(api.Key{Kind: api.KindOpenStackProject, Namespace: namespace, Name: name}, nil)
	}
	for name := range p.clusters.objects {
		found(api.Key{Kind: api.KindCloud, Name: name}, nil)
	}
	if s.records.Len() != n {
		t.Fatalf("%d records, want %d", s.records.Len(), n)
	}
	followers := 0
	for key, w := range p.bindings.workloads {
		if w.status.Policy == "" {
			continue
		}
		followers++
		if !s.followers.Has(follower{w.status.Policy, key}) {
			t.Fatalf("%s is not recorded as a follower of %s", key, w.status.Policy)
		}
	}
	if s.followers.Len() != followers {
		t.Fatalf("%d followers recorded, want %d", s.followers.Len(), followers)
	}
}

// A reader during a pass sees the complete results of the previous pass, and does not wait.
func TestReadsDoNotWaitForAPass(t *testing.T) {
	t.Parallel()
	var (
		mu      sync.Mutex
		at      api.Key // at which the planner is stopped
		reached = make(chan struct{})
		release = make(chan struct{})
	)
	y := faulty(t, func(_ *basis, k api.Key) {
		mu.Lock()
		hold := k == at
		if hold {
			at = api.Key{}
		}
		mu.Unlock()
		if hold {
			close(reached)
			<-release
		}
	})
	for _, name := range []string{"c1", "c2"} {
		c := cluster(name, map[string]string{"zone": "a"})
		c.Spec.Allocatable = api.Quantities{"cpu": "8"}
		y.put(c)
	}
	guest := cluster("guest", nil)
	guest.Spec.CloudConstraints = &api.CloudConstraints{}
	y.put(guest)
	y.put(everywhere("all", ""))
	y.put(plainWorkload("web"))
	y.put(newPlacement("held", -1, func(s *api.PlacementSpec) {
		s.LabelConstraints = []string{"zone is a"}
		s.ResourceRequests = api.Quantities{"cpu": "1"}
	}))
	told := func() map[string]string {
		t.Helper()
		all := map[string]string{}
		for name, read := range y.reads() {
			type answer struct {
				what any
				err  error
			}
			answered := make(chan answer, 1)
			go func() {
				what, err := read()
				answered <- answer{what, err}
			}()
			select {
			case a := <-answered:
				if a.err != nil {
					t.Errorf("%s: %v", name, a.err)
				}
				text, err := json.Marshal(a.what)
				if err != nil {
					t.Fatal(err)
				}
				all[name] = string(text)
			case <-time.After(eventually.Limit):
				t.Errorf("%s: has no answer before the pass ends", name)
			}
		}
		return all
	}
	for i, k := range []api.Key{key(api.KindPlacement, "shop", "held"), key(api.KindCluster, "", "guest"), key(api.KindWorkload, "shop", "web")} {
		before := told()
		mu.Lock()
		at = k
		reached, release = make(chan struct{}), make(chan struct{})
		mu.Unlock()
		c := cluster("c1", map[string]string{"zone": "b"})
		c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(string(rune('1' + i)))}
		if k.Kind == api.KindCluster {
			y.write(guest)
		} else {
			y.write(c)
		}
		<-reached
		during := told()
		for name, was := range before {
			if is := during[name]; is != was && name != "simulate" && name != "preview a policy" {
				t.Errorf("%s during the processing of %s: %s, want %s as before", name, k, is, was)
			}
		}
		close(release)
		y.put(metric("m", float64(i)/10))
	}
}

// Many read while decisions are made: nobody is told of anything that is not, and a
// writer that has waited reads what follows from what it wrote.
func TestReadsBesidePasses(t *testing.T) {
	t.Parallel()
	y := faulty(t, nil)
	for _, name := range []string{"c1", "c2"} {
		c := cluster(name, map[string]string{"zone": "a"})
		c.Spec.Allocatable = api.Quantities{"cpu": "100"}
		y.put(c)
	}
	guest := cluster("guest", nil)
	guest.Spec.CloudConstraints = &api.CloudConstraints{}
	y.put(guest)
	y.put(everywhere("all", ""))
	web := plainWorkload("web")
	web.Spec.ReplicaRequests = api.Quantities{"cpu": "1"}
	y.put(web)
	held := func(name string) *api.Placement {
		return newPlacement(name, 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "1"} })
	}
	y.put(held("held"))
	stop := make(chan struct{})
	var reading sync.WaitGroup
	for name, read := range y.reads() {
		reading.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
				}
				if _, err := read(); err != nil {
					t.Errorf("%s: %v", name, err)
					return
				}
			}
		})
	}
	for i := range 20 {
		name := fmt.Sprintf("more%d", i)
		y.put(held(name))
		x, err := y.reconciler.Explain(key(api.KindPlacement, "shop", name))
		if err != nil {
			t.Fatal(err)
		}
		where := y.placement(name).Status.Clusters
		for _, c := range x.Candidates {
			if c.Selected != slices.Contains(where, c.Cluster) {
				t.Errorf("%s is on %v, but the explanation is %+v", name, where, c)
			}
		}
		if i%2 == 0 {
			y.remove(key(api.KindPlacement, "shop", name))
			if _, err := y.reconciler.Explain(key(api.KindPlacement, "shop", name)); !errors.Is(err, ErrNotFound) {
				t.Errorf("explanation of the deleted %s: error %v, want ErrNotFound", name, err)
			}
		}
		y.put(everywhere(fmt.Sprintf("other%d", i%3), "web"))
	}
	close(stop)
	reading.Wait()
}
