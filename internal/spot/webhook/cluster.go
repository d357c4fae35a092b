package webhook

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/split"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// Cluster is what the webhook needs to know of one cluster.
type Cluster interface {
	// Secret is the part of the address that only the cluster knows. Nobody is
	// answered while it is empty.
	Secret() string
	// Assign says which nodes a new pod is for. It may wait for the cluster's caches,
	// never past ctx.
	Assign(ctx context.Context, c Creation) Assignment
}

// Creation is a pod that is about to be created.
type Creation struct {
	// UID is that of the request: each attempt to create a pod has another.
	UID types.UID
	// Name is empty where the API server is going to make one from GenerateName.
	Name, GenerateName, Namespace string
	// Owner is the ReplicaSet or StatefulSet that controls the pod.
	Owner metav1.OwnerReference
	// Labels are those of the pod, before any change.
	Labels map[string]string
	// Pinned is the one type of nodes that the pod's own rules allow, and Unset where
	// they allow both or none.
	Pinned func(spot.Label) split.NodeType
	// DryRun says that the pod is not going to be: nothing must be remembered of it.
	DryRun bool
}

// Assignment is what a new pod is for.
type Assignment struct {
	// Type is Unset for a pod that is to be left alone.
	Type split.NodeType
	// Label is how the nodes of the cluster say of which type they are.
	Label spot.Label
	// Cost is what the deletion of the pod costs. Nil leaves that open.
	Cost *int32
}
