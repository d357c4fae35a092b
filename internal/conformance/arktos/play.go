package arktos

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

// Simulate runs a simulation: in this process, or on a server.
type Simulate func(ctx context.Context, request api.Simulation) (*api.SimulationResult, error)

// epoch is the time of every case.
var epoch = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// Names for what a case does not name.
const (
	theSite     = "site"
	theWorkload = "workload"
	theFlavor   = "flavor"
	// beside is a workload next to, or apart from, which the case's workload must be.
	beside = "beside"
)

// Suite returns the cases, to be run as simulations.
func Suite(simulate Simulate) *conformance.Suite {
	play := func(group func(*player) ([]string, error)) func(*conformance.T, *conformance.Played) {
		return conformance.Player(func(t *conformance.T, in *Input, out *Output) {
			wrong, err := group(&player{In: in, Out: out, ctx: t.Context(), simulate: simulate})
			if err != nil {
				t.Fatal(err)
			}
			for _, text := range wrong {
				t.Error(text)
			}
		})
	}
	return &conformance.Suite{
		Driver: "internal/conformance/arktos",
		Play: map[string]func(*conformance.T, *conformance.Played){
			FlavorCount: play((*player).playCount),
			SiteFilter:  play((*player).playFilter),
			SiteScore:   play((*player).playScore),
			Strategy:    play((*player).playStrategy),
			Pipeline:    play((*player).playRetry),
		},
	}
}

type player struct {
	In       *Input
	Out      *Output
	ctx      context.Context
	simulate Simulate
}

// site returns a cluster that represents a site: zone az1 of a region.
func site(name, region string, change ...func(*api.Cluster)) *api.Cluster {
	c := &api.Cluster{Metadata: api.Metadata{Name: name, UID: "uid-" + name, Generation: 1, CreatedAt: &epoch, ModifiedAt: &epoch}}
	c.Spec.Region, c.Spec.Zones = region, []string{"az1"}
	for _, f := range change {
		f(c)
	}
	c.SetDefaults()
	return c
}

// pod returns a workload that is placed on sites.
func pod(name string, replicas int64, change ...func(*api.Workload)) *api.Workload {
	w := &api.Workload{Metadata: api.Metadata{Name: name, UID: "uid-" + name, Generation: 1, CreatedAt: &epoch, ModifiedAt: &epoch}}
	w.Spec = api.WorkloadSpec{APIVersion: "v1", Kind: "Pod", Replicas: &replicas, Allocation: &api.AllocationSpec{}}
	for _, f := range change {
		f(w)
	}
	w.SetDefaults()
	return w
}

// amounts sets the resources of a site, and how much of them is used.
func amounts(allocatable, allocated api.Quantities) func(*api.Cluster) {
	return func(c *api.Cluster) { c.Spec.Allocatable, c.Spec.Allocated = allocatable, allocated }
}

// machines gives a site flavors with their sizes, and their number where it is registered.
func machines(sizes map[string]conformance.Pair[int64], registered map[string]int64) func(*api.Cluster) {
	return func(c *api.Cluster) {
		for _, name := range slices.Sorted(maps.Keys(sizes)) {
			f := api.ClusterFlavor{Name: name, VCPUs: sizes[name][0], Memory: mebibytes(sizes[name][1])}
			if n, ok := registered[name]; ok {
				f.Count = &n
			}
			c.Spec.Flavors = append(c.Spec.Flavors, f)
		}
	}
}

// counted gives a site a number of machines of one flavor.
func counted(flavor string, n int64) func(*api.Cluster) {
	return func(c *api.Cluster) {
		c.Spec.Flavors = append(c.Spec.Flavors, api.ClusterFlavor{Name: flavor, Count: &n})
	}
}

func asks(flavors ...string) func(*api.Workload) {
	return func(w *api.Workload) { w.Spec.Allocation.Flavors = flavors }
}

func mebibytes(n int64) api.Quantity { return api.Quantity(fmt.Sprintf("%dMi", n)) }

// volumes returns amounts of storage by volume type.
func volumes(gigabytes map[string]int64) api.Quantities {
	out := api.Quantities{}
	for name, n := range gigabytes {
		out["storage/"+name] = api.Quantity(fmt.Sprintf("%dGi", n))
	}
	return out
}

// sizes are the sizes of flavors that cases only name.
var sizes = map[string]conformance.Pair[int64]{"m1.nano": {1, 128}, "m1.large": {4, 8192}}

// answer is the result of a simulation.
type answer struct {
	clusters     map[string]*api.Cluster
	workloads    map[string]*api.Workload
	explanations map[string]*api.Explanation
}

