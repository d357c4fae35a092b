package api

import (
	"cmp"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"
)

// Demand says which clusters would give a placement or workload what it lacks. It is part of the
// decision: it follows from the spec and from what the decision left open, not from the values of
// metrics, so it changes only when the answer does.
type Demand struct {
	Clusters          int64             `json:"clusters" doc:"Number of clusters that are missing."`
	Replicas          int64             `json:"replicas,omitempty" doc:"Of a workload: number of replicas that each of these clusters must have room for."`
	Resources         Quantities        `json:"resources,omitempty" doc:"Amounts that must be free on each of them, as Kubernetes quantities."`
	Labels            map[string]string `json:"labels,omitempty" doc:"Labels that each of them must have. Where several values would do, the first of them; 'choices' lists all."`
	Claims            map[string]string `json:"claims,omitempty" doc:"Claims that each of them must have. Where several values would do, the first of them."`
	CloudProvider     string            `json:"cloud_provider,omitempty" doc:"Provider that each of them must have."`
	Region            string            `json:"region,omitempty" doc:"Region that each of them must be in."`
	Zone              string            `json:"zone,omitempty" doc:"Zone that each of them must span."`
	Names             []string          `json:"names,omitempty" doc:"Names that the clusters must have, if only clusters of certain names are wanted."`
	CustomResources   []string          `json:"custom_resources,omitempty" doc:"Custom resource definitions that each of them must have."`
	APIResources      []string          `json:"api_resources,omitempty" doc:"Types of resources that each of them must accept. A cluster that lists none accepts all."`
	KubernetesVersion string            `json:"kubernetes_version,omitempty" doc:"Constraint that the Kubernetes version of each of them must meet."`
	Spread            []DemandSpread    `json:"spread,omitempty" doc:"How the clusters must be spread over regions, zones, providers, labels or claims. The clusters are numbered: the first entry for a key is about the first of them, the next entry for it about those that follow."`
	Choices           []DemandChoice    `json:"choices,omitempty" doc:"All values that would do, where there are several."`
	Requirements      []string          `json:"requirements,omitempty" doc:"What else each of them must meet, in words, because it determines no value."`
	Obstacles         []string          `json:"obstacles,omitempty" doc:"Why no additional cluster helps. If there are any, something else must change."`
}

// DemandSpread says where some of the missing clusters must be.
type DemandSpread struct {
	By       string `json:"by" doc:"What groups the clusters: 'labels.<key>', 'claims.<key>', 'cloud_provider', 'region' or 'zone'."`
	Value    string `json:"value,omitempty" doc:"Group that these clusters must be in. If absent, a group that has no clusters yet, and is not that of another entry: any value will do."`
	Clusters int64  `json:"clusters" doc:"Number of the missing clusters that must be in the group."`
}

// DemandChoice are the values of which each missing cluster must have one.
type DemandChoice struct {
	Of     string   `json:"of" doc:"What has the values: 'labels.<key>', 'claims.<key>', 'cloud_provider', 'region' or 'zone'."`
	Values []string `json:"values" doc:"Values that would do, the preferred one first."`
}

// Equal reports whether two demands are equal; nil is none.
func (d *Demand) Equal(other *Demand) bool {
	return d == other || d != nil && other != nil && reflect.DeepEqual(d, other)
}

// ClusterDemand is what one cluster is demanded for, and what it must have.
type ClusterDemand struct {
	Kind              Kind              `json:"kind" enum:"placement,workload" doc:"Kind of the object that demands the cluster."`
	Namespace         string            `json:"namespace" doc:"Namespace of that object."`
	Name              string            `json:"name" doc:"Name of that object."`
	Replicas          int64             `json:"replicas,omitempty" doc:"Of a workload: number of replicas that the cluster must have room for."`
	Resources         Quantities        `json:"resources,omitempty" doc:"Amounts that must be free on it."`
	Labels            map[string]string `json:"labels,omitempty" doc:"Labels that it must have."`
	Claims            map[string]string `json:"claims,omitempty" doc:"Claims that it must have."`
	CloudProvider     string            `json:"cloud_provider,omitempty" doc:"Provider that it must have."`
	Region            string            `json:"region,omitempty" doc:"Region that it must be in."`
	Zone              string            `json:"zone,omitempty" doc:"Zone that it must span."`
	CustomResources   []string          `json:"custom_resources,omitempty" doc:"Custom resource definitions that it must have."`
	APIResources      []string          `json:"api_resources,omitempty" doc:"Types of resources that it must accept. A cluster that lists none accepts all."`
	KubernetesVersion string            `json:"kubernetes_version,omitempty" doc:"Constraint that its Kubernetes version must meet."`
	Requirements      []string          `json:"requirements,omitempty" doc:"What else it must meet, in words."`
}

