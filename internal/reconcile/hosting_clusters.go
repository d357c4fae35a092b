package reconcile

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// clusters is how clusters are decided: on which cloud each is created.
var clusters = onHosts(row[*api.Cluster, *guest]{
	kind: api.KindCluster,
	put: func(p *planner, g *guest, c *api.Cluster, specRevision int64) {
		p.clouds.putGuest(g, c, specRevision)
		p.clusters.see(c)
	},
	seen: func(p *planner, g *guest, c *api.Cluster) {
		p.clouds.seeGuest(g, c)
		p.clusters.see(c)
	},
	remove: func(p *planner, key api.Key) { p.clusters.remove(key) },
	adopt: func(p *planner, c *api.Cluster, r *record) {
		p.clouds.adopt(r)
		p.clusters.moveToCloud(c, p.clusters.cloudNameOf(c))
	},
	// If the cloud changes, the cluster inherits from the new one.
	decide: func(p *planner, g *guest, now time.Time) (changed, moved bool) {
		if !p.clouds.decide(g, now) {
			return false, false
		}
		if c, ok := g.object.(*api.Cluster); ok {
			p.clusters.see(c)
		}
		return true, true
	},
	where:   func(c *api.Cluster) where { return onHost(c.Status.Cloud) },
	observe: func(s *snapshot, c *api.Cluster) api.Object { return placement.Observe(s.fleet, s.reserved, c) },
	simulate: simulated[*api.Cluster, *guest]{
		// The order matters: the status determines from the generation which taints are gone.
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
			Guest: api.KeyOf(c), UID: c.Metadata.UID, Namespace: c.SoleOwner(),
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
	lay: func(stored, decided api.Object) {
		c, ok := stored.(*api.Cluster)
		if from := as[*api.Cluster](decided); ok && from != nil {
			part := from.Status
			part.ObservedGeneration = from.Metadata.Generation
			c.Status.TakeDecided(&part)
		}
	},
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

// cloudWish returns whether a cluster needs a cloud. A cluster with a kubeconfig exists, and one
// that represents an availability zone is on that zone's cloud. A cluster that is probed, sends
// heartbeats or has amounts exists too, but may still request a cloud.
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
