package kubernetes

import (
	"iter"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	corev1 "k8s.io/api/core/v1"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube/informer"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// poisonedSink panics on the observations of one cluster.
type poisonedSink struct {
	Sink
	broken atomic.Bool
}

func (p *poisonedSink) Observed(cluster string, kubeconfig api.Secret, o health.Observation) {
	if p.broken.Load() && cluster == "poison" {
		panic("over " + cluster)
	}
	p.Sink.Observed(cluster, kubeconfig, o)
}

// After a panic on one cluster, it is watched again after a delay, and the others are not affected.
func TestPanicOnAClusterAffectsOnlyThatCluster(t *testing.T) {
	inWorld(t, func(t *testing.T, w *world) {
		w.server("good").put(machine("n1"))
		w.server("bad0").put(machine("n1"))
		recorder := recovery.New(nil)
		sink := &poisonedSink{Sink: w.monitor}
		sink.broken.Store(true)
		w.observer.Sink, w.observer.watchers.Faults = sink, recorder.Component("kubernetes")
		w.write(on("poison", "bad0"))
		w.put(on("good", "good"))
		faketime.Sleep(5 * time.Minute)
		synctest.Wait()
		w.expect("good", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
		key := api.Key{Kind: api.KindCluster, Name: "poison"}.String()
		if text := recorder.Faulted(key); len(text) != 1 || !strings.Contains(text[0], "kubernetes failed with a fault of the server: over poison") {
			t.Errorf("fault of the cluster %v", text)
		}
		sink.broken.Store(false)
		faketime.Sleep(5 * time.Minute)
		synctest.Wait()
		w.expect("poison", api.StateOnline, api.ConditionTrue, api.ReasonObserved)
	})
}

// After a panic on a node, the status says why the nodes are not current, and the panic is counted and logged with its
// cluster.
func TestPanicOnANodeIsAnError(t *testing.T) {
	var log strings.Builder
	recorder := recovery.New(slog.New(slog.NewTextHandler(&log, nil)))
	inWorld(t, func(t *testing.T, w *world) {
		w.server("eu").put(machine("n1"))
		c := on("eu", "eu")
		target, _ := targetOf(c)
		informers := informer.NewGroup(w.observer.Informers.Clusters, recorder.Component("kubernetes"))
		shared, err := informers.Open("eu", target.kubeconfig)
		if err != nil {
			t.Fatal(err)
		}
		defer shared.Close()
		defer shared.Follow(informer.Follower{Details: &informer.Details{
			NodeOf: func(*corev1.Node) any { panic("over a node") }, PodOf: func(*corev1.Pod, informer.Amount) any { return nil },
			Nodes: func(iter.Seq[informer.Change[informer.Node]]) {}, Pods: func(iter.Seq[informer.Change[informer.Pod]]) {},
		}})()
		watcher := newWatcher("eu", target, w.monitor)
		done := make(chan error, 1)
		ctx := t.Context()
		go func() { done <- watcher.run(ctx, informers) }()
		faketime.Sleep(time.Minute)
		synctest.Wait()
		select {
		case err := <-done:
			t.Fatalf("the watcher ended: %v", err)
		default:
		}
		if c := condition(watcher.parts()); c.Status != api.ConditionFalse || !strings.Contains(c.Message, "nodes: a fault of the server: over a node") {
			t.Errorf("unexpected condition %+v", c)
		}
		registry := prometheus.NewRegistry()
		registry.MustRegister(recorder.Collectors()...)
		families, err := registry.Gather()
		if err != nil || len(families) != 1 || families[0].GetMetric()[0].GetCounter().GetValue() == 0 {
			t.Errorf("faults counted: %v, %v", families, err)
		}
		if text := log.String(); !strings.Contains(text, `component=kubernetes object="cluster \"eu\"" panic="over a node"`) {
			t.Errorf("unexpected log %.500s", text)
		}
		watcher.client.Close()
	})
}
