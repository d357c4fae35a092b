package runner

import (
	"maps"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot/inventory"
)

// wishes are what workloads ask for, by cluster. One goroutine writes them; the maps
// that of returns are never changed afterwards.
type wishes struct {
	clusters map[string]map[inventory.Key]inventory.Asked
	names    map[api.Key]wish
	touched  map[string]struct{} // since the last call of changed
	own      map[string]struct{} // clusters whose map nobody else has
}

// wish is what one workload asks for.
type wish struct {
	key      inventory.Key
	clusters map[string]inventory.Asked
}

func newWishes() wishes {
	return wishes{map[string]map[inventory.Key]inventory.Asked{}, map[api.Key]wish{}, map[string]struct{}{}, map[string]struct{}{}}
}

// put takes in a workload as it is now.
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
			// What was given away stays as it is.
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

// changed are the clusters for which something else is asked than at the last call.
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

// of is what is asked for in a cluster.
func (w *wishes) of(cluster string) map[inventory.Key]inventory.Asked {
	delete(w.own, cluster)
	return w.clusters[cluster]
}

// wishOf is what a workload asks for, in each cluster that it runs on. On one that it is
// leaving the part of a count stays that it had there, as far as that is known.
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
		// A count holds over all clusters: this is the part of it that was given to one.
		if counted(d) && c.OnDemand != nil && *c.OnDemand < c.Replicas {
			own.CustomOnDemand = api.OnDemandAmount(strconv.FormatInt(*c.OnDemand, 10))
		}
		out.clusters[c.Name] = inventory.Asked{Distribution: own}
	}
	return out
}

// counted reports whether a distribution has a number of replicas on on-demand nodes.
func counted(d *api.DistributionSpec) bool {
	_, percent, err := d.CustomOnDemand.Parse()
	return d.Mode == api.ModeCustom && err == nil && !percent
}

// workloadKey is the workload that asks for something by the name that it has in
// clusters.
func workloadKey(key inventory.Key) api.Key {
	return api.Key{Kind: api.KindWorkload, Namespace: key.Namespace, Name: key.Name}
}
