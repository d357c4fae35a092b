package reconcile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func wishing(name string, constraints ...string) *api.Cluster {
	c := cluster(name, nil)
	c.Spec.CloudConstraints = &api.CloudConstraints{LabelConstraints: constraints}
	return c
}

// written returns the names of the objects of one kind that a pass writes.
func written(writes []write, kind api.Kind) []string {
	var names []string
	for _, w := range writes {
		if w.key().Kind == kind {
			names = append(names, w.key().Name)
		}
	}
	slices.Sort(names)
	return names
}

// stored gives the planner what a pass has written, as the fleet would.
func (w *world) stored(p *planner, writes []write) {
	for _, wr := range writes {
		object := wr.result()
		w.objects[wr.key()] = object
		p.put(object, w.specs[wr.key()])
	}
}

func TestAClusterIsBoundOnceAndStays(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, metric("green", 0.9))
	w.write(p, metric("brown", 0.1))
	w.write(p, cloud("north", "", map[string]string{"location": "NO"}, api.MetricRef{Name: "green"}))
	w.write(p, cloud("south", "", map[string]string{"location": "IT"}, api.MetricRef{Name: "brown"}))
	guest := wishing("edge")
	w.write(p, guest)
	key := api.KeyOf(guest)
	cloudOf := func() string { return guestOf[*api.Cluster](t, p.clouds, key).Status.Cloud }
	writes := p.pass(epoch)
	if got := written(writes, api.KindCluster); !slices.Equal(got, []string{"edge"}) || cloudOf() != "north" {
		t.Fatalf("wrote %v with cloud %q, want edge with north", got, cloudOf())
	}
	w.stored(p, writes)
	if again := p.pass(epoch); len(again) > 0 {
		t.Errorf("the second pass writes %v, want nothing", written(again, api.KindCluster))
	}

	// After another value, another cloud or a failing metric, it stays.
	w.write(p, metric("brown", 1))
	w.write(p, metric("green", 0))
	w.write(p, cloud("west", "", nil, api.MetricRef{Name: "brown"}))
	if writes := p.pass(epoch.Add(time.Hour)); len(writes) > 0 || cloudOf() != "north" {
		t.Errorf("cloud %q with %d writes, want north without any", cloudOf(), len(writes))
	}
	// A new spec that its cloud satisfies.
	w.write(p, wishing("edge", "location is NO"))
	w.stored(p, p.pass(epoch.Add(2*time.Hour)))
	if cloudOf() != "north" {
		t.Errorf("moved to %q although its cloud fits", cloudOf())
	}
	// A new spec that its cloud does not satisfy.
	w.write(p, wishing("edge", "location is IT"))
	w.stored(p, p.pass(epoch.Add(3*time.Hour)))
	if cloudOf() != "south" {
		t.Errorf("still on %q, which does not fit", cloudOf())
	}
	// Its cloud is deleted, and one that fits is created.
	w.remove(p, api.Key{Kind: api.KindCloud, Name: "south"})
	w.stored(p, p.pass(epoch.Add(4*time.Hour)))
	bound := api.FindCondition(guestOf[*api.Cluster](t, p.clouds, key).Status.Conditions, api.ConditionBound)
	if cloudOf() != "" || bound == nil || !strings.Contains(bound.Message, "0 of 2 clouds fit") {
		t.Errorf("cloud %q, condition %+v; want no cloud, because none fits", cloudOf(), bound)
	}
	w.write(p, cloud("rome", "", map[string]string{"location": "IT"}))
	w.stored(p, p.pass(epoch.Add(5*time.Hour)))
	if cloudOf() != "rome" {
		t.Errorf("cloud %q, want rome, which has just appeared", cloudOf())
	}
}

