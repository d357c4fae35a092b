package provider_test

import (
	"context"
	"maps"
	"testing"
	"time"

	"github.com/hashicorp/terraform-plugin-testing/knownvalue"
	"github.com/hashicorp/terraform-plugin-testing/statecheck"
	"github.com/hashicorp/terraform-plugin-testing/tfjsonpath"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// counts are replicas by cluster.
type counts map[string]int64

// check compares an attribute or output with the counts.
func (c counts) check() knownvalue.Check {
	checks := make(map[string]knownvalue.Check, len(c))
	for cluster, n := range c {
		checks[cluster] = knownvalue.Int64Exact(n)
	}
	return knownvalue.MapExact(checks)
}

// binding checks, in the state, where a workload runs and where it is being evicted.
func binding(address string, clusters, evicting counts) []statecheck.StateCheck {
	return []statecheck.StateCheck{
		statecheck.ExpectKnownValue(address, tfjsonpath.New("clusters"), clusters.check()),
		statecheck.ExpectKnownValue(address, tfjsonpath.New("evicting"), evicting.check()),
	}
}

// member adds an online cluster with some CPU, and labels.
func (f *fleet) member(name, cpu string, labels ...string) {
	f.t.Helper()
	cluster := &api.Cluster{
		Metadata: api.Metadata{Name: name, Labels: map[string]string{}},
		Spec:     api.ClusterSpec{Allocatable: api.Quantities{"cpu": api.Quantity(cpu)}},
	}
	for i := 0; i+1 < len(labels); i += 2 {
		cluster.Metadata.Labels[labels[i]] = labels[i+1]
	}
	f.put(cluster)
}

// taint sets a taint on a cluster outside of Terraform; "" removes all taints.
func (f *fleet) taint(cluster string, effect api.TaintEffect) {
	f.t.Helper()
	edit(f, api.Key{Kind: api.KindCluster, Name: cluster}, func(c *api.Cluster) {
		c.Spec.Taints = nil
		if effect != "" {
			c.Spec.Taints = []api.Taint{{Key: "maintenance", Effect: effect}}
		}
	})
}

// aggregate adds a policy that places the Deployments of the namespace shop on as few clusters as possible.
func (f *fleet) aggregate() {
	f.t.Helper()
	f.put(&api.PropagationPolicy{
		Metadata: api.Metadata{Name: "deployments", Namespace: "shop"},
		Spec: api.PropagationPolicySpec{
			ResourceSelectors: []api.ResourceSelector{{APIVersion: "apps/v1", Kind: "Deployment"}},
			Placement:         api.PropagationPlacement{ReplicaScheduling: &api.ReplicaScheduling{DivisionPreference: api.Aggregated}},
		},
	})
}

// healthy reports that a workload is healthy on a cluster.
func (f *fleet) healthy(workload api.Key, cluster string) {
	f.t.Helper()
	if _, err := f.client.ReportHealth(f.ctx(), workload, api.HealthReport{Cluster: cluster, Status: api.Healthy}); err != nil {
		f.t.Fatal(err)
	}
}

// untilBound waits for a binding that the server changes on its own.
func (f *fleet) untilBound(key api.Key, clusters, evicting counts) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(f.ctx(), eventually.Limit)
	defer cancel()
	object, err := f.client.Get(ctx, key)
	for err == nil {
		w, ok := object.(*api.Workload)
		if !ok {
			f.t.Fatalf("%s is a %T", key, object)
		}
		running := counts{}
		for _, c := range w.Status.Clusters {
			running[c.Name] = c.Replicas
		}
		if maps.Equal(running, clusters) && maps.Equal(w.Status.Evicting(), evicting) {
			return
		}
		var newer api.Object
		if newer, err = f.client.GetNewer(ctx, key, object.Meta().ResourceVersion, 10*time.Second); err == nil {
			object = newer
		}
	}
	w, _ := object.(*api.Workload)
	f.t.Fatalf("%s is not on %v and leaving %v, but has %+v: %v", key, clusters, evicting, w.Status, err)
}

var webWorkload = api.Key{Kind: api.KindWorkload, Namespace: "shop", Name: "web"}

func newPropagationFleet(t *testing.T) *fleet {
	f := newFleet(t)
	f.member("member1", "4")
	f.member("member2", "4")
	f.aggregate()
	return f
}
