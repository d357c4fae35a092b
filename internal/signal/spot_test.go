package signal

import (
	"context"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// nobodysKubeconfig is a kubeconfig for an API server that refuses connections.
const nobodysKubeconfig = `{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"c","user":"u"}}],
	"clusters":[{"name":"c","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"t"}}]}`

// Observed spot nodes are stored, and are known after a restart.
func TestSpotNodesAreInTheFleet(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	c := &api.Cluster{Metadata: api.Metadata{Name: "a"}}
	c.Spec.Spot = &api.SpotSpec{Enabled: true}
	c.Spec.Kubernetes = &api.KubernetesSpec{Kubeconfig: api.NewSecret(nobodysKubeconfig)}
	b.put(c)
	b.ObservedSpot("a", "uid-a", &api.SpotStatus{SpotNodes: 3}, api.Condition{Status: api.ConditionTrue, Reason: "Ready", Message: "new pods pass through the server"})
	b.awaitSpot(3)
	b.stop()
	again := start(t, s, codec)
	again.awaitSpot(3)
}

// awaitSpot waits until the cluster has a number of spot nodes.
func (b *bench) awaitSpot(nodes int64) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), eventually.Limit)
	defer cancel()
	key := api.Key{Kind: api.KindCluster, Name: "a"}
	for entry := b.fleet.Snapshot().Get(key); ; {
		status := entry.Object.(*api.Cluster).Status
		ready := api.FindCondition(status.Conditions, api.ConditionSpotReady)
		if status.Spot != nil && status.Spot.SpotNodes == nodes && ready != nil && ready.Status == api.ConditionTrue {
			return
		}
		var err error
		if entry, err = b.fleet.WaitNewer(ctx, key, entry.Revision()); err != nil {
			b.t.Fatalf("%+v: %v", status, err)
		}
	}
}
