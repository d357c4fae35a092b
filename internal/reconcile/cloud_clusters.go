package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
)

// cloudClusters are the clusters as decisions see them, each with what it has from its
// cloud.
type cloudClusters struct {
	clouds  *hosts   // of clusters
	pending *pending // to bring them into the fleet
	objects map[string]*api.Cloud
	cloudOf map[string]string              // the cloud that a cluster has something from
	onCloud map[string]map[string]struct{} // clusters by that cloud
	zoned   []*guest                       // whose zone was observed for the first time, for the pass to write
}

func newCloudClusters(clouds *hosts, pending *pending) *cloudClusters {
	return &cloudClusters{
		clouds: clouds, pending: pending,
		objects: map[string]*api.Cloud{}, cloudOf: map[string]string{}, onCloud: map[string]map[string]struct{}{},
	}
}

func (cs *cloudClusters) remove(key api.Key) {
	cs.clouds.removeGuest(key)
	drop(cs.onCloud, cs.cloudOf[key.Name], key.Name)
	delete(cs.cloudOf, key.Name)
	cs.pending.changeCluster(key.Name, nil)
}

// see brings a cluster into the fleet as decisions see it: together with what it
// has from its cloud.
func (cs *cloudClusters) see(c *api.Cluster) {
	cloud := cs.cloudNameOf(c)
	cs.moveToCloud(c, cloud)
	from := cs.objects[cloud]
	if c.Spec.OpenStack != nil && from != nil && !from.Serves(c) {
		from = nil // whoever named it could not know that there is one
	}
	effective := columns.Effective(c, from)
	if columns.StandsForObserved(c, from) {
		cs.remember(c)
	}
	cs.pending.changeCluster(c.Metadata.Name, cs.fromBefore(effective))
}

// cloudNameOf is the cloud that a cluster has something from, "" where it has none.
func (cs *cloudClusters) cloudNameOf(c *api.Cluster) string {
	if c.Spec.OpenStack != nil {
		return c.Spec.OpenStack.Cloud
	} else if g := cs.clouds.guests[api.KeyOf(c)]; g != nil {
		return g.host
	}
	return ""
}

// moveToCloud notes which cloud a cluster has something from.
func (cs *cloudClusters) moveToCloud(c *api.Cluster, cloud string) {
	name := c.Metadata.Name
	was := cs.cloudOf[name]
	if was == cloud {
		return
	}
	drop(cs.onCloud, was, name)
	delete(cs.cloudOf, name)
	if cloud != "" {
		cs.cloudOf[name] = cloud
		add(cs.onCloud, cloud, name)
	}
}

// remember notes in the status of a cluster that the amounts of the zone that it
// stands for were observed: if the zone, or the cloud, is gone one day, there is
// nothing, and not something unknown.
func (cs *cloudClusters) remember(c *api.Cluster) {
	g, was := cs.clouds.guests[api.KeyOf(c)], c.Status.ObservedZone
	if g == nil || was != nil && *was == *c.Spec.OpenStack {
		return
	}
	g.zone = c.Spec.OpenStack
	cs.zoned = append(cs.zoned, g)
}

// fromBefore keeps a cluster online that is older than the server's start, and has
// a kubeconfig that nobody has looked at yet: earlier servers did not watch it, and
// what runs on it is not moved because this one begins to.
func (cs *cloudClusters) fromBefore(c *api.Cluster) *api.Cluster {
	created := c.Metadata.CreatedAt
	if c.Status.State != "" || c.Spec.Health != nil || !c.HasKubeconfig() || created == nil || !created.Before(cs.clouds.picture.started) {
		return c
	}
	online := *c
	online.Status.State = api.StateOnline
	return &online
}

// changeCloud takes in a new version of a cloud; nil takes it away.
func (cs *cloudClusters) changeCloud(key api.Key, c *api.Cloud) {
	name := key.Name
	change(cs.objects, name, c)
	if c == nil {
		cs.clouds.putHost(name, nil)
	} else {
		cs.clouds.putHost(name, hosting.CloudHost(c))
	}
	for cluster := range cs.onCloud[name] {
		if c, ok := cs.clouds.guests[api.Key{Kind: api.KindCluster, Name: cluster}].object.(*api.Cluster); ok {
			cs.see(c)
		}
	}
}
