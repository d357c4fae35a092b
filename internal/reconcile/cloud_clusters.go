package reconcile

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/hosting"
)

// cloudClusters are the clusters as decisions see them, including what each has from its cloud.
type cloudClusters struct {
	clouds  *hosts   // of the clusters
	pending *pending // changes for the fleet
	objects map[string]*api.Cloud
	cloudOf map[string]string              // the cloud of each cluster
	onCloud map[string]map[string]struct{} // clusters by cloud
	zoned   []*guest                       // guests whose zone was observed for the first time, to be written by the pass
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

// see adds a cluster to the fleet as decisions see it: including what it has from its cloud.
func (cs *cloudClusters) see(c *api.Cluster) {
	cloud := cs.cloudNameOf(c)
	cs.moveToCloud(c, cloud)
	from := cs.objects[cloud]
	if c.Spec.OpenStack != nil && from != nil && !from.Serves(c) {
		from = nil // whoever named the cloud could not know that it exists
	}
	effective := columns.Effective(c, from)
	if columns.StandsForObserved(c, from) {
		cs.remember(c)
	}
	cs.pending.changeCluster(c.Metadata.Name, cs.fromBefore(effective))
}

// cloudNameOf returns the cloud that a cluster gets data from, or "".
func (cs *cloudClusters) cloudNameOf(c *api.Cluster) string {
	if c.Spec.OpenStack != nil {
		return c.Spec.OpenStack.Cloud
	} else if g := cs.clouds.guests[api.KeyOf(c)]; g != nil {
		return g.host
	}
	return ""
}

// moveToCloud records the cloud of a cluster.
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

// remember records in the status of a cluster that the amounts of its zone were observed: if the
// zone or cloud is gone later, the amounts are 0 instead of unknown.
func (cs *cloudClusters) remember(c *api.Cluster) {
	g, was := cs.clouds.guests[api.KeyOf(c)], c.Status.ObservedZone
	if g == nil || was != nil && *was == *c.Spec.OpenStack {
		return
	}
	g.zone = c.Spec.OpenStack
	cs.zoned = append(cs.zoned, g)
}

// fromBefore keeps a cluster online that is older than the server's start and has a kubeconfig that
// has not been used yet: earlier servers did not observe it, and what runs on it is not moved
// because this one begins to.
func (cs *cloudClusters) fromBefore(c *api.Cluster) *api.Cluster {
	created := c.Metadata.CreatedAt
	if c.Status.State != "" || c.Spec.Health != nil || !c.HasKubeconfig() || created == nil || !created.Before(cs.clouds.basis.started) {
		return c
	}
	online := *c
	online.Status.State = api.StateOnline
	return &online
}

// changeCloud applies a new version of a cloud; nil deletes it.
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
