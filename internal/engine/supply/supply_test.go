package supply

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// place is a placement that demands clusters with a label, and uses some.
func place(name string, missing int64, location string, cpu api.Quantity, uses ...string) Open {
	o := Open{Key: api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: name}, auto: &api.AutoCluster{Max: 2}}
	if missing > 0 {
		o.Demand = &api.Demand{Clusters: missing}
		if location != "" {
			o.Demand.Labels = map[string]string{"location": location}
		}
		if cpu != "" {
			o.Demand.Resources = api.Quantities{"cpu": cpu}
		}
	}
	o.uses = func(cluster string) bool { return slices.Contains(uses, cluster) }
	return o
}

// fleetOf is a fleet in which clusters are declared and become real.
type fleetOf map[string]*api.Cluster

func (f fleetOf) made() []*api.Cluster {
	var list []*api.Cluster
	for _, c := range f {
		if MadeFor(c) {
			list = append(list, c)
		}
	}
	return list
}

func (f fleetOf) has(name string) bool { return f[name] != nil }

// follow does what a plan says, and returns what it was.
func (f fleetOf) follow(open ...Open) string {
	declare, remove := Plan(open, f.made(), f.has)
	var done []string
	for _, c := range declare {
		f[c.Metadata.Name] = c
		done = append(done, "+"+c.Spec.Demand.Name)
	}
	for _, name := range remove {
		done = append(done, "-"+f[name].Spec.Demand.Name)
		delete(f, name)
	}
	return strings.Join(done, " ")
}

