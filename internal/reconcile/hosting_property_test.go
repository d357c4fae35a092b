package reconcile

import (
	"fmt"
	"reflect"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// checkHosted checks that every guest satisfies the rules of hosting, and that every cluster in the fleet is the
// combination of the cluster and its cloud.
func checkHosted(t interface{ Fatalf(string, ...any) }, w *world, p *planner, now time.Time) {
	for _, h := range []*hosts{p.clouds, p.projects} {
		for key, g := range h.guests {
			_, there := h.hosts[g.host]
			if g.wish == noWish {
				continue
			}
			if g.host != "" && !there {
				t.Fatalf("%s is on %q, which does not exist", key, g.host)
			}
			if g.host != "" {
				continue
			}
			// The naive implementation: hosts that satisfy its constraints, one by one.
			request, _ := h.request(g.object)
			query, err := hosting.NewHostQuery(request)
			if err != nil {
				t.Fatalf("%s: %v", key, err)
			}
			if host, _, ok := query.Choose(h.fleet, func(q *placement.Query) *placement.View {
				return placement.NewView(h.fleet, q, ledger.Others{}, nil) // without the decisions of others
			}, now); ok {
				t.Fatalf("%s has no host, but %q fits", key, host)
			}
			for name, row := range h.hosts {
				q := row.Spec.Namespace == "" || row.Spec.Namespace == request.Namespace
				fits := q
				for _, text := range request.LabelConstraints {
					fits = fits && row.Metadata.Labels["l"] == text[len("l is "):]
				}
				if fits && len(request.MetricConstraints) == 0 && request.Desperate {
					t.Fatalf("%s has no host, but %q matches", key, name)
				}
			}
		}
	}
	for key, object := range w.objects {
		c, ok := object.(*api.Cluster)
		if !ok {
			continue
		}
		row, ok := p.fleet.Row(key.Name)
		if !ok {
			t.Fatalf("%s is not in the fleet", key)
		}
		name := p.clouds.guests[key].host
		if c.Spec.OpenStack != nil {
			name = c.Spec.OpenStack.Cloud
		}
		cloud, _ := w.objects[api.Key{Kind: api.KindCloud, Name: name}].(*api.Cloud)
		want := columns.Effective(c, cloud)
		got := p.fleet.Cluster(row)
		if !reflect.DeepEqual(got.Metadata.Labels, want.Metadata.Labels) || !reflect.DeepEqual(got.Spec, want.Spec) {
			t.Fatalf("%s is %+v in the fleet, want %+v", key, got.Spec, want.Spec)
		}
	}
}

func TestHostingDecisionsEqualFreshOnes(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w, p := newWorld(), newPlanner(discard())
		now := epoch
		name := func(prefix string) string { return fmt.Sprint(prefix, rapid.IntRange(0, 3).Draw(t, prefix)) }
		labels := func() map[string]string {
			return map[string]string{"l": rapid.SampledFrom([]string{"a", "b"}).Draw(t, "label")}
		}
		refs := func() []api.MetricRef {
			var out []api.MetricRef
			for i := range rapid.IntRange(0, 2).Draw(t, "metrics") {
				out = append(out, api.MetricRef{Name: fmt.Sprint("m", i), Weight: ptr(float64(rapid.IntRange(1, 3).Draw(t, "weight")))})
			}
			return out
		}
		constraints := func() (labels, metrics []string) {
			if rapid.Bool().Draw(t, "constrained") {
				labels = []string{"l is " + rapid.SampledFrom([]string{"a", "b"}).Draw(t, "wanted")}
			}
			if rapid.IntRange(0, 4).Draw(t, "by metric") == 0 {
				metrics = []string{"m0 > 0.5"}
			}
			return labels, metrics
		}
		w.write(p, provider())
		for range rapid.IntRange(1, 40).Draw(t, "steps") {
			now = now.Add(time.Minute)
			switch rapid.IntRange(0, 8).Draw(t, "step") {
			case 0:
				owner := rapid.SampledFrom([]string{"", "", "shop"}).Draw(t, "owner")
				w.write(p, cloud(name("cloud"), owner, labels(), refs()...))
			case 1:
				w.write(p, project(name("project"), labels(), refs()...))
			case 2:
				w.write(p, metric(fmt.Sprint("m", rapid.IntRange(0, 1).Draw(t, "m")), rapid.SampledFrom([]float64{0, 0.4, 0.9, 7}).Draw(t, "value")))
			case 3, 4:
				c := cluster(name("c"), labels(), refs()...)
				c.Spec.Namespace = rapid.SampledFrom([]string{"", "shop"}).Draw(t, "namespace")
				c.Spec.InheritLabels, c.Spec.InheritMetrics = rapid.Bool().Draw(t, "labels too"), rapid.Bool().Draw(t, "metrics too")
				if rapid.Bool().Draw(t, "wishes") {
					by, metrics := constraints()
					c.Spec.CloudConstraints = &api.CloudConstraints{LabelConstraints: by, MetricConstraints: metrics}
				}
				switch rapid.IntRange(0, 5).Draw(t, "exists") {
				case 0:
					c.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(kubeconfigText)}
				case 1:
					c.Spec.OpenStack = &api.ClusterOpenStack{Cloud: name("cloud"), Region: "r", AvailabilityZone: "z"}
				}
				if was, ok := w.objects[api.KeyOf(c)].(*api.Cluster); ok {
					c.Status = was.Status
				}
				w.write(p, c)
			case 5:
				m := magnum(name("web"), labels())
				m.Spec.LabelConstraints, m.Spec.MetricConstraints = constraints()
				if was, ok := w.objects[api.KeyOf(m)].(*api.MagnumCluster); ok {
					m.Status = was.Status
				}
				w.write(p, m)
			case 6:
				key := rapid.SampledFrom([]api.Key{
					{Kind: api.KindCloud, Name: name("cloud")}, {Kind: api.KindOpenStackProject, Namespace: "shop", Name: name("project")},
					{Kind: api.KindCluster, Name: name("c")}, {Kind: api.KindMagnumCluster, Namespace: "shop", Name: name("web")},
					{Kind: api.KindMetric, Name: "m0"},
				}).Draw(t, "gone")
				if _, ok := w.objects[key]; ok {
					w.remove(p, key)
				}
			default: // one pass later
				continue
			}
			if rapid.Bool().Draw(t, "at once") {
				w.stored(p, p.pass(now))
				checkHosted(t, w, p, now)
				checkRecords(t, p)
				checkFork(t, w, p, now)
				checkSecond(t, w, p, now)
			}
		}
		w.stored(p, p.pass(now))
		checkHosted(t, w, p, now)
		if again := p.pass(now); len(again) > 0 {
			t.Fatalf("a pass without a change writes %s", again[0].key())
		}
		// A planner that starts from the stored objects keeps all decisions.
		next := newPlanner(discard())
		for key, object := range w.objects {
			next.put(object, w.specs[key])
		}
		for _, wr := range next.pass(now) {
			t.Fatalf("a restart writes %s: %+v, previously %+v", wr.key(), wr.result().StatusPart(), w.objects[wr.key()].StatusPart())
		}
		checkHosted(t, w, next, now)
	})
}
