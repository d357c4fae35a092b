package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// Cluster is what the webhook needs to know about a cluster.
type Cluster interface {
	// Secret returns the part of the address that only the cluster knows. While it is empty, all
	// requests are ignored.
	Secret() string
	// Assign returns the node type of a new pod. It may wait for the cluster's caches, until ctx is
	// done.
	Assign(ctx context.Context, c Creation) Assignment
}

// Creation is a pod that is about to be created.
type Creation struct {
	// UID is that of the request: each attempt to create a pod has another one.
	UID types.UID
	// Name is empty if the API server will generate one from GenerateName.
	Name, GenerateName, Namespace string
	// Owner is the ReplicaSet or StatefulSet that controls the pod.
	Owner metav1.OwnerReference
	// Labels are those of the pod, before any change.
	Labels map[string]string
	// Pinned returns the only node type that the pod's own rules allow, or Unset if they allow both
	// or none.
	Pinned func(spot.Label) split.NodeType
	// DryRun says that the pod will not be created: nothing must be recorded.
	DryRun bool
}

// Assignment is the result for a new pod.
type Assignment struct {
	// Type is Unset for a pod that must not be changed.
	Type split.NodeType
	// Label is the cluster's node label for types.
	Label spot.Label
	// Cost is the deletion cost of the pod, or nil.
	Cost *int32
}