// Of returns the key of the object that demands the cluster.
func (d *ClusterDemand) Of() Key { return Key{Kind: d.Kind, Namespace: d.Namespace, Name: d.Name} }

// DemandedCluster is one cluster that is missing, or that was made because it was.
type DemandedCluster struct {
	Cluster string      `json:"cluster" doc:"Name for the cluster, or of the one that was made. It is the same for as long as the cluster is demanded or used."`
	State   DemandState `json:"state" enum:"open,pending,made" doc:"'open': nothing is made for it yet. 'pending': a cluster of that name is declared, and does not exist yet. 'made': the cluster is there."`
	ClusterDemand
}

// DemandList is what is demanded in a namespace, or everywhere.
type DemandList struct {
	Items           []DemandedCluster `json:"items" doc:"Clusters that would satisfy what is open, and those that were made for what is decided, by name."`
	Obstructed      []Obstructed      `json:"obstructed,omitempty" doc:"Placements and workloads that lack clusters, and that no additional cluster helps."`
	ResourceVersion string            `json:"resource_version" doc:"Store revision that the list shows."`
}

// Obstructed is a placement or workload that no additional cluster helps.
type Obstructed struct {
	Kind      Kind     `json:"kind" doc:"'placement' or 'workload'."`
	Namespace string   `json:"namespace" doc:"Namespace of the object."`
	Name      string   `json:"name" doc:"Name of the object."`
	Obstacles []string `json:"obstacles" doc:"Why no additional cluster helps."`
}

// AutoCluster says that the server declares clusters for a demand.
type AutoCluster struct {
	Template         *ClusterTemplate `json:"template,omitempty" doc:"What each of these clusters has, in addition to what is demanded of it, which wins."`
	LabelConstraints []string         `json:"label_constraints,omitempty" doc:"Constraints on the labels of the cloud that a cluster is created on, all of which must hold."`
	Max              int64            `json:"max,omitempty" default:"1" minimum:"1" maximum:"1000" doc:"Largest number of clusters that exist for one placement or workload because of this."`
}

// ClusterTemplate is what a cluster has that the server declares.
type ClusterTemplate struct {
	Labels          map[string]string `json:"labels,omitempty" doc:"Labels."`
	Description     string            `json:"description,omitempty" maxLength:"1024" doc:"Free text about the cluster."`
	CloudProvider   string            `json:"cloud_provider,omitempty" doc:"Provider of the cluster's machines."`
	Region          string            `json:"region,omitempty" doc:"Region that the cluster is in."`
	Zones           []string          `json:"zones,omitempty" doc:"Availability zones that the cluster spans."`
	Claims          map[string]string `json:"claims,omitempty" doc:"Facts about the cluster by name."`
	CustomResources []string          `json:"custom_resources,omitempty" doc:"Custom resource definitions in the cluster."`
	InheritLabels   bool              `json:"inherit_labels,omitempty" default:"false" doc:"If true, the cluster inherits all labels of its cloud."`
	InheritMetrics  bool              `json:"inherit_metrics,omitempty" default:"false" doc:"If true, the cluster inherits all metrics of its cloud."`
}

func (a *AutoCluster) validate(errs *FieldErrors, field string) {
	if a == nil {
		return
	}
	validateConstraints(errs, field, a.LabelConstraints, nil)
	t := a.Template
	if t == nil {
		return
	}
	field += ".template"
	validateCustomResources(errs, field+".custom_resources", t.CustomResources)
	checkUnique(errs, field+".zones", t.Zones)
	for _, key := range slices.Sorted(maps.Keys(t.Labels)) {
		errs.check(field+".labels["+quote(key)+"]", checkLabelKey(key))
	}
	for _, key := range slices.Sorted(maps.Keys(t.Claims)) {
		errs.check(field+".claims["+quote(key)+"]", checkLabelKey(key))
	}
}

// DemandState says what is known of a demanded cluster.
type DemandState string

// States of a demanded cluster.
const (
	// DemandOpen: nothing is made for it yet.
	DemandOpen DemandState = "open"
	// DemandPending: a cluster is declared for it, and not real yet.
	DemandPending DemandState = "pending"
	// DemandMade: a cluster is there for it.
	DemandMade DemandState = "made"
)

// MaxDemanded is the maximum number of clusters that a demand lists one by one.
const MaxDemanded = 1000

