package replacement

import (
	"context"

	"github.com/go-logr/logr"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/scheme"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/client-go/tools/record"
	"k8s.io/klog/v2"
)

// startEvents writes events to the cluster until ctx is done, or stop is called.
func (r *Replacement) startEvents(ctx context.Context) (stop func()) {
	broadcaster := record.NewBroadcaster(record.WithContext(klog.NewContext(ctx, logr.Discard())))
	broadcaster.StartRecordingToSink(&typedcorev1.EventSinkImpl{Interface: r.Client.CoreV1().Events("")})
	r.events = broadcaster.NewRecorder(scheme.Scheme, corev1.EventSource{Component: "scheduler-server"})
	return broadcaster.Shutdown
}

// event creates an event for a workload.
func (r *Replacement) event(key workloadKey, uid types.UID, reason, message string) {
	r.events.Event(&corev1.ObjectReference{
		APIVersion: "apps/v1", Kind: key.Kind, Namespace: key.Namespace, Name: key.Name, UID: uid,
	}, corev1.EventTypeNormal, reason, message)
}
