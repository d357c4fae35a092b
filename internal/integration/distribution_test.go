//go:build integration

package integration

import (
	"context"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// The labels that request a split, as users write them.
const (
	labelEnabled = "vacant.io/optimize-scheduling"
	labelMode    = "vacant.io/optimize-scheduling-mode"
	labelCustom  = "vacant.io/optimize-scheduling-mode-custom-on-demand"
)

// splitCluster is a control plane with a server that splits its workloads, and the history of all its pods.
type splitCluster struct {
	*controlPlane
	*history
	whole            *testing.T // t belongs to the part that runs
	server           *process
	credentials      api.Secret // with the permissions that the guides list
	dataDir, webhook string
}

// startSplitCluster starts a control plane with nodes of both types.
func startSplitCluster(t *testing.T, onDemand, spot int) *splitCluster {
	t.Helper()
	s := &splitCluster{controlPlane: startControlPlane(t), whole: t, dataDir: t.TempDir(), webhook: proxytest.FreeAddress(t)}
	s.credentials = s.grantDocumented()
	s.history = record(t, s.controlPlane)
	// Nodes are assigned to the zones in turn.
	for i := range onDemand {
		s.addNodes(onDemandNode, 1, zone(i))
	}
	for i := range spot {
		s.addNodes(spotNode, 1, zone(i))
	}
	t.Cleanup(func() { checkAvailability(t, s.controlPlane, s.history) })
	return s
}

func zone(i int) map[string]string {
	return map[string]string{"topology.kubernetes.io/zone": string(rune('a' + i))}
}

// run runs a part of the test.
func (s *splitCluster) run(name string, part func(t *testing.T)) {
	s.whole.Run(name, func(t *testing.T) {
		s.t = t
		defer func() { s.t = s.whole }()
		part(t)
	})
}

// startServer starts or restarts the server.
func (s *splitCluster) startServer(args ...string) {
	s.t.Helper()
	s.server = startServer(s.whole, s.dataDir, append([]string{"--webhook-listen", s.webhook, "--webhook-url", "https://" + s.webhook, "--spot-return-after", "2s"}, args...)...)
}

// register enables spot for the cluster, and waits until the webhook is called for new pods.
func (s *splitCluster) register(change ...func(*api.SpotSpec)) {
	s.t.Helper()
	c := kubernetesCluster("real", s.credentials)
	c.Spec.Spot = &api.SpotSpec{Enabled: true}
	for _, f := range change {
		f(c.Spec.Spot)
	}
	put(s.server, c)
	took := eventually.True(s.t, "new pods of the cluster pass through the webhook", func() bool {
		ready := api.FindCondition(clusterStatus(s.server, "real").Conditions, api.ConditionSpotReady)
		return ready != nil && ready.Status == api.ConditionTrue
	})
	s.t.Logf("the cluster was ready for splits after %s", took.Round(time.Millisecond))
}

// replaced returns the pods of a workload that the server ended.
func (s *splitCluster) replaced(w workloadID) []podState {
	s.t.Helper()
	return s.history.replaced(userServer, s.endings())[w]
}

// enabled returns labels that request a split by a mode ("" for the default), and a number of pods on on-demand nodes
// ("" for none).
func enabled(mode, custom string) map[string]string {
	labels := map[string]string{labelEnabled: "true"}
	if mode != "" {
		labels[labelMode] = mode
	}
	if custom != "" {
		labels[labelCustom] = custom
	}
	return labels
}

// relabel changes what a running workload requests.
func (s *splitCluster) relabel(w workloadID, mode, custom string) {
	s.t.Helper()
	s.label(w, enabled(mode, custom))
}

// sentinel makes the server check everything once more: it changes the split of a workload, for which pods are
// replaced. Whatever the server has not changed by then, it never will.
func (s *splitCluster) sentinel(namespace string) {
	s.t.Helper()
	w := workloadID{"Deployment", namespace, "sentinel"}
	if s.counts(w).wanted == 0 {
		s.create(manifest{workloadID: w, replicas: 2, labels: enabled("all-in-spot", "")})
		s.reaches(w, 0, 2)
	}
	if s.counts(w).is(0, 2) {
		s.relabel(w, "all-in-on-demand", "")
		s.reaches(w, 2, 0)
		return
	}
	s.relabel(w, "all-in-spot", "")
	s.reaches(w, 0, 2)
}

// reaches waits until a workload has this split, by the nodes of its pods and by their labels.
func (s *splitCluster) reaches(w workloadID, onDemand, spot int) bool {
	s.t.Helper()
	return s.becomes(w, func(c counts) bool { return c.is(onDemand, spot) }, "%d on-demand + %d spot", onDemand, spot)
}

// becomes waits until the counts of a workload satisfy a condition.
func (s *splitCluster) becomes(w workloadID, ok func(counts) bool, what string, args ...any) bool {
	s.t.Helper()
	began := time.Now()
	got, reached := becomes(s.history, w, ok)
	if !reached {
		s.t.Errorf("within %s %s does not become "+what+": it has %s", append([]any{eventually.Limit, w}, append(args, got)...)...)
		s.t.Logf("events of the workload:\n%s", s.story(w, s.endings()))
		s.t.Logf("distribution according to the server: %+v", s.distribution(w))
	} else if took := time.Since(began); took > 10*time.Second {
		s.t.Logf("%s became "+what+" after %s", append([]any{w}, append(args, took.Round(time.Millisecond))...)...)
	}
	return reached
}

// distribution returns what the server reports about a workload in the cluster, or nil if it does not split it.
func (s *splitCluster) distribution(w workloadID) *api.DistributedWorkload {
	s.t.Helper()
	list, err := s.server.client.ListDistributions(context.Background(), "real")
	if err != nil {
		s.t.Logf("read the distributions from the server: %v", err)
		return nil
	}
	for i := range list {
		if d := &list[i]; (workloadID{d.Kind, d.Namespace, d.Name}) == w {
			return d
		}
	}
	return nil
}