// Clusters with the same requirements share their view of the clouds until a cloud changes.
// A cluster stays on a cloud that fits no more, also when something changes in it that the choice does not depend on.
func TestAClusterIsCheckedAgainIfItAsksForAnotherCloud(t *testing.T) {
	for _, test := range []struct {
		name   string
		change func(*api.Cluster)
		want   string
	}{
		{"its labels", func(c *api.Cluster) { c.Metadata.Labels = map[string]string{"a": "b"} }, "north"},
		{"its size", func(c *api.Cluster) { c.Spec.Allocatable = api.Quantities{"cpu": "4"} }, "north"},
		{"its constraints, which still do not fit", func(c *api.Cluster) {
			c.Spec.CloudConstraints = &api.CloudConstraints{LabelConstraints: []string{"tier in (gold)"}}
		}, "south"},
		{"its constraints, which fit now", func(c *api.Cluster) {
			c.Spec.CloudConstraints = &api.CloudConstraints{LabelConstraints: []string{"tier in (gold, iron)"}}
		}, "north"},
	} {
		t.Run(test.name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			w.write(p, cloud("north", "", map[string]string{"tier": "gold"}))
			w.write(p, wishing("web", "tier is gold"))
			w.stored(p, p.pass(epoch))
			w.write(p, cloud("north", "", map[string]string{"tier": "iron"}))
			w.write(p, cloud("south", "", map[string]string{"tier": "gold"}))
			w.stored(p, p.pass(epoch))
			changed, _ := w.objects[api.Key{Kind: api.KindCluster, Name: "web"}].Copy().(*api.Cluster)
			test.change(changed)
			previewed, _ := p.clouds.preview(p.clouds.guests[api.KeyOf(changed)], changed, epoch)
			w.write(p, changed)
			w.stored(p, p.pass(epoch))
			if got := guestOf[*api.Cluster](t, p.clouds, api.KeyOf(changed)).Status.Cloud; got != test.want {
				t.Errorf("on cloud %q, want %q", got, test.want)
			}
			if got := previewed.(*api.Cluster).Status.Cloud; got != test.want {
				t.Errorf("previewed on %q, want %q", got, test.want)
			}
		})
	}
}

func TestEqualGuestsShareAView(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cloud("south", "", map[string]string{"location": "IT"}))
	for i := range 20 {
		w.write(p, wishing(fmt.Sprintf("c%d", i), "location is IT"))
	}
	w.write(p, wishing("other", "location is not IT"))
	w.stored(p, p.pass(epoch))
	// Each looks once more for clouds with a failing metric.
	if n := len(p.clouds.views); n != 4 {
		t.Errorf("%d views of the clouds for 21 clusters with two different specs, want 4", n)
	}
	w.write(p, cloud("north", "", map[string]string{"location": "NO"}))
	w.stored(p, p.pass(epoch.Add(time.Minute)))
	if host := p.clouds.guests[api.Key{Kind: api.KindCluster, Name: "other"}].host; host != "north" {
		t.Errorf("host of the other cluster is %q, want north", host)
	}
}

func TestAClusterThatExistsIsNotBound(t *testing.T) {
	beaten := cluster("beaten", nil)
	at := epoch
	beaten.Status.LastHeartbeatAt = &at
	measured := cluster("measured", nil)
	measured.Spec.Allocatable = api.Quantities{"cpu": "4"}
	probed := cluster("probed", nil)
	probed.Spec.Health = &api.HealthSpec{URL: "http://probed/"}
	zone := cluster("zone", nil)
	zone.Spec.OpenStack = &api.ClusterOpenStack{Cloud: "only", Region: "r", AvailabilityZone: "z"}
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cloud("only", "", nil))
	for _, c := range []*api.Cluster{beaten, measured, probed, zone, cluster("new", nil)} {
		w.write(p, c)
	}
	if got := written(p.pass(epoch), api.KindCluster); !slices.Equal(got, []string{"new"}) {
		t.Errorf("bound %v, want the new one only", got)
	}
}

// TestWithoutCloudsNothingIsWritten checks that a fleet without clouds has no trace of them.
func TestWithoutCloudsNothingIsWritten(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cluster("a", nil))
	if writes := p.pass(epoch); len(writes) > 0 {
		t.Errorf("wrote %v, want nothing", written(writes, api.KindCluster))
	}
	w.write(p, wishing("b"))
	if got := written(p.pass(epoch), api.KindCluster); !slices.Equal(got, []string{"b"}) {
		t.Errorf("wrote %v, want b, to say that it has no cloud", got)
	}
}

