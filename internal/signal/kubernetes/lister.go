package kubernetes

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// objects lists nodes or pods.
type objects struct {
	client   rest.Interface
	resource string
	selector string
	empty    func() runtime.Object
}

func nodeObjects(c *client) objects {
	return objects{c.core, "nodes", "", func() runtime.Object { return &corev1.NodeList{} }}
}

func podObjects(c *client) objects {
	return objects{c.core, "pods", placedPods, func() runtime.Object { return &corev1.PodList{} }}
}

func (o objects) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list := o.empty()
	options.FieldSelector = o.selector
	err := o.client.Get().Resource(o.resource).VersionedParams(&options, scheme.ParameterCodec).Do(ctx).Into(list)
	return list, err
}

func (o objects) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	options.FieldSelector = o.selector
	options.Watch = true
	return o.client.Get().Resource(o.resource).VersionedParams(&options, scheme.ParameterCodec).Watch(ctx)
}

// metadataOnly lists objects without their specs and statuses.
type metadataOnly struct {
	client   metadata.Interface
	resource schema.GroupVersionResource
}

func (o metadataOnly) list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
	list, err := o.client.Resource(o.resource).List(ctx, options)
	if err != nil {
		return nil, err // not a nil list in an interface
	}
	return list, nil
}

func (o metadataOnly) watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
	return o.client.Resource(o.resource).Watch(ctx, options)
}