func TestPlan(t *testing.T) {
	now := time.Now()
	first := func(of string) string {
		return nameFor(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: of}, 1)
	}
	makeReal := func(f fleetOf, name string) {
		c := *f[name]
		c.Status.LastHeartbeatAt = &now
		f[name] = &c
	}
	manual := place("hand", 1, "DE", "")
	manual.auto = nil
	for _, test := range []struct {
		name  string
		steps func(f fleetOf) []string
		want  string
	}{
		{"declared once", func(f fleetOf) []string {
			return []string{f.follow(place("web", 1, "DE", "4")), f.follow(place("web", 1, "DE", "4"))}
		}, "+web|"},
		{"up to max", func(f fleetOf) []string { return []string{f.follow(place("web", 5, "", ""))} }, "+web +web"},
		{"removed with its demand", func(f fleetOf) []string {
			return []string{f.follow(place("web", 1, "DE", "")), f.follow(place("web", 0, "", ""))}
		}, "+web|-web"},
		{"removed with its placement", func(f fleetOf) []string { return []string{f.follow(place("web", 1, "DE", "")), f.follow()} }, "+web|-web"},
		{"real ones stay", func(f fleetOf) []string {
			a := f.follow(place("web", 1, "DE", ""))
			makeReal(f, first("web"))
			return []string{a, f.follow(place("web", 0, "", "", first("web"))), f.follow()}
		}, "+web||"},
		{"real and unused counts", func(f fleetOf) []string {
			a := f.follow(place("web", 1, "DE", ""))
			makeReal(f, first("web"))
			return []string{a, f.follow(place("web", 1, "DE", ""))}
		}, "+web|"},
		{"adopted ones stay", func(f fleetOf) []string {
			a := f.follow(place("web", 1, "DE", ""))
			c := *f[first("web")]
			c.Metadata.Declared = false
			f[first("web")] = &c
			return []string{a, f.follow()}
		}, "+web|"},
		{"shared", func(f fleetOf) []string { return []string{f.follow(place("a", 1, "DE", ""), place("b", 1, "DE", ""))} }, "+a"},
		{"shared later", func(f fleetOf) []string {
			return []string{f.follow(place("a", 1, "DE", "")), f.follow(place("a", 1, "DE", ""), place("b", 1, "DE", "")), f.follow(place("b", 1, "DE", "")), f.follow()}
		}, "+a|||-a"},
		{"not shared with less room", func(f fleetOf) []string {
			return []string{f.follow(place("a", 1, "DE", "4"), place("b", 1, "DE", "4"))}
		}, "+a +b"},
		{"not shared with another label", func(f fleetOf) []string { return []string{f.follow(place("a", 1, "DE", ""), place("b", 1, "FR", ""))} }, "+a +b"},
		{"an object of that name stays", func(f fleetOf) []string {
			f[first("web")] = &api.Cluster{Metadata: api.Metadata{Name: first("web")}}
			a := f.follow(place("web", 1, "DE", ""))
			if f[first("web")].Spec.Demand != nil {
				a += " over another"
			}
			return []string{a}
		}, "+web"},
		{"only by configuration", func(f fleetOf) []string { return []string{f.follow(manual)} }, ""},
		{"replaced if the demand changes", func(f fleetOf) []string {
			return []string{f.follow(place("web", 1, "DE", "")), f.follow(place("web", 1, "FR", "")), f.follow(place("web", 1, "FR", ""))}
		}, "+web|+web -web|"},
		{"not where no cluster helps", func(f fleetOf) []string {
			o := place("web", 1, "DE", "")
			o.Demand.Obstacles = []string{"no"}
			return []string{f.follow(o)}
		}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := strings.Join(test.steps(fleetOf{}), "|"); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// A declared cluster has what is demanded of it, and the rest from the template.
func TestDeclaredCluster(t *testing.T) {
	o := place("web", 1, "DE", "4")
	o.Demand.Region = "berlin"
	o.auto.LabelConstraints = []string{"location is DE"}
	o.auto.Template = &api.ClusterTemplate{Labels: map[string]string{"location": "FR", "team": "shop"}, Region: "paris", InheritMetrics: true}
	declare, _ := Plan([]Open{o}, nil, func(string) bool { return false })
	c := declare[0]
	if c.Metadata.Labels["location"] != "DE" || c.Metadata.Labels["team"] != "shop" || c.Spec.Region != "berlin" || !c.Spec.InheritMetrics || c.Spec.Namespace != "shop" ||
		!c.Metadata.Declared || c.Spec.Demand.Resources["cpu"] != "4" || !slices.Equal(c.Spec.CloudConstraints.LabelConstraints, o.auto.LabelConstraints) {
		t.Errorf("cluster %+v", c)
	}
	if !c.Spec.Awaited(&c.Status) {
		t.Error("it gets placements before it is real")
	}
	if err := c.Validate().Err(); err != nil {
		t.Error(err)
	}
}

// A cluster that somebody says was made for another namespace, which cannot see it, changes nothing there.
func TestForeignClusterCoversNothing(t *testing.T) {
	foreign := &api.Cluster{Metadata: api.Metadata{Name: "evil"}, Spec: api.ClusterSpec{Namespace: "bank", Demand: &api.ClusterDemand{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}}}
	items, _ := List([]Open{place("web", 1, "DE", "", "evil")}, []*api.Cluster{foreign}, func(string) bool { return false })
	if len(items) != 1 || items[0].State != api.DemandOpen {
		t.Errorf("demanded %+v", items)
	}
}

// The list keeps its names while what it lists is made, and used.
func TestListKeepsNames(t *testing.T) {
	names := func(open Open, f fleetOf) (out []string) {
		items, _ := List([]Open{open}, f.made(), f.has)
		for _, c := range items {
			out = append(out, c.Cluster+" "+string(c.State))
		}
		return out
	}
	f := fleetOf{}
	open := names(place("web", 2, "DE", "4"), f)
	items, _ := List([]Open{place("web", 2, "DE", "4")}, nil, f.has)
	for _, c := range items {
		f[c.Cluster] = &api.Cluster{Metadata: api.Metadata{Name: c.Cluster, Labels: c.Labels}, Spec: api.ClusterSpec{Demand: &c.ClusterDemand}}
	}
	unused := names(place("web", 2, "DE", "4"), f)
	used := names(place("web", 0, "", "", items[0].Cluster, items[1].Cluster), f)
	for i := range items {
		if name := items[i].Cluster; open[i] != name+" open" || unused[i] != name+" made" || used[i] != name+" made" {
			t.Errorf("listed as %s, %s and %s", open[i], unused[i], used[i])
		}
	}
	if left := names(place("web", 0, "", ""), f); len(left) > 0 {
		t.Errorf("still listed: %s", left)
	}
	if len(nameFor(api.Key{Kind: api.KindPlacement, Namespace: "n", Name: strings.Repeat("x", 63)}, 1000)) > 63 {
		t.Error("the name is too long")
	}
}

// TestPlanLaws draws demands and fleets, and checks that a plan does not depend on the order, declares nothing twice,
// stays below every maximum, and leaves nothing to do.
func TestPlanLaws(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		f := fleetOf{}
		var open []Open
		for step := range 4 {
			open = open[:0]
			for i := range rapid.IntRange(0, 4).Draw(t, "placements") {
				o := place(fmt.Sprintf("p%d", i), int64(rapid.IntRange(0, 3).Draw(t, "missing")), rapid.SampledFrom([]string{"", "DE", "FR"}).Draw(t, "location"),
					rapid.SampledFrom([]api.Quantity{"", "1", "4"}).Draw(t, "cpu"))
				open = append(open, o)
			}
			backwards, clusters := slices.Clone(open), f.made()
			slices.Reverse(backwards)
			declare, remove := Plan(open, clusters, f.has)
			again, removeAgain := Plan(backwards, clusters, f.has)
			if fmt.Sprint(namesOf(declare), remove) != fmt.Sprint(namesOf(again), removeAgain) {
				t.Fatalf("the order matters: %v %v, %v %v", namesOf(declare), remove, namesOf(again), removeAgain)
			}
			for _, c := range declare {
				if f.has(c.Metadata.Name) {
					t.Fatalf("step %d overwrites %s", step, c.Metadata.Name)
				}
			}
			// What is replaced goes first, which may make room below a maximum for another.
			rest, rounds := f.follow(open...), 0
			for ; rest != ""; rest = f.follow(open...) {
				if rounds++; rounds > 4 {
					t.Fatalf("after %d rounds, there is still %s", rounds, rest)
				}
				counts := map[string]int{}
				for _, c := range f {
					if counts[c.Spec.Demand.Name]++; counts[c.Spec.Demand.Name] > 2 {
						t.Fatalf("%d clusters for %s", counts[c.Spec.Demand.Name], c.Spec.Demand.Name)
					}
				}
			}
		}
	})
}

func namesOf(list []*api.Cluster) []string {
	names := make([]string, len(list))
	for i, c := range list {
		names[i] = c.Metadata.Name
	}
	return names
}
