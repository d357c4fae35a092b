package filter

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// profiled is a check that can say what a cluster must have for the check to admit it. The reason
// of a check that cannot is part of the demand as a sentence. A new cluster is online, has no taints
// and lists no metrics: a check that only concerns those adds nothing.
type profiled interface {
	Check
	// Profile adds what a cluster must have.
	Profile(p *Profile)
}

// Profile is what a cluster that does not exist yet must have so that checks admit it.
type Profile struct {
	fleet   *columns.Fleet
	demand  api.Demand
	values  map[string]*choice // by what they are of: see api.Demand.Choices
	names   choice
	listing string // what restricts the names
	varies  bool   // with the fleet
}

// Varies reports whether another version of the fleet may have another answer.
func (p *Profile) Varies() bool { return p.varies || p.names.limited }

// choice is which values would do.
type choice struct {
	only    []string // in order of preference, if limited
	limited bool
	except  []string
	present bool // any value, but one
	absent  bool // none
}

// left returns the values that would do, in order of preference.
func (c *choice) left() []string {
	var left []string
	for _, value := range c.only {
		if !slices.Contains(c.except, value) && !slices.Contains(left, value) {
			left = append(left, value)
		}
	}
	return left
}

func (c *choice) limit(values []string) {
	if !c.limited {
		c.only, c.limited = values, true
		return
	}
	c.only = slices.DeleteFunc(slices.Clone(c.only), func(value string) bool { return !slices.Contains(values, value) })
}

// Profile returns what a cluster must have so that all checks admit it.
func (c *Checks) Profile(f *columns.Fleet) *Profile {
	p := &Profile{fleet: f, values: map[string]*choice{}}
	for _, check := range c.All {
		switch told, ok := check.(profiled); {
		case ok:
			told.Profile(p)
		case check.On() != "":
			p.say(fmt.Sprintf("%s %q", check.Name(), check.On()))
		default:
			p.say(check.Name())
		}
	}
	return p
}

// require adds a condition on a value: a label, a claim or a place.
func (p *Profile) require(of string, operator api.SelectorOperator, values []string) {
	c := p.values[of]
	if c == nil {
		c = &choice{}
		p.values[of] = c
	}
	switch operator {
	case api.SelectorIn:
		c.limit(values)
	case api.SelectorNotIn:
		c.except = slices.Concat(c.except, values)
	case api.SelectorExists:
		c.present = true
	case api.SelectorDoesNotExist:
		c.absent = true
	}
}

// selector adds requirements on labels or claims.
func (p *Profile) selector(of string, list []api.SelectorRequirement) {
	for i := range list {
		p.require(of+"."+list[i].Key, list[i].Operator, list[i].Values)
	}
}

// places are the parts of a demand that say where a cluster is, by field of the cluster.
var places = map[string]string{
	api.GroupByProvider: api.DemandProvider, api.GroupByRegion: api.DemandRegion, api.GroupByZone: api.DemandZone,
}

// named adds names that the cluster must have, or must not have.
func (p *Profile) named(listing string, n *byName) {
	if len(n.clusters) > 0 {
		p.names.limit(n.clusters)
		p.listing = listing
	}
	p.names.except = slices.Concat(p.names.except, n.excluded)
}

// resource adds an amount that must be free.
func (p *Profile) resource(name string, amount api.Quantity) {
	if p.demand.Resources == nil {
		p.demand.Resources = api.Quantities{}
	}
	p.demand.Resources[name] = amount
}

// say adds what determines no value.
func (p *Profile) say(requirement string) {
	p.demand.Requirements = append(p.demand.Requirements, requirement)
}

// block adds why no additional cluster helps.
func (p *Profile) block(obstacle string) {
	p.demand.Obstacles = append(p.demand.Obstacles, obstacle)
}

// Allowed returns the values that would do for a label, claim or place; ok is false if any does.
func (p *Profile) Allowed(of string) (values []string, ok bool) {
	c := p.values[of]
	if c == nil || !c.limited {
		return nil, false
	}
	return c.left(), true
}

// Excluded returns the values that would not do for a label, claim or place.
func (p *Profile) Excluded(of string) []string {
	if c := p.values[of]; c != nil {
		return c.except
	}
	return nil
}

// Demand returns a demand for a number of such clusters. Its spread decides the values that spread
// names.
func (p *Profile) Demand(clusters int64, spread []api.DemandSpread) *api.Demand {
	d := p.demand
	d.Clusters, d.Spread = clusters, spread
	d.Requirements, d.Obstacles = slices.Clone(d.Requirements), slices.Clone(d.Obstacles)
	decided := map[string]bool{}
	for _, s := range spread {
		decided[s.By] = true
	}
	for _, of := range slices.Sorted(maps.Keys(p.values)) {
		c := p.values[of]
		left := c.left()
		switch {
		case c.absent && (c.present || c.limited || decided[of]):
			d.Obstacles = append(d.Obstacles, fieldName(of)+" must be there and must not")
		case c.limited && len(left) == 0:
			d.Obstacles = append(d.Obstacles, "no value of "+fieldName(of)+" meets all requirements")
		case decided[of]:
		case c.limited:
			put(&d, of, left[0])
			if len(left) > 1 {
				d.Choices = append(d.Choices, api.DemandChoice{Of: of, Values: left})
			}
		case c.present && len(c.except) > 0:
			d.Requirements = append(d.Requirements, fmt.Sprintf("%s with a value other than %s", fieldName(of), strings.Join(c.except, ", ")))
		case c.present:
			d.Requirements = append(d.Requirements, fieldName(of)+" with any value")
		}
	}
	p.putNames(&d)
	return &d
}

// putNames adds the names that are left for new clusters.
func (p *Profile) putNames(d *api.Demand) {
	if !p.names.limited {
		return
	}
	free := slices.DeleteFunc(p.names.left(), func(name string) bool { _, exists := p.fleet.Row(name); return exists })
	if int64(len(free)) < d.Clusters {
		is := fmt.Sprintf("%d clusters", len(free))
		if len(free) == 1 {
			is = "1 cluster"
		}
		d.Obstacles = append(d.Obstacles, fmt.Sprintf("%s leaves names for %s that %s not exist yet", p.listing, is, Plural(len(free), "does", "do")))
		return
	}
	d.Names = free[:d.Clusters:d.Clusters]
}

// put gives a demand the value of a label, claim or place.
func put(d *api.Demand, of, value string) {
	add := func(values *map[string]string, key string) {
		if *values == nil {
			*values = map[string]string{}
		}
		(*values)[key] = value
	}
	switch kind, key, _ := strings.Cut(of, "."); kind {
	case api.DemandLabels:
		add(&d.Labels, key)
	case api.DemandClaims:
		add(&d.Claims, key)
	case api.DemandProvider:
		d.CloudProvider = value
	case api.DemandRegion:
		d.Region = value
	case api.DemandZone:
		d.Zone = value
	}
}

// fieldName names a label, claim or place in a sentence.
func fieldName(of string) string {
	switch kind, key, _ := strings.Cut(of, "."); kind {
	case api.DemandLabels:
		return fmt.Sprintf("label %q", key)
	case api.DemandClaims:
		return fmt.Sprintf("claim %q", key)
	}
	return of
}