// Each returns the missing clusters one by one, the first MaxDemanded of them. There are none if additional clusters do not help.
// Values for groups that have no clusters yet are made up from the name of the object: "web-1".
func (d *Demand) Each(of Key) []DemandedCluster {
	if d == nil || len(d.Obstacles) > 0 {
		return nil
	}
	out := make([]DemandedCluster, min(d.Clusters, MaxDemanded))
	for i := range out {
		c := &out[i]
		*c = DemandedCluster{
			State: DemandOpen,
			ClusterDemand: ClusterDemand{
				Kind: of.Kind, Namespace: of.Namespace, Name: of.Name,
				Replicas: d.Replicas, Resources: d.Resources, Labels: d.Labels, Claims: d.Claims,
				CloudProvider: d.CloudProvider, Region: d.Region, Zone: d.Zone,
				CustomResources: d.CustomResources, APIResources: d.APIResources, KubernetesVersion: d.KubernetesVersion, Requirements: d.Requirements,
			},
		}
		if i < len(d.Names) {
			c.Cluster = d.Names[i]
		}
	}
	next := map[string]int{} // the first cluster that no entry is about, by what groups
	for at, s := range d.Spread {
		value := cmp.Or(s.Value, fmt.Sprintf("%s-%d", strings.TrimRight(of.Name[:min(len(of.Name), 50)], "-"), at+1))
		for n := int64(0); n < s.Clusters && next[s.By] < len(out); n++ {
			out[next[s.By]].set(s.By, value)
			next[s.By]++
		}
	}
	return out
}

// set gives a cluster a value, by what groups clusters.
func (c *DemandedCluster) set(by, value string) {
	switch kind, key, _ := strings.Cut(by, "."); kind {
	case DemandLabels:
		c.Labels = with(c.Labels, key, value)
	case DemandClaims:
		c.Claims = with(c.Claims, key, value)
	case DemandProvider:
		c.CloudProvider = value
	case DemandRegion:
		c.Region = value
	case DemandZone:
		c.Zone = value
	}
}

// What determines a value of a cluster, in 'choices' and in the spread of a demand.
const (
	DemandLabels   = "labels"
	DemandClaims   = "claims"
	DemandProvider = "cloud_provider"
	DemandRegion   = "region"
	DemandZone     = "zone"
)

// with returns a copy of a map with one more entry.
func with(values map[string]string, key, value string) map[string]string {
	values = maps.Clone(values)
	if values == nil {
		values = map[string]string{}
	}
	values[key] = value
	return values
}

// Sentence says in one sentence what is demanded: "1 cluster is missing, with 8 of cpu free and
// label location=DE".
func (d *Demand) Sentence() string {
	if d == nil {
		return ""
	}
	text := fmt.Sprintf("%d clusters are missing", d.Clusters)
	if d.Clusters == 1 {
		text = "1 cluster is missing"
	}
	if len(d.Obstacles) > 0 {
		return text + ", but no additional cluster helps: " + strings.Join(d.Obstacles, "; ")
	}
	each := ClusterDemand{
		Replicas: d.Replicas, Resources: d.Resources, Labels: d.Labels, Claims: d.Claims, CloudProvider: d.CloudProvider, Region: d.Region,
		Zone: d.Zone, CustomResources: d.CustomResources, KubernetesVersion: d.KubernetesVersion, Requirements: d.Requirements,
	}
	parts := each.MustHave()
	for _, s := range d.Spread {
		parts = append(parts, fmt.Sprintf("%d in %s %s", s.Clusters, s.By, cmp.Or(s.Value, "of its own")))
	}
	if len(d.Names) > 0 {
		parts = append(parts, "named "+strings.Join(d.Names, ", "))
	}
	if len(parts) > 0 {
		text += ", with " + strings.Join(parts, ", ")
	}
	return text
}

// MustHave says in words what the cluster must have: "8 of cpu free", "label location=DE".
func (d *ClusterDemand) MustHave() []string {
	var parts []string
	if d.Replicas > 0 {
		parts = append(parts, fmt.Sprintf("room for %d replicas", d.Replicas))
	}
	for _, name := range slices.Sorted(maps.Keys(d.Resources)) {
		parts = append(parts, fmt.Sprintf("%s of %s free", d.Resources[name], name))
	}
	pairs := func(kind string, values map[string]string) {
		for _, key := range slices.Sorted(maps.Keys(values)) {
			parts = append(parts, fmt.Sprintf("%s %s=%s", kind, key, values[key]))
		}
	}
	pairs("label", d.Labels)
	pairs("claim", d.Claims)
	for _, place := range []struct{ kind, value string }{
		{"cloud provider", d.CloudProvider}, {"region", d.Region}, {"zone", d.Zone}, {"Kubernetes", d.KubernetesVersion},
	} {
		if place.value != "" {
			parts = append(parts, place.kind+" "+place.value)
		}
	}
	for _, name := range d.CustomResources {
		parts = append(parts, "custom resource "+name)
	}
	return append(parts, d.Requirements...)
}