// ask simulates objects.
func (p *player) ask(objects ...api.Object) (*answer, error) {
	request := api.Simulation{Base: "empty", Now: &epoch}
	for _, object := range objects {
		raw, err := json.Marshal(object)
		if err != nil {
			return nil, fmt.Errorf("write %s: %w", api.KeyOf(object), err)
		}
		request.Objects = append(request.Objects, raw)
	}
	result, err := p.simulate(p.ctx, request)
	if err != nil {
		return nil, err
	}
	a := &answer{clusters: map[string]*api.Cluster{}, workloads: map[string]*api.Workload{}, explanations: map[string]*api.Explanation{}}
	for _, object := range result.Objects {
		switch o := object.(type) {
		case *api.Cluster:
			a.clusters[o.Metadata.Name] = o
		case *api.Workload:
			a.workloads[o.Metadata.Name] = o
		}
	}
	for i := range result.Explanations {
		a.explanations[result.Explanations[i].Name] = &result.Explanations[i]
	}
	return a, nil
}

// pending returns why the workload of a case waits, or "" if it has all it requested.
func (a *answer) pending() string {
	c := api.FindCondition(a.workloads[theWorkload].Status.Conditions, api.ConditionScheduled)
	if c == nil || c.Status == api.ConditionTrue {
		return ""
	}
	return c.Reason + ": " + c.Message
}

func (a *answer) replicas() map[string]int64 {
	out := map[string]int64{}
	for _, c := range a.workloads[theWorkload].Status.Clusters {
		out[c.Name] = c.Replicas
	}
	return out
}

// playCount counts the machines that fit on a site.
func (p *player) playCount() ([]string, error) {
	in := p.In
	c := site(theSite, "West", machines(in.Flavors.Get(), nil))
	pushed := func(vcpus, memory int64) {
		c.Spec.Allocatable = api.Quantities{"cpu": api.Quantity(fmt.Sprint(vcpus)), "memory": mebibytes(memory)}
	}
	objects := []api.Object{c}
	switch {
	case in.Push.Get() != nil:
		pushed(in.Push.Get().VCPUs.Get(), in.Push.Get().Memory.Get())
	case !in.NoCapacityPushed.Get():
		pushed(in.AvailableVCPUs.Get(), in.AvailableMemory.Get())
	}
	if in.Flavor.Get() != nil {
		machines(map[string]conformance.Pair[int64]{theFlavor: *in.Flavor.Get()}, nil)(c)
	}
	for name := range in.Registered.Get() {
		machines(map[string]conformance.Pair[int64]{name: sizes[name]}, in.Registered.Get())(c)
	}
	if n := in.Binds.Get(); n > 0 {
		return nil, fmt.Errorf("nobody plays %d binds", n)
	}
	if in.Bind.Get() != "" {
		objects = append(objects, pod(theWorkload, 1, asks(in.Bind.Get())))
	}
	a, err := p.ask(objects...)
	if err != nil {
		return nil, err
	}
	has := a.clusters[theSite].Status.Flavors
	if p.Out.Count != "" {
		if n, counts := has[theFlavor]; counts || p.Out.Count != "flavor skipped" {
			return []string{fmt.Sprintf("the flavor counts %d (%t), want %s", n, counts, p.Out.Count)}, nil
		}
		return nil, nil
	}
	if want := p.Out.counts; !maps.Equal(has, want) {
		return []string{fmt.Sprintf("counts %v, want %v", has, want)}, nil
	}
	return nil, nil
}

// playFilter checks whether a site fits.
func (p *player) playFilter() ([]string, error) {
	in := p.In
	c, w := site(theSite, "West"), pod(theWorkload, 1)
	if err := p.place(c); err != nil {
		return nil, err
	}
	switch in.Plugin.Get() {
	case "SiteAvailability":
		w.Spec.Allocation.SiteID = in.SiteID.Get()
		if in.Status.Get() != "" && in.Status.Get() != "Normal" {
			return nil, fmt.Errorf("nobody knows what status %q is", in.Status.Get())
		}
	case "regionandaz":
		for _, r := range in.Regions.Get() {
			w.Spec.Allocation.Regions = append(w.Spec.Allocation.Regions, api.AllocationRegion{Region: r.Region.Get()})
		}
	case "ExclusiveSite":
		return p.playExclusive(c)
	case "Flavor":
		return p.playStacks(c)
	case "Volume":
		amounts(volumes(in.Total.Get()), volumes(in.Used.Get()))(c)
		count := in.Count.Get()
		w.Spec.Replicas, w.Spec.ReplicaRequests = &count, volumes(in.Request.Get())
	default:
		return nil, fmt.Errorf("nobody plays plugin %q", in.Plugin.Get())
	}
	a, err := p.ask(c, w)
	if err != nil {
		return nil, err
	}
	return p.passes(a), nil
}