func TestInheritedLabelsFollowTheCloud(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cloud("paris", "", map[string]string{"location": "FR", "tier": "gold"}))
	guest := cluster("edge", map[string]string{"tier": "edge", "own": "yes"})
	guest.Spec.InheritLabels = true
	w.write(p, guest)
	w.write(p, newPlacement("web", 1, func(s *api.PlacementSpec) { s.LabelConstraints = []string{"location is FR", "tier is gold"} }))
	chosen := func() []string {
		return p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}].status.Clusters
	}
	w.stored(p, p.pass(epoch))
	if !slices.Equal(chosen(), []string{"edge"}) {
		t.Fatalf("placed on %v, want edge", chosen())
	}
	seen, _ := p.snapshot(nil).observe(guest).(*api.Cluster)
	if got := seen.Status.Labels; got["tier"] != "gold" || got["own"] != "yes" || got["location"] != "FR" {
		t.Errorf("labels %v, want those of the cloud and the cluster", got)
	}
	w.write(p, cloud("paris", "", map[string]string{"location": "FR"}))
	w.stored(p, p.pass(epoch.Add(time.Hour)))
	if len(chosen()) != 0 {
		t.Errorf("placed on %v although the cloud is no longer gold", chosen())
	}
	// The cluster's own label counts again.
	if seen, _ := p.snapshot(nil).observe(w.objects[api.KeyOf(guest)]).(*api.Cluster); seen.Status.Labels["tier"] != "edge" {
		t.Errorf("labels %v, want tier edge", seen.Status.Labels)
	}
}

func TestAZoneGivesItsAmounts(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	paris := cloud("paris", "", nil)
	at := epoch.Add(-time.Minute)
	paris.Status.Regions = []api.CloudRegion{{Name: "west", Zones: []api.CloudZone{{
		Name: "az1", Allocatable: api.Quantities{"cpu": "8"}, Allocated: api.Quantities{"cpu": "6"}, ObservedAt: &at,
	}}}}
	w.write(p, paris)
	site := cluster("site", nil)
	site.Spec.OpenStack = &api.ClusterOpenStack{Cloud: "paris", Region: "west", AvailabilityZone: "az1"}
	w.write(p, site)
	w.write(p, newPlacement("small", 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "2"} }))
	w.write(p, newPlacement("large", 1, func(s *api.PlacementSpec) { s.ResourceRequests = api.Quantities{"cpu": "3"} }))
	chosen := func(name string) int {
		return len(p.placer.placements[api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name}].status.Clusters)
	}
	w.stored(p, p.pass(epoch))
	if chosen("small") != 1 || chosen("large") != 0 {
		t.Fatalf("small on %d clusters, large on %d, want 1 and 0", chosen("small"), chosen("large"))
	}
	seen, _ := p.snapshot(nil).observe(site).(*api.Cluster)
	if s := seen.Status; s.Allocatable["cpu"] != "8" || s.Available["cpu"] != "0" || s.State != api.StateOnline {
		t.Errorf("status %+v, want 8 CPUs, none of them available", s)
	}

	// A newer report: the reservation ends, and both fit.
	later := *paris
	now := epoch.Add(time.Minute)
	later.Status.Regions = []api.CloudRegion{{Name: "west", Zones: []api.CloudZone{{
		Name: "az1", Allocatable: api.Quantities{"cpu": "16"}, Allocated: api.Quantities{"cpu": "8"}, ObservedAt: &now,
	}}}}
	p.put(&later, w.specs[api.KeyOf(paris)])
	w.stored(p, p.pass(now))
	if chosen("large") != 1 {
		t.Error("the new capacity is not used")
	}

	// The region disappears and returns.
	lost := later
	lost.Status.Regions = slices.Clone(later.Status.Regions)
	lost.Status.Regions[0].Failures, lost.Status.Regions[0].FailingSince, lost.Status.Regions[0].Message = api.MaxUnreachableFailures, &now, "no answer"
	p.put(&lost, w.specs[api.KeyOf(paris)])
	w.stored(p, p.pass(now))
	seen, _ = p.snapshot(nil).observe(site).(*api.Cluster)
	if chosen("small") != 0 || seen.Status.State != api.StateOffline || len(seen.Status.Taints) != 1 {
		t.Errorf("on %d clusters, status %+v; want none, and it offline", chosen("small"), seen.Status)
	}
	p.put(&later, w.specs[api.KeyOf(paris)])
	w.stored(p, p.pass(now))
	if chosen("small") != 1 {
		t.Error("the placement did not return to the cluster")
	}
}

