package reconcile

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// clusters is how clusters are decided: on which cloud one is created.
var clusters = onHosts(row[*api.Cluster, *guest]{
	kind: api.KindCluster,
	put: func(p *planner, g *guest, c *api.Cluster, specRevision int64) {
		p.clouds.putGuest(g, c, specRevision)
		p.see(c)
	},
	seen: func(p *planner, g *guest, c *api.Cluster) {
		p.clouds.seeGuest(g, c)
		p.see(c)
	},
	remove: (*planner).removeCluster,
	adopt: func(p *planner, c *api.Cluster, r *record) {
		p.clouds.adopt(r)
		p.moveToCloud(c, p.cloudNameOf(c))
	},
	// A cluster whose cloud is another inherits from that.
	decide: func(p *planner, g *guest, now time.Time) (changed, moved bool) {
		if !p.clouds.decide(g, now) {
			return false, false
		}
		if c, ok := g.object.(*api.Cluster); ok {
			p.see(c)
		}
		return true, true
	},
	where:   func(c *api.Cluster) where { return onHost(c.Status.Cloud) },
	observe: func(s *snapshot, c *api.Cluster) api.Object { return placement.Observe(s.fleet, s.reserved, c) },
	simulate: simulated[*api.Cluster, *guest]{
		// In this order: the status tells from the generation which taints are gone.
		complete: func(_ *simulation, c, base *api.Cluster, _ given, now time.Time) {
			noteTaints(c, base != nil && !api.SameIntent(c, base), now)
			noteAmounts(c, base, now)
		},
	},
}, func(p *planner) *hosts { return p.clouds })

// clustersOnClouds is the role of clusters that are created on clouds.
var clustersOnClouds = role{
	request: func(object api.Object) (hosting.HostRequest, wish) {
		c, ok := object.(*api.Cluster)
		if !ok {
			return hosting.HostRequest{}, noWish
		}
		r := hosting.HostRequest{
			Guest: api.KeyOf(c), UID: c.Metadata.UID, Namespace: soleOwner(c),
			One: "cloud", Many: "clouds", Desperate: true,
		}
		if k := c.Spec.CloudConstraints; k != nil {
			r.LabelConstraints, r.MetricConstraints = k.LabelConstraints, k.MetricConstraints
		}
		return r, cloudWish(c)
	},
	chosen: func(object api.Object) (string, *float64) {
		if c, ok := object.(*api.Cluster); ok {
			return c.Status.Cloud, c.Status.CloudScore
		}
		return "", nil
	},
	again: func(*guest) bool { return false },
	result: func(g *guest, now time.Time) api.Object {
		c, ok := g.object.Copy().(*api.Cluster)
		if !ok {
			return g.object
		}
		c.Status.Cloud, c.Status.CloudScore = g.host, g.score
		setBound(&c.Status.Conditions, g.condition(api.ReasonNoSuitableCloud), now)
		if g.zone != nil {
			c.Status.ObservedZone = g.zone
		}
		return c
	},
}

// soleOwner is the namespace whose clouds a cluster may be created on, besides
// those of nobody. A cluster of several namespaces is created on a cloud of one of
// them only if it is nobody else's: it would show that cloud to the others.
func soleOwner(c *api.Cluster) string {
	if owners := c.Owners(); len(owners) == 1 {
		return owners[0]
	}
	return ""
}

// cloudWish is how much a cluster wants a cloud. One with a kubeconfig exists, and
// one that stands for an availability zone is of that zone's cloud. One that is
// probed, sends heartbeats or has amounts exists as well, but may say all the same
// that it wants a cloud.
func cloudWish(c *api.Cluster) wish {
	s := &c.Spec
	switch {
	case c.HasKubeconfig(), s.OpenStack != nil:
		return noWish
	case s.CloudConstraints != nil || s.InheritLabels || s.InheritMetrics:
		return statedWish
	case s.Health != nil || c.Status.LastHeartbeatAt != nil:
		return noWish
	case s.HasAmounts(&c.Status):
		return noWish
	}
	return silentWish
}

func (p *planner) removeCluster(key api.Key) {
	p.clouds.removeGuest(key)
	drop(p.onCloud, p.cloudOf[key.Name], key.Name)
	delete(p.cloudOf, key.Name)
	p.changeCluster(key.Name, nil)
}

// see brings a cluster into the fleet as decisions see it: together with what it
// has from its cloud.
func (p *planner) see(c *api.Cluster) {
	cloud := p.cloudNameOf(c)
	p.moveToCloud(c, cloud)
	from := p.cloudObjects[cloud]
	if c.Spec.OpenStack != nil && from != nil && !from.Serves(c) {
		from = nil // whoever named it could not know that there is one
	}
	effective := columns.Effective(c, from)
	if columns.StandsForObserved(c, from) {
		p.remember(c)
	}
	p.changeCluster(c.Metadata.Name, p.fromBefore(effective))
}

// cloudNameOf is the cloud that a cluster has something from, "" where it has none.
func (p *planner) cloudNameOf(c *api.Cluster) string {
	if c.Spec.OpenStack != nil {
		return c.Spec.OpenStack.Cloud
	} else if g := p.clouds.guests[api.KeyOf(c)]; g != nil {
		return g.host
	}
	return ""
}

// moveToCloud notes which cloud a cluster has something from.
func (p *planner) moveToCloud(c *api.Cluster, cloud string) {
	name := c.Metadata.Name
	was := p.cloudOf[name]
	if was == cloud {
		return
	}
	drop(p.onCloud, was, name)
	delete(p.cloudOf, name)
	if cloud != "" {
		p.cloudOf[name] = cloud
		add(p.onCloud, cloud, name)
	}
}

// remember notes in the status of a cluster that the amounts of the zone that it
// stands for were observed: if the zone, or the cloud, is gone one day, there is
// nothing, and not something unknown.
func (p *planner) remember(c *api.Cluster) {
	g, was := p.clouds.guests[api.KeyOf(c)], c.Status.ObservedZone
	if g == nil || was != nil && *was == *c.Spec.OpenStack {
		return
	}
	g.zone = c.Spec.OpenStack
	p.zoned = append(p.zoned, g)
}

// fromBefore keeps a cluster online that is older than the server's start, and has
// a kubeconfig that nobody has looked at yet: earlier servers did not watch it, and
// what runs on it is not moved because this one begins to.
func (p *planner) fromBefore(c *api.Cluster) *api.Cluster {
	created := c.Metadata.CreatedAt
	if c.Status.State != "" || c.Spec.Health != nil || !c.HasKubeconfig() || created == nil || !created.Before(p.started) {
		return c
	}
	online := *c
	online.Status.State = api.StateOnline
	return &online
}

// changeCloud takes in a new version of a cloud; nil takes it away.
func (p *planner) changeCloud(key api.Key, c *api.Cloud) {
	name := key.Name
	change(p.cloudObjects, name, c)
	if c == nil {
		p.clouds.putHost(name, nil)
	} else {
		p.clouds.putHost(name, hosting.CloudHost(c))
	}
	for cluster := range p.onCloud[name] {
		if c, ok := p.clouds.guests[api.Key{Kind: api.KindCluster, Name: cluster}].object.(*api.Cluster); ok {
			p.see(c)
		}
	}
}

// host chooses clouds and projects.
func (p *planner) host(now time.Time) {
	for _, h := range [...]*hosts{p.projects, p.clouds} {
		if h.kind == &clusters && h.changes() {
			p.takeOverAll(awaitsHost, "")
		}
		h.follow(now)
		p.decideStale(h.kind, now)
	}
}