// playExclusive checks that a site that belongs to some domains accepts a workload of one of them, and rejects others.
func (p *player) playExclusive(c *api.Cluster) ([]string, error) {
	c.Spec.Namespaces = strings.Split(p.In.ExclusiveDomains.Get(), ",")
	of := func(namespace string) (*answer, error) {
		return p.ask(c, pod(theWorkload, 1, func(w *api.Workload) { w.Metadata.Namespace = namespace }))
	}
	a, err := of(p.In.Domain.Get())
	if err != nil {
		return nil, err
	}
	wrong := p.passes(a)
	stranger, err := of("stranger-to-" + p.In.Domain.Get())
	if err != nil {
		return nil, err
	}
	if stranger.pending() == "" {
		wrong = append(wrong, "it passes for a domain that the site does not belong to")
	}
	return wrong, nil
}

// place puts the site where the case has it.
func (p *player) place(c *api.Cluster) error {
	if p.In.Site.Get() == nil {
		return nil
	}
	var id string
	var place [2]string
	if json.Unmarshal(p.In.Site.Get(), &id) == nil {
		region, zone, _ := strings.Cut(id, "--")
		place = [2]string{region, zone}
	} else if err := json.Unmarshal(p.In.Site.Get(), &place); err != nil {
		return fmt.Errorf("read the site: %w", err)
	}
	c.Spec.Region, c.Spec.Zones = place[0], []string{place[1]}
	return nil
}

func (p *player) passes(a *answer) []string {
	has := a.pending() == ""
	switch {
	case p.Out.Pass == nil:
		return []string{"the case does not say whether the site passes"}
	case has != *p.Out.Pass:
		return []string{fmt.Sprintf("passes: %t (%s), want %t", has, a.pending(), *p.Out.Pass)}
	}
	return nil
}

// playStacks requests a stack, then as many as should fit, and then one more. The machines of a stack are replicas.
func (p *player) playStacks(c *api.Cluster) ([]string, error) {
	resource := p.In.Resources.Get()[0]
	for _, name := range slices.Sorted(maps.Keys(p.In.Allocatable.Get())) {
		counted(name, p.In.Allocatable.Get()[name])(c)
	}
	a, err := p.ask(c, pod(theWorkload, resource.Count.Get(), asks(resource.Flavors.Get()...)))
	if err != nil {
		return nil, err
	}
	wrong := p.passes(a)
	if p.Out.MaxStacks == nil {
		return wrong, nil
	}
	for stacks, fits := range map[int64]bool{*p.Out.MaxStacks: true, *p.Out.MaxStacks + 1: false} {
		a, err := p.ask(c, pod(theWorkload, stacks*resource.Count.Get(), asks(resource.Flavors.Get()...)))
		if err != nil {
			return nil, err
		}
		if has := a.pending() == ""; has != fits {
			wrong = append(wrong, fmt.Sprintf("%d stacks fit: %t (%s), want %t", stacks, has, a.pending(), fits))
		}
	}
	return wrong, nil
}

// playScore compares the score of a site.
func (p *player) playScore() ([]string, error) {
	in := p.In
	c, w := site(theSite, "West"), pod(theWorkload, 1)
	objects := []api.Object{c, w}
	switch in.Plugin.Get() {
	case "Flavor":
		for i := range in.Alternatives.Get()[0] {
			w.Spec.Allocation.Flavors = append(w.Spec.Allocation.Flavors, fmt.Sprintf("%s%d", theFlavor, i+1))
		}
		counted(fmt.Sprintf("%s%d", theFlavor, in.Alternatives.Get()[0]), 10)(c)
	case "StackAffinity":
		other := pod(beside, 1)
		other.Status.Clusters = []api.WorkloadCluster{{Name: theSite, Replicas: 1}}
		objects = append(objects, other)
		if in.Affinity.Get() != "" {
			w.Spec.Allocation.StackAffinity = []string{beside}
		}
		if in.AntiAffinity.Get() != "" {
			w.Spec.Allocation.StackAntiAffinity = []string{beside}
		}
	case "SiteResourcesLeastAllocated":
		amounts(plain(in.Capacity.Get()), plain(in.Requested.Get()))(c)
	default:
		return nil, fmt.Errorf("nobody plays plugin %q", in.Plugin.Get())
	}
	a, err := p.ask(objects...)
	if err != nil {
		return nil, err
	}
	x := a.explanations[theWorkload]
	i := slices.IndexFunc(x.Candidates, func(c api.Candidate) bool { return c.Cluster == theSite })
	if i < 0 {
		return []string{"the site is no candidate: " + x.Summary}, nil
	}
	for _, part := range x.Candidates[i].Scores {
		if part.Name != in.Plugin.Get() {
			continue
		}
		if part.Value != *p.Out.Score || part.Weight != 1 || part.Share != part.Value {
			return []string{fmt.Sprintf("%+v, want a score of %g", part, *p.Out.Score)}, nil
		}
		return nil, nil
	}
	return []string{fmt.Sprintf("no score %s: %+v", in.Plugin.Get(), x.Candidates[i])}, nil
}

