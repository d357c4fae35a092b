package profiles

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/gitops"
)

// resource is that of ClusterProfiles.
var resource = schema.GroupVersionResource{Group: "multicluster.x-k8s.io", Version: "v1alpha1", Resource: "clusterprofiles"}

const (
	// healthCondition is the condition that says whether a cluster's control plane works.
	healthCondition = "ControlPlaneHealthy"
	// unhealthyTaint is the taint of a cluster whose control plane does not, or not certainly.
	unhealthyTaint = "multicluster.x-k8s.io/control-plane-unhealthy"
)

// profile is what is kept of a ClusterProfile.
type profile struct {
	// path is its namespace/name.
	path string
	// cluster is the cluster that it describes.
	cluster *api.Cluster
	uid     types.UID
	// invalid says why it cannot become a cluster.
	invalid string
}

func sameProfile(a, b profile) bool {
	if a.cluster == nil || b.cluster == nil {
		return a.cluster == b.cluster
	}
	return a.uid == b.uid && a.path == b.path && a.invalid == b.invalid && api.SameIntent(a.cluster, b.cluster)
}

// profileOf returns what is kept of an object.
func profileOf(object runtime.Object) (profile, bool) {
	u, ok := object.(*unstructured.Unstructured)
	if !ok {
		return profile{}, false
	}
	p := profile{path: u.GetNamespace() + "/" + u.GetName(), uid: u.GetUID()}
	p.cluster = &api.Cluster{Metadata: api.Metadata{Name: u.GetName(), Labels: u.GetLabels(), Declared: true}}
	spec := &p.cluster.Spec
	spec.Description, _, _ = unstructured.NestedString(u.Object, "spec", "displayName")
	if spec.Description == "" {
		spec.Description = "ClusterProfile " + p.path
	}
	spec.Claims = claimsOf(u.Object)
	spec.Claims[gitops.ProfileClaim] = p.path
	spec.Taints = taintsOf(u.Object)
	p.cluster.SetDefaults()
	if err := p.cluster.Validate().Err(); err != nil {
		p.invalid = err.Error()
	}
	return p, true
}

// claimsOf returns the properties that can be claims, and the version.
func claimsOf(object map[string]any) map[string]string {
	claims := map[string]string{}
	if version, _, _ := unstructured.NestedString(object, "status", "version", "kubernetes"); version != "" {
		claims[columns.KubernetesVersionClaim] = version
	}
	properties, _, _ := unstructured.NestedSlice(object, "status", "properties")
	for _, one := range properties {
		property, _ := one.(map[string]any)
		name, _ := property["name"].(string)
		value, _ := property["value"].(string)
		if _, ok := api.ParseClusterFact("claims." + name); ok {
			claims[name] = value
		}
	}
	return claims
}

// taintsOf returns the taints of a cluster by its health: whoever does not tolerate it leaves a
// cluster whose control plane does not work, and does not go to one about which nothing is known.
// Without the condition, nobody watches the cluster.
func taintsOf(object map[string]any) []api.Taint {
	conditions, _, _ := unstructured.NestedSlice(object, "status", "conditions")
	for _, one := range conditions {
		condition, _ := one.(map[string]any)
		if condition["type"] != healthCondition {
			continue
		}
		switch condition["status"] {
		case "True":
		case "False":
			return []api.Taint{{Key: unhealthyTaint, Value: "False", Effect: api.EffectNoSelect}}
		default:
			return []api.Taint{{Key: unhealthyTaint, Value: "Unknown", Effect: api.EffectNoSelectIfNew}}
		}
	}
	return nil
}

// isMade reports whether a cluster was made from a ClusterProfile, and no user has written it since.
func isMade(c *api.Cluster) bool {
	return c != nil && c.Metadata.Declared && c.Spec.Demand == nil && c.Spec.Claims[gitops.ProfileClaim] != ""
}