func TestMagnumClusterShowsItsProject(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	red := project("red", map[string]string{"tier": "gold"})
	red.Spec.ProjectID, red.Spec.TemplateID = "4711", "small"
	w.write(p, red)
	foreign := project("blue", map[string]string{"tier": "gold"})
	foreign.Metadata.Namespace = "other"
	w.write(p, foreign)
	guest := magnum("web", map[string]string{"app": "web"}, "tier is gold")
	w.write(p, guest)
	status := func() api.MagnumClusterStatus {
		return guestOf[*api.MagnumCluster](t, p.projects, api.KeyOf(guest)).Status
	}
	w.stored(p, p.pass(epoch))
	if s := status(); s.Project != "red" || s.ProjectID != "4711" || s.TemplateID != "small" || s.Labels["tier"] != "gold" || s.Labels["app"] != "web" || s.DecisionRevision != 1 {
		t.Fatalf("unexpected status %+v", s)
	}
	// The project's template changes. The decision stays, and its displayed details change.
	changed := project("red", map[string]string{"tier": "gold"})
	changed.Spec.ProjectID, changed.Spec.TemplateID = "4711", "large"
	w.write(p, changed)
	w.stored(p, p.pass(epoch.Add(time.Hour)))
	if s := status(); s.TemplateID != "large" || s.DecisionRevision != 1 || !s.ScheduledAt.Equal(epoch) {
		t.Errorf("status %+v, want template large in the same decision", s)
	}
	// A better one is created: nothing moves until a user asks for it.
	w.write(p, provider())
	w.write(p, metric("green", 1))
	w.write(p, project("best", map[string]string{"tier": "gold"}, api.MetricRef{Name: "green"}))
	w.stored(p, p.pass(epoch.Add(2*time.Hour)))
	if status().Project != "red" {
		t.Errorf("moved to %q, want red", status().Project)
	}
	asked, _ := w.objects[api.KeyOf(guest)].Copy().(*api.MagnumCluster)
	asked.Metadata.RescheduleRequests++
	w.revision++
	w.specs[api.KeyOf(guest)] = w.revision
	p.put(asked, w.revision)
	w.stored(p, p.pass(epoch.Add(3*time.Hour)))
	if s := status(); s.Project != "best" || s.DecisionRevision != 2 || s.ObservedRescheduleRequests != 1 {
		t.Errorf("status %+v after a reschedule request, want project best", s)
	}
	if writes := p.pass(epoch.Add(4 * time.Hour)); len(writes) > 0 {
		t.Error("an answered reschedule request is answered again")
	}
	x := p.projects.explain(p.projects.guests[api.KeyOf(guest)], epoch)
	if x.Kind != api.KindMagnumCluster || len(x.Candidates) != 3 || x.Candidates[0].Cluster != "best" || !x.Candidates[0].Selected {
		t.Errorf("explanation %+v, want best selected out of three projects", x)
	}
}

// TestPreviewOfAHost checks that the preview equals the later decision, for a new object and for a new spec.
func TestPreviewOfAHost(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, project("red", map[string]string{"tier": "gold"}))
	w.write(p, project("blue", map[string]string{"tier": "iron"}))
	w.write(p, cloud("north", "", map[string]string{"tier": "gold"}))
	w.write(p, cloud("south", "", map[string]string{"tier": "iron"}))
	w.stored(p, p.pass(epoch))
	asking := func(tier string) *api.Cluster {
		c := cluster("created", nil)
		c.Spec.CloudConstraints = &api.CloudConstraints{LabelConstraints: []string{"tier is " + tier}}
		return c
	}
	for _, object := range []api.Object{
		magnum("web", nil, "tier is gold"), magnum("web", nil, "tier is iron"), magnum("web", nil, "tier is wood"),
		asking("gold"), asking("iron"), asking("wood"), cluster("elsewhere", nil),
	} {
		k, kind := api.KeyOf(object), decidedAs(object.ObjectKind())
		previewed := object.Copy()
		previewed.SetDefaults()
		previewed.Meta().UID, previewed.Meta().Generation = "uid-"+k.Path(), 1
		if was := w.objects[k]; was != nil {
			previewed = was.Copy()
			switch o := previewed.(type) {
			case *api.Cluster:
				o.Spec.CloudConstraints = object.(*api.Cluster).Spec.CloudConstraints
			case *api.MagnumCluster:
				o.Spec.LabelConstraints = object.(*api.MagnumCluster).Spec.LabelConstraints
			}
			previewed.Meta().Generation++
		}
		seen, x, err := kind.previewed(p.snapshot(nil), previewed, epoch)
		if err != nil {
			t.Fatal(err)
		}
		w.write(p, object)
		w.stored(p, p.pass(epoch))
		d := p.known(k)
		decided := d.result()
		if decided == nil {
			decided = d.stored() // it is not decided
		}
		is, _ := whereIs(decided)
		if was, _ := whereIs(seen); !was.same(is) {
			t.Errorf("%s: previewed on %v, decided on %v", k, was.clusters, is.clusters)
		}
		if !slices.EqualFunc(*api.ConditionsOf(seen), *api.ConditionsOf(decided), sameCondition) {
			t.Errorf("%s: previewed %+v, decided %+v", k, *api.ConditionsOf(seen), *api.ConditionsOf(decided))
		}
		s := p.snapshot(nil)
		known, _ := s.get(k)
		if y := kind.explained(s, &known, epoch); x.Summary != y.Summary {
			t.Errorf("%s: previewed %q, explained %q", k, x.Summary, y.Summary)
		}
	}
}