// plain returns amounts without a unit.
func plain(numbers map[string]int64) api.Quantities {
	out := api.Quantities{}
	for name, n := range numbers {
		if name == "storage" {
			name = "storage/ssd"
		}
		out[name] = api.Quantity(fmt.Sprint(n))
	}
	return out
}

// playStrategy compares how replicas are divided. All sites have the same score, so they are ranked by name.
func (p *player) playStrategy() ([]string, error) {
	in := p.In
	w := pod(theWorkload, in.Replicas.Get(), func(w *api.Workload) {
		w.Spec.Allocation.LocationStrategy = api.LocationStrategy(in.Strategy.Get())
		w.Spec.Allocation.RegionStrategy = api.RegionStrategy(in.RegionStrategy.Get())
	})
	objects := []api.Object{w}
	regions := map[string]string{}
	if in.RequestStorage.Get() != nil {
		w.Spec.ReplicaRequests = volumes(in.RequestStorage.Get())
	} else {
		asks(theFlavor)(w)
	}
	add := func(name, region string, room int64) {
		c := site(strings.ToLower(name), region)
		if in.RequestStorage.Get() != nil {
			amounts(volumes(in.StorageTotal.Get()), nil)(c)
		} else {
			counted(theFlavor, room)(c)
		}
		regions[c.Metadata.Name] = region
		objects = append(objects, c)
	}
	for _, r := range in.Ranked.Get() {
		add(r.site, "West", r.room)
	}
	for name, rooms := range in.Sites.Get() {
		for i, room := range rooms {
			add(fmt.Sprintf("%s-%d", name, i), name, room)
		}
	}
	a, err := p.ask(objects...)
	if p.Out.Error == "400" {
		var refused api.FieldErrors
		if !errors.As(err, &refused) || len(refused) != 1 || !strings.HasSuffix(refused[0].Field, "spec.allocation.location_strategy") {
			return []string{fmt.Sprintf("answered with %v, want the strategy refused", err)}, nil
		}
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	switch {
	case p.Out.Error == "unschedulable":
		return p.unschedulable(a), nil
	case p.Out.Error != "":
		return []string{"nobody knows the error " + p.Out.Error}, nil
	case p.Out.Region != "":
		return p.inRegion(a, regions), nil
	}
	want := map[string]int64{}
	for name, n := range p.Out.counts {
		want[strings.ToLower(name)] = n
	}
	if has := a.replicas(); !maps.Equal(has, want) {
		return []string{fmt.Sprintf("replicas %v (%s), want %v", has, a.pending(), want)}, nil
	}
	return nil, nil
}

func (p *player) unschedulable(a *answer) []string {
	why := a.pending()
	if !strings.HasPrefix(why, api.ReasonUnschedulable) || len(a.replicas()) > 0 {
		return []string{fmt.Sprintf("replicas %v, %q, want none", a.replicas(), why)}
	}
	if p.Out.MaxStacks != nil {
		if want := fmt.Sprintf("has room for %d of %d replicas", *p.Out.MaxStacks, p.In.Replicas.Get()); !strings.Contains(why, want) {
			return []string{fmt.Sprintf("it waits because %q, want %q", why, want)}
		}
	}
	return nil
}

func (p *player) inRegion(a *answer, regions map[string]string) []string {
	sum := int64(0)
	for name, n := range a.replicas() {
		if regions[name] != p.Out.Region {
			return []string{fmt.Sprintf("%d replicas in region %s, want all in %s", n, regions[name], p.Out.Region)}
		}
		sum += n
	}
	if sum != p.In.Replicas.Get() {
		return []string{fmt.Sprintf("%d replicas (%s), want %d", sum, a.pending(), p.In.Replicas.Get())}
	}
	return nil
}

// playRetry requests more than there is, and again after capacity has been pushed.
func (p *player) playRetry() ([]string, error) {
	if !p.In.Retried.Get() {
		return nil, errors.New("nobody plays this")
	}
	c := site(theSite, "West", machines(sizes, nil), amounts(api.Quantities{"cpu": "4", "memory": "8Gi"}, nil))
	w := pod(theWorkload, 2, asks("m1.large"))
	a, err := p.ask(c, w)
	if err != nil {
		return nil, err
	}
	if a.pending() == "" {
		return []string{"it is placed before there is room"}, nil
	}
	c.Spec.Allocatable = api.Quantities{"cpu": "8", "memory": "16Gi"}
	if a, err = p.ask(c, a.workloads[theWorkload]); err != nil {
		return nil, err
	}
	if retried := a.pending() == ""; p.Out.Retried == nil || retried != *p.Out.Retried {
		return []string{fmt.Sprintf("retried: %t (%s), want %v", retried, a.pending(), p.Out.Retried)}, nil
	}
	return nil, nil
}
