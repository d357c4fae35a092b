package api

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Kind names a type of object, in the singular and in snake case: "cluster".
type Kind string

// Kinds of objects.
const (
	KindClusterSet      Kind = "cluster_set"
	KindCluster         Kind = "cluster"
	KindMetricsProvider Kind = "metrics_provider"
	KindMetric          Kind = "metric"
	KindPlacementScore  Kind = "placement_score"
	KindPlacement       Kind = "placement"
	KindWorkload        Kind = "workload"
	KindMoveWindow      Kind = "move_window"
	KindRole            Kind = "role"
	KindRoleBinding     Kind = "role_binding"

	KindPropagationPolicy Kind = "propagation_policy"

	KindCloud            Kind = "cloud"
	KindOpenStackProject Kind = "openstack_project"
	KindMagnumCluster    Kind = "magnum_cluster"
)

// DefaultNamespace is the namespace of namespaced objects that do not name one.
const DefaultNamespace = "default"

// Key identifies an object by kind, namespace and name. The namespace is "" for a global object,
// and the cluster for an object that belongs to a cluster.
type Key struct {
	Kind      Kind   `json:"kind" enum:"cluster_set,cluster,metrics_provider,metric,placement_score,placement,workload,propagation_policy,cloud,openstack_project,magnum_cluster,move_window,role,role_binding" doc:"Kind of the object."`
	Namespace string `json:"namespace,omitempty" doc:"Namespace of the object, if it has one. For a 'placement_score', its cluster."`
	Name      string `json:"name" doc:"Name of the object."`
}

// String returns the key for messages: `placement "shop/web"`.
func (k Key) String() string {
	if k.Namespace == "" {
		return fmt.Sprintf("%s %q", k.Kind, k.Name)
	}
	return fmt.Sprintf("%s %q", k.Kind, k.Namespace+"/"+k.Name)
}

// ParseKey parses the result of String. For any other text, ok is false.
func ParseKey(text string) (k Key, ok bool) {
	kind, quoted, _ := strings.Cut(text, " ")
	path, err := strconv.Unquote(quoted)
	if err != nil {
		return Key{}, false
	}
	k.Kind = Kind(kind)
	if namespace, name, of := strings.Cut(path, "/"); of {
		k.Namespace, k.Name = namespace, name
	} else {
		k.Name = path
	}
	return k, k.String() == text
}

// Path returns namespace and name as in a Terraform import: "shop/web", or "web" for a global
// object.
func (k Key) Path() string {
	if k.Namespace == "" {
		return k.Name
	}
	return k.Namespace + "/" + k.Name
}

// Compare orders keys by kind, namespace and name.
func (k Key) Compare(other Key) int {
	if c := strings.Compare(string(k.Kind), string(other.Kind)); c != 0 {
		return c
	}
	if c := strings.Compare(k.Namespace, other.Namespace); c != 0 {
		return c
	}
	return strings.Compare(k.Name, other.Name)
}

// Metadata identifies an object and its version. Users set Name, Namespace and Labels; the server
// sets the rest.
type Metadata struct {
	Name      string            `json:"name" doc:"Name of the object: lowercase letters, digits and '-', at most 63 characters."`
	Cluster   string            `json:"cluster,omitempty" doc:"Cluster that the object belongs to."`
	Namespace string            `json:"namespace,omitempty" doc:"Namespace of the object."`
	Labels    map[string]string `json:"labels,omitempty" doc:"Labels, matched by constraints and selectors."`
	// UID distinguishes an object from an earlier one of the same name.
	UID string `json:"uid,omitempty" doc:"Set by the server. Distinguishes the object from an earlier one with the same name."`
	// Generation grows by one with every change of the spec or the labels.
	Generation int64 `json:"generation,omitempty" doc:"Set by the server. Grows with every change of the spec or the labels."`
	// ResourceVersion is the compare-and-set token: the store revision of the object's last change,
	// including its status, as a decimal number.
	ResourceVersion string     `json:"resource_version,omitempty" doc:"Set by the server. Compare-and-set token (ETag)."`
	CreatedAt       *time.Time `json:"created_at,omitempty" doc:"Set by the server. When the object was created."`
	ModifiedAt      *time.Time `json:"modified_at,omitempty" doc:"Set by the server. When the spec or the labels last changed."`
	// WrittenBy is nil for what the server wrote itself.
	WrittenBy *Actor `json:"written_by,omitempty" doc:"Set by the server. Who last wrote the object, or asked for a fresh decision."`
	// RescheduleRequests counts explicit requests for a new decision. A request is done when the
	// status has the same number.
	RescheduleRequests int64 `json:"reschedule_requests,omitempty" doc:"Set by the server. Number of explicit requests for a fresh decision."`
}