// TestHostWithoutLostMetricsHoldsNoDecision: the condition that says that a decision
// waits goes once it does not wait any more.
func TestHostWithoutLostMetricsHoldsNoDecision(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	p.lose([]api.Key{key(api.KindMetric, "", "green")})
	w.write(p, project("red", nil, api.MetricRef{Name: "green"}))
	guest := magnum("web", nil)
	guest.Status.Project = "red"
	w.write(p, guest)
	held := func() *api.Condition {
		p.pass(epoch)
		return api.FindCondition(*api.ConditionsOf(p.snapshot(nil).withMoveHeld(guest, epoch)), api.ConditionMoveHeld)
	}
	if held() == nil {
		t.Fatal("the guest is not held, so the test checks nothing")
	}
	w.write(p, project("red", nil))
	if c := held(); c != nil {
		t.Errorf("the guest still waits: %s", c.Message)
	}
}

// TestARestartKeepsBindings: whoever starts from what is stored decides nothing
// anew.
func TestARestartKeepsBindings(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, cloud("a", "", nil))
	w.write(p, cloud("b", "", nil))
	w.write(p, project("red", nil))
	w.write(p, magnum("web", nil))
	guest := wishing("edge")
	w.write(p, guest)
	w.stored(p, p.pass(epoch))
	next := newPlanner(discard())
	for key, object := range w.objects {
		next.put(object, w.specs[key])
	}
	if writes := next.pass(epoch.Add(time.Hour)); len(writes) > 0 {
		t.Errorf("%d statuses written, want none", len(writes))
	}
}

// TestAHostThatFitsNoMoreIsStillTheOneExplained: the explanation is about the host
// that the guest has, also where a fresh look would choose another one or none.
func TestAHostThatFitsNoMoreIsStillTheOneExplained(t *testing.T) {
	for _, tt := range []struct{ name, other, summary string }{
		{"another one would be chosen", "NO", "north was chosen before and stays; at present 1 of 2 clouds fits: 1 does not match label constraint \"location is NO\""},
		{"none would be chosen", "IT", "north was chosen before and stays; at present 0 of 2 clouds fit: 2 do not match label constraint \"location is NO\""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			w.write(p, cloud("north", "", map[string]string{"location": "NO"}))
			guest := wishing("edge", "location is NO")
			w.write(p, guest)
			w.stored(p, p.pass(epoch))
			w.write(p, cloud("north", "", map[string]string{"location": "SE"}))
			w.write(p, cloud("south", "", map[string]string{"location": tt.other}))
			w.stored(p, p.pass(epoch))
			if got := guestOf[*api.Cluster](t, p.clouds, api.KeyOf(guest)).Status.Cloud; got != "north" {
				t.Fatalf("cloud %q, want north", got)
			}
			x := p.clouds.explain(p.clouds.guests[api.KeyOf(guest)], epoch)
			var selected []string
			for _, c := range x.Candidates {
				if c.Selected {
					selected = append(selected, c.Cluster)
				}
			}
			if !slices.Equal(selected, []string{"north"}) || !x.Candidates[0].Selected || len(x.Candidates) != 2 {
				t.Errorf("selected %v, want north out of two; candidates %+v", selected, x.Candidates)
			}
			if x.Summary != tt.summary {
				t.Errorf("unexpected summary %q", x.Summary)
			}
		})
	}
}

