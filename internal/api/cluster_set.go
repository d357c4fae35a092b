package api

import "slices"

// ClusterSet is a named set of clusters that placements can be restricted to.
type ClusterSet struct {
	Kind     Kind             `json:"kind" enum:"cluster_set"`
	Metadata Metadata         `json:"metadata"`
	Spec     ClusterSetSpec   `json:"spec"`
	Status   ClusterSetStatus `json:"status,omitzero"`
}

// ClusterSetSpec selects the members of the set and the namespaces that may use it. An empty list
// selects nothing; it is not the same as an absent one.
type ClusterSetSpec struct {
	Selector   *LabelSelector `json:"selector,omitempty" doc:"Selects the clusters of the set by their labels; an empty selector ('{}') selects all. Exactly one of 'selector' and 'clusters' is required."`
	Clusters   []string       `json:"clusters,omitzero" ref:"cluster" doc:"Names of the clusters in the set. Clusters that do not exist are ignored. Exactly one of 'selector' and 'clusters' is required."`
	Namespaces []string       `json:"namespaces,omitzero" default:"[\"*\"]" doc:"Namespaces whose placements may use the set; '[\"*\"]' stands for all."`
}

// ClusterSetStatus holds the conditions of a set. It does not list the members.
type ClusterSetStatus struct {
	Conditions []Condition `json:"conditions,omitempty" doc:"'ReferencesResolved', if a cluster does not exist."`
}

// allNamespaces stands for every namespace in a cluster set.
const allNamespaces = "*"

// ObjectKind implements Object.
func (s *ClusterSet) ObjectKind() Kind { return KindClusterSet }

// Meta implements Object.
func (s *ClusterSet) Meta() *Metadata { return &s.Metadata }

// SpecPart implements Object.
func (s *ClusterSet) SpecPart() any { return &s.Spec }

// StatusPart implements Object.
func (s *ClusterSet) StatusPart() any { return &s.Status }

// Copy implements Object.
func (s *ClusterSet) Copy() Object { d := *s; return &d }

// Secrets implements Object.
func (s *ClusterSet) Secrets() map[string]Secret { return nil }

// SetSecret implements Object.
func (s *ClusterSet) SetSecret(string, Secret) {}

// SetDefaults implements Object.
func (s *ClusterSet) SetDefaults() {
	s.Kind = KindClusterSet
	s.Metadata.setDefaults(Global)
	setDefaults(&s.Spec)
}

// Admits reports whether placements in a namespace may use the set.
func (s *ClusterSet) Admits(namespace string) bool {
	return slices.Contains(s.Spec.Namespaces, allNamespaces) || slices.Contains(s.Spec.Namespaces, namespace)
}

// Validate implements Object.
func (s *ClusterSet) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(s, Global)
	switch {
	case s.Spec.Selector == nil && s.Spec.Clusters == nil:
		errs.Add("spec.selector", "either selector or clusters is required; an empty selector matches every cluster")
	case s.Spec.Selector != nil && s.Spec.Clusters != nil:
		errs.Add("spec.clusters", "must be absent because spec.selector is set: a set has one or the other")
	}
	s.Spec.Selector.validate(&errs, "spec.selector")
	checkUnique(&errs, "spec.clusters", s.Spec.Clusters)
	checkNames(&errs, "spec.clusters", s.Spec.Clusters)
	checkUnique(&errs, "spec.namespaces", s.Spec.Namespaces)
	for i, name := range s.Spec.Namespaces {
		if name != allNamespaces {
			errs.check(index("spec.namespaces", i), checkName(name))
		}
	}
	return errs.inOrder(s)
}
