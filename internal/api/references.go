package api

// Reference is where an object names another one.
type Reference struct {
	// Field is the path of the name.
	Field string
	// Key is that of the object that is named.
	Key Key
}

// ReferencesOf are the clusters, clouds and cluster sets that an object names, in the
// order of its fields. What it only excludes does not have to exist, and metrics and
// their providers have conditions of their own.
func ReferencesOf(object Object) []Reference {
	var r references
	switch o := object.(type) {
	case *Cluster:
		if o.Spec.OpenStack != nil {
			r.add("spec.openstack.cloud", Key{Kind: KindCloud, Name: o.Spec.OpenStack.Cloud})
		}
	case *ClusterSet:
		r.clusters("spec.clusters", o.Spec.Clusters)
	case *Placement:
		for i, name := range o.Spec.ClusterSets {
			r.add(index("spec.cluster_sets", i), Key{Kind: KindClusterSet, Name: name})
		}
	case *PropagationPolicy:
		placement := &o.Spec.Placement
		if a := placement.ClusterAffinity; a != nil {
			r.clusters("spec.placement.cluster_affinity.cluster_names", a.ClusterNames)
		}
		for i := range placement.ClusterAffinities {
			group := &placement.ClusterAffinities[i]
			at := index("spec.placement.cluster_affinities", i)
			r.clusters(at+".cluster_names", group.ClusterNames)
			for j := range group.OverflowAffinities {
				r.clusters(index(at+".overflow_affinities", j)+".cluster_names", group.OverflowAffinities[j].ClusterNames)
			}
		}
	}
	return r
}

type references []Reference

func (r *references) add(field string, key Key) { *r = append(*r, Reference{field, key}) }

func (r *references) clusters(field string, names []string) {
	for i, name := range names {
		r.add(index(field, i), Key{Kind: KindCluster, Name: name})
	}
}
