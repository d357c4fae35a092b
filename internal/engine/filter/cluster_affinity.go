package filter

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// Affinity is a compiled cluster affinity.
type Affinity struct {
	Name string // of the group or tier; "" if it has none
	byName
	labels []api.SelectorRequirement
	fields []api.FieldRequirement
}

// byName selects clusters by name.
type byName struct {
	clusters []string // empty = every cluster
	excluded []string // never selected
}

// NewAffinity compiles an affinity; nil selects every cluster.
func NewAffinity(name string, a *api.ClusterAffinity) Affinity {
	if a == nil {
		return Affinity{Name: name}
	}
	return Affinity{
		Name: name, byName: byName{a.ClusterNames, a.ExcludeClusters},
		labels: a.LabelSelector.Requirements(), fields: a.FieldSelector,
	}
}

// Everything reports whether every cluster matches.
func (a *Affinity) Everything() bool {
	return len(a.clusters)+len(a.excluded)+len(a.labels)+len(a.fields) == 0
}

// SelectInto removes the clusters that do not match from b. It overwrites scratch.
func (a *Affinity) SelectInto(f *columns.Fleet, b, scratch columns.Bitmap) {
	a.selectInto(f, b, scratch)
	f.Labels().SelectInto(a.labels, b, scratch)
	for i := range a.fields {
		values := f.Places()[a.fields[i].Key]
		if a.fields[i].Operator == api.SelectorNotIn {
			for _, value := range a.fields[i].Values {
				values[value].AndNotInto(b)
			}
			continue
		}
		clear(scratch)
		for _, value := range a.fields[i].Values {
			values[value].OrInto(scratch)
		}
		b.And(scratch)
	}
}

// selectInto removes the clusters that are not selected from b. It overwrites scratch.
func (n *byName) selectInto(f *columns.Fleet, b, scratch columns.Bitmap) {
	if len(n.clusters) > 0 {
		clear(scratch)
		for _, name := range n.clusters {
			if row, ok := f.Index()[name]; ok {
				scratch.Set(row)
			}
		}
		b.And(scratch)
	}
	for _, name := range n.excluded {
		if row, ok := f.Index()[name]; ok {
			b.Clear(row)
		}
	}
}

// mismatch says why a cluster is not selected, or returns "".
func (n *byName) mismatch(cluster string) string {
	switch {
	case slices.Contains(n.excluded, cluster):
		return "is excluded by name"
	case len(n.clusters) > 0 && !slices.Contains(n.clusters, cluster):
		return "is not among cluster_names"
	}
	return ""
}

// key writes the parts that determine which clusters are selected.
func (n *byName) key(k key.Writer) {
	k.Set("clusters", n.clusters)
	k.Set("excluded", n.excluded)
}

// Matches is SelectInto for one cluster.
func (a *Affinity) Matches(c *api.Cluster) bool { return a.mismatch(c) == "" }

// mismatch says why a cluster does not match, or returns "".
func (a *Affinity) mismatch(c *api.Cluster) string {
	if text := a.byName.mismatch(c.Metadata.Name); text != "" {
		return text
	}
	for i := range a.labels {
		r := &a.labels[i]
		switch value, present := c.Metadata.Labels[r.Key]; {
		case r.Matches(value, present):
		case present:
			return fmt.Sprintf("label %q is %q, wanted %s", r.Key, value, wantedText(r))
		default:
			return fmt.Sprintf("label %q is absent, wanted %s", r.Key, wantedText(r))
		}
	}
	for i := range a.fields {
		r := &a.fields[i]
		values := placeValues(&c.Spec, r.Key)
		met := slices.ContainsFunc(values, func(value string) bool { return slices.Contains(r.Values, value) })
		if met != (r.Operator == api.SelectorIn) {
			is := "is absent"
			if len(values) > 0 {
				is = "is " + strings.Join(values, ", ")
			}
			return fmt.Sprintf("%s %s, wanted %s (%s)", r.Key, is, r.Operator, strings.Join(r.Values, ", "))
		}
	}
	return ""
}

// placeValues returns the provider, region or zones of a cluster.
func placeValues(c *api.ClusterSpec, field string) []string {
	var values []string
	columns.PlacesOf(c, func(has, value string) {
		if has == field {
			values = append(values, value)
		}
	})
	return values
}

// key writes the parts that determine which clusters match.
func (a *Affinity) key(k key.Writer) {
	k.Words("name", a.Name)
	a.byName.key(k)
	requirementsKey(k, "labels", a.labels)
	k.Each("fields", len(a.fields), func(k key.Writer, i int) {
		k.Text("field", a.fields[i].Key)
		k.Text("field operator", string(a.fields[i].Operator))
		k.Set("field values", a.fields[i].Values)
	})
}

// Reads returns the aspects of a cluster that determine whether it matches.
func (a *Affinity) Reads() columns.Aspects {
	reads := columns.Aspects(0)
	if len(a.labels) > 0 {
		reads |= columns.Labels
	}
	if len(a.fields) > 0 {
		reads |= columns.Place
	}
	return reads
}