// Actor is who made a request. It is immutable.
type Actor struct {
	Token     string `json:"token,omitempty" doc:"ID of the token, or issuer and subject of a JSON Web Token. Absent if the server requires no token."`
	RequestID string `json:"request_id,omitempty" doc:"ID of the request, as in the X-Request-Id header and in the logs."`
}

// Object is the interface of all kinds.
type Object interface {
	// ObjectKind returns the kind, even if the kind field of the JSON is empty.
	ObjectKind() Kind
	// Meta returns the object's own metadata, not a copy.
	Meta() *Metadata
	// SpecPart returns a pointer to the spec, which users write.
	SpecPart() any
	// StatusPart returns a pointer to the status, which only the server writes.
	StatusPart() any
	// SetDefaults sets absent fields to their defaults. It is idempotent.
	SetDefaults()
	// Validate returns all validation errors, each with its field. It expects SetDefaults to have
	// run.
	Validate() FieldErrors
	// Secrets returns the secret fields that are set, by path.
	Secrets() map[string]Secret
	// SetSecret sets the secret field at a path returned by Secrets. It never modifies data that
	// the object shares with a copy.
	SetSecret(field string, secret Secret)
	// Copy returns a shallow copy: its metadata, spec and status may be replaced, but maps and
	// slices are shared with the original.
	Copy() Object
}

// KeyOf returns the key of an object.
func KeyOf(o Object) Key {
	m := o.Meta()
	return Key{Kind: o.ObjectKind(), Namespace: cmp.Or(m.Cluster, m.Namespace), Name: m.Name}
}

// Scope is whether objects of a kind live in a namespace.
type Scope int

// Scopes: whether the objects of a kind belong to namespaces.
const (
	// Global objects have no namespace.
	Global Scope = iota
	// Namespaced objects always have a namespace, by default DefaultNamespace.
	Namespaced
	// GlobalOrNamespaced objects are global unless they name a namespace.
	GlobalOrNamespaced
	// OfCluster objects belong to one cluster, whose name is the namespace in their key.
	OfCluster
)

// KindInfo describes a kind: how it is addressed, and how to create an empty object.
type KindInfo struct {
	Kind       Kind
	Scope      Scope
	Collection string // plural in the URL: "metrics-providers"
	New        func() Object
}

// Kinds lists every kind. To add a kind, add its file and a line here.
var Kinds = []KindInfo{
	{KindClusterSet, Global, "cluster-sets", func() Object { return &ClusterSet{Kind: KindClusterSet} }},
	{KindCluster, Global, "clusters", func() Object { return &Cluster{Kind: KindCluster} }},
	{KindCloud, Global, "clouds", func() Object { return &Cloud{Kind: KindCloud} }},
	{KindOpenStackProject, Namespaced, "openstack-projects", func() Object { return &OpenStackProject{Kind: KindOpenStackProject} }},
	{KindMagnumCluster, Namespaced, "magnum-clusters", func() Object { return &MagnumCluster{Kind: KindMagnumCluster} }},
	{KindMetricsProvider, GlobalOrNamespaced, "metrics-providers", func() Object { return &MetricsProvider{Kind: KindMetricsProvider} }},
	{KindMetric, GlobalOrNamespaced, "metrics", func() Object { return &Metric{Kind: KindMetric} }},
	{KindPlacementScore, OfCluster, "placement-scores", func() Object { return &PlacementScore{Kind: KindPlacementScore} }},
	{KindPlacement, Namespaced, "placements", func() Object { return &Placement{Kind: KindPlacement} }},
	{KindPropagationPolicy, GlobalOrNamespaced, "propagation-policies", func() Object { return &PropagationPolicy{Kind: KindPropagationPolicy} }},
	{KindWorkload, Namespaced, "workloads", func() Object { return &Workload{Kind: KindWorkload} }},
	{KindMoveWindow, GlobalOrNamespaced, "move-windows", func() Object { return &MoveWindow{Kind: KindMoveWindow} }},
	{KindRole, Global, "roles", func() Object { return &Role{Kind: KindRole} }},
	{KindRoleBinding, Global, "role-bindings", func() Object { return &RoleBinding{Kind: KindRoleBinding} }},
}

