package runner

import (
	"maps"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

// wishes are the requests of workloads by cluster. A single goroutine modifies them; maps returned
// by of are never modified afterwards.
type wishes struct {
	clusters map[string]map[inventory.Key]inventory.Asked
	names    map[api.Key]wish
	touched  map[string]struct{} // since the last call of changed
	own      map[string]struct{} // clusters whose map has not been shared
}

// wish is the request of one workload.
type wish struct {
	key      inventory.Key
	clusters map[string]inventory.Asked
}

func newWishes() wishes {
	return wishes{map[string]map[inventory.Key]inventory.Asked{}, map[api.Key]wish{}, map[string]struct{}{}, map[string]struct{}{}}
}

// put updates a workload.
func (w *wishes) put(object *api.Workload) {
	key := api.KeyOf(object)
	before := w.names[key]
	now := wishOf(object, before)
	if before.key == now.key && maps.Equal(before.clusters, now.clusters) {
		return
	}
	w.replace(before, now)
	if len(now.clusters) == 0 {
		delete(w.names, key)
		return
	}
	w.names[key] = now
}

func (w *wishes) remove(key api.Key) {
	w.replace(w.names[key], wish{})
	delete(w.names, key)
}

func (w *wishes) replace(before, now wish) {
	edit := func(cluster string, change func(map[inventory.Key]inventory.Asked)) {
		list := w.clusters[cluster]
		w.touched[cluster] = struct{}{}
		if _, own := w.own[cluster]; !own {
			// Shared maps must not be modified.
			if list = maps.Clone(list); list == nil {
				list = map[inventory.Key]inventory.Asked{}
			}
			w.own[cluster] = struct{}{}
		}
		change(list)
		w.clusters[cluster] = list
	}
	for cluster := range before.clusters {
		edit(cluster, func(list map[inventory.Key]inventory.Asked) { delete(list, before.key) })
	}
	for cluster, asked := range now.clusters {
		edit(cluster, func(list map[inventory.Key]inventory.Asked) { list[now.key] = asked })
	}
}

// changed returns the clusters whose requests have changed since the last call.
func (w *wishes) changed() []string {
	names := make([]string, 0, len(w.touched))
	for name := range w.touched {
		names = append(names, name)
		if len(w.clusters[name]) == 0 {
			delete(w.clusters, name)
			delete(w.own, name)
		}
	}
	clear(w.touched)
	return names
}

// of returns the requests for a cluster.
func (w *wishes) of(cluster string) map[inventory.Key]inventory.Asked {
	delete(w.own, cluster)
	return w.clusters[cluster]
}

// wishOf returns the request of a workload for each cluster that it runs on. In a cluster that it
// is leaving, its previous part of a count is kept, if known.
func wishOf(w *api.Workload, before wish) wish {
	d := w.Spec.Distribution
	if d == nil || !w.Spec.Distributable() {
		return wish{}
	}
	out := wish{inventory.Key{Kind: w.Spec.Kind, Namespace: w.Metadata.Namespace, Name: w.Metadata.Name}, map[string]inventory.Asked{}}
	for _, e := range w.Status.Evictions {
		asked, had := before.clusters[e.Cluster]
		if !had || !counted(d) || !counted(&asked.Distribution) {
			asked = inventory.Asked{Distribution: *d}
		}
		out.clusters[e.Cluster] = asked
	}
	for _, c := range w.Status.Clusters {
		own := *d
		// A count applies to all clusters together: this is the part of this cluster.
		if counted(d) && c.OnDemand != nil && *c.OnDemand < c.Replicas {
			own.CustomOnDemand = api.OnDemandAmount(strconv.FormatInt(*c.OnDemand, 10))
		}
		out.clusters[c.Name] = inventory.Asked{Distribution: own}
	}
	return out
}

// counted reports whether a distribution has a number of on-demand replicas.
func counted(d *api.DistributionSpec) bool {
	_, percent, err := d.CustomOnDemand.Parse()
	return d.Mode == api.ModeCustom && err == nil && !percent
}

// workloadKey returns the key of the workload object for a workload in a cluster.
func workloadKey(key inventory.Key) api.Key {
	return api.Key{Kind: api.KindWorkload, Namespace: key.Namespace, Name: key.Name}
}