// TestUncheckedKubeconfig checks that a new cluster gets nothing before its first successful check, and that a cluster
// older than the server's start keeps what it has.
func TestUncheckedKubeconfig(t *testing.T) {
	for _, tt := range []struct {
		name    string
		created time.Time
		want    []string
	}{
		{"newer", epoch.Add(time.Second), nil},
		{"older", epoch.Add(-time.Second), []string{"edge"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w, p := newWorld(), newPlanner(discard())
			p.started = epoch
			c := cluster("edge", nil)
			c.Metadata.CreatedAt = &tt.created
			c.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(kubeconfigText)}
			w.write(p, c)
			web := &api.Placement{Metadata: api.Metadata{Namespace: "shop", Name: "web"}}
			w.write(p, web)
			p.pass(epoch.Add(time.Minute))
			if got := p.placer.placements[api.KeyOf(web)].status.Clusters; !slices.Equal(got, tt.want) {
				t.Errorf("chosen %v, want %v", got, tt.want)
			}
		})
	}
}

func TestNewMetricConstraintsAreAskedOfThePresentCloud(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, metric("green", 0.9))
	w.write(p, metric("brown", 0.6))
	w.write(p, cloud("north", "", nil, api.MetricRef{Name: "green"}))
	w.write(p, cloud("south", "", nil, api.MetricRef{Name: "brown"}))
	guest := func(labels map[string]string, constraints ...string) *api.Cluster {
		c := cluster("edge", labels)
		c.Spec.CloudConstraints = &api.CloudConstraints{MetricConstraints: constraints}
		if was, ok := w.objects[api.Key{Kind: api.KindCluster, Name: "edge"}].(*api.Cluster); ok {
			c.Status = was.Status
		}
		return c
	}
	step := func(want string, c *api.Cluster) {
		t.Helper()
		w.write(p, c)
		w.stored(p, p.pass(epoch))
		if got := guestOf[*api.Cluster](t, p.clouds, api.KeyOf(c)).Status.Cloud; got != want {
			t.Fatalf("cloud %q, want %q", got, want)
		}
	}
	step("north", guest(nil, "green > 0.5"))
	w.write(p, metric("green", 0.1))
	step("north", guest(map[string]string{"other": "label"}, "green > 0.5")) // the value alone moves nothing
	step("south", guest(nil, "brown > 0.5"))

	// What it requested before it existed is not remembered, because a restart would not know it.
	exists := guest(nil)
	exists.Spec.CloudConstraints, exists.Spec.Kubernetes = nil, &api.KubernetesSpec{Kubeconfig: api.NewSecret(kubeconfigText)}
	step("south", exists)
	w.write(p, metric("brown", 0.1))
	step("", guest(nil, "brown > 0.5"))
}

// TestCloudIsNotChosenBeforeItsAmountsAreRead: such a choice would be permanent.
func TestCloudIsNotChosenBeforeItsAmountsAreRead(t *testing.T) {
	w, p := newWorld(), newPlanner(discard())
	w.write(p, provider())
	w.write(p, metric("brown", 0.5))
	unread := metric("green", 0)
	unread.Status = api.MetricStatus{}
	w.write(p, unread)
	w.write(p, cloud("north", "", nil, api.MetricRef{Name: "green"}))
	w.write(p, cloud("south", "", nil, api.MetricRef{Name: "brown"}))
	c := wishing("edge")
	w.write(p, c)
	w.stored(p, p.pass(epoch))
	s := guestOf[*api.Cluster](t, p.clouds, api.KeyOf(c)).Status
	if bound := api.FindCondition(s.Conditions, api.ConditionBound); s.Cloud != "" || bound == nil || bound.Message != `metric "green" has not been read yet` {
		t.Fatalf("cloud %q, condition %+v; want none until the metric has been read", s.Cloud, bound)
	}
	w.write(p, metric("green", 0.9))
	w.stored(p, p.pass(epoch))
	if s := guestOf[*api.Cluster](t, p.clouds, api.KeyOf(c)).Status; s.Cloud != "north" {
		t.Errorf("cloud %q, want north", s.Cloud)
	}
}