// DecidedKinds have a decision and can be rescheduled; ExplainedKinds have a decision that is
// explained. A cluster that was created on a cloud stays there.
var (
	DecidedKinds   = []Kind{KindPlacement, KindWorkload, KindMagnumCluster}
	ExplainedKinds = append([]Kind{KindCluster}, DecidedKinds...)
)

// LookupKind returns the description of a kind.
func LookupKind(kind Kind) (KindInfo, bool) {
	for _, info := range Kinds {
		if info.Kind == kind {
			return info, true
		}
	}
	return KindInfo{}, false
}

// URLPath returns the object's path in the API: "/v1/namespaces/shop/placements/web".
func (k Key) URLPath() string {
	return k.collectionPath() + "/" + k.Name
}

// CollectionPath returns the path of a kind's collection. An empty namespace means the global
// collection, or all namespaces if the kind is namespaced.
func CollectionPath(kind Kind, namespace string) string {
	return Key{Kind: kind, Namespace: namespace}.collectionPath()
}

func (k Key) collectionPath() string {
	collection := string(k.Kind)
	info, ok := LookupKind(k.Kind)
	if ok {
		collection = info.Collection
	}
	switch {
	case k.Namespace == "":
		return "/v1/" + collection
	case ok && info.Scope == OfCluster:
		return "/v1/clusters/" + k.Namespace + "/" + collection
	}
	return "/v1/namespaces/" + k.Namespace + "/" + collection
}

// SameIntent reports whether two objects of one kind have equal labels, spec and secrets. Absent
// and empty collections are equal, as they are in JSON.
func SameIntent(a, b Object) bool {
	if a.ObjectKind() != b.ObjectKind() || !maps.Equal(a.Meta().Labels, b.Meta().Labels) {
		return false
	}
	x, errX := json.Marshal(a.SpecPart())
	y, errY := json.Marshal(b.SpecPart())
	if errX != nil || errY != nil || !bytes.Equal(x, y) {
		return false
	}
	return maps.Equal(a.Secrets(), b.Secrets())
}

// setDefaults sets the namespace of a namespaced object.
func (m *Metadata) setDefaults(scope Scope) {
	if scope == Namespaced && m.Namespace == "" {
		m.Namespace = DefaultNamespace
	}
	if scope == OfCluster && (m.Cluster == "" || m.Cluster == m.Namespace) {
		m.Cluster, m.Namespace = cmp.Or(m.Cluster, m.Namespace), ""
	}
	if len(m.Labels) == 0 {
		m.Labels = nil
	}
}

func (m *Metadata) validate(scope Scope, errs *FieldErrors) {
	if msg := checkName(m.Name); msg != "" {
		errs.Add("metadata.name", "%s", msg)
	}
	switch {
	case scope == OfCluster:
		if msg := checkName(m.Cluster); msg != "" {
			errs.Add("metadata.cluster", "%s", msg)
		}
	case m.Cluster != "":
		errs.Add("metadata.cluster", "must be absent: objects of this kind do not belong to a cluster")
	}
	if m.Namespace != "" {
		if scope == Global || scope == OfCluster {
			errs.Add("metadata.namespace", "must be absent: objects of this kind have no namespace")
		} else if msg := checkName(m.Namespace); msg != "" {
			errs.Add("metadata.namespace", "%s", msg)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(m.Labels)) {
		field := "metadata.labels[" + quote(key) + "]"
		if msg := checkLabelKey(key); msg != "" {
			errs.Add(field, "%s", msg)
		}
		if msg := checkLabelValue(m.Labels[key]); msg != "" {
			errs.Add(field, "%s", msg)
		}
	}
}
