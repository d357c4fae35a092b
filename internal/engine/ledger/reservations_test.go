package ledger_test

import (
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// reserve reserves a placement's requests on a cluster.
func reserve(t *testing.T, reserved *ledger.Reservations, f *columns.Fleet, p *api.Placement, cluster string, since time.Time) {
	t.Helper()
	q := enginetest.Compile(t, placement.NewQuery, p)
	reserved.Hold(f, q.Key, q.Requests(), cluster, since)
}

// A hold ends with the first report that is newer than it. It comes back only if the cluster is deleted and created
// again, because the new cluster has reported nothing yet.
func TestReservationFollowsReports(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1"}, Spec: api.ClusterSpec{Allocatable: api.Quantities{"cpu": "4"}}}
	reported := func(at time.Duration) *api.Cluster {
		d := *c
		d.Status.CapacityReportedAt = new(enginetest.Epoch.Add(at))
		return &d
	}
	p := enginetest.NewPlacement("web")
	p.Spec.ResourceRequests = api.Quantities{"cpu": "1"}
	q := enginetest.Compile(t, placement.NewQuery, p)
	reserved := ledger.NewReservations()
	f := &columns.Fleet{}
	step := func(changes columns.Changes, want api.Quantity) {
		t.Helper()
		var delta columns.Delta
		f, delta = f.With(changes, enginetest.Epoch)
		reserved.Sync(f, delta)
		row, ok := f.Row("c1")
		if ok && ledger.Available(f, reserved, row)["cpu"] != want || !ok && want != "" {
			t.Errorf("%s of cpu are available, want %s", ledger.Available(f, reserved, row)["cpu"], want)
		}
		if waiting := reserved.Waiting("c1"); ok && waiting != (want == "3") || reserved.Waiting("c0") {
			t.Errorf("waiting for a report: %t, with %s available", waiting, want)
		}
		for row := range reserved.Column("cpu").Len() {
			if held := reserved.Column("cpu").At(row); held.Sign() < 0 {
				t.Errorf("%s held, want no negative amount", held)
			}
		}
	}
	reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch) // before the fleet knows the cluster
	step(enginetest.Clusters(c), "3")
	step(enginetest.Clusters(reported(-time.Second)), "3")
	step(enginetest.Clusters(reported(0)), "4") // the report includes it
	step(enginetest.Clusters(reported(time.Hour)), "4")
	step(columns.Changes{Clusters: map[string]*api.Cluster{"c1": nil}}, "")
	step(enginetest.Clusters(&api.Cluster{Metadata: api.Metadata{Name: "c0"}}), "") // reuses the row
	step(enginetest.Clusters(c), "3")
	step(enginetest.Clusters(reported(time.Hour)), "4")
	reserved.Release(f, q.Key, "c1")
	step(columns.Changes{}, "4")
	step(enginetest.Clusters(c), "4")
	reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch)
	reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch) // replaces the hold instead of adding one
	step(columns.Changes{}, "3")
	reserved.Release(f, q.Key, "c1")
	reserved.Release(f, q.Key, "c1")
	step(columns.Changes{}, "4")
	if reserved.Len() != 0 {
		t.Errorf("%d holds in an empty ledger, want none", reserved.Len())
	}
}

// A report declared in the spec is known before the status confirms it. In between, the amounts must not be counted
// together with the holds that they include: that moved running workloads off their cluster.
func TestDeclaredReportEndsHoldsAtOnce(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1", Generation: 1, ModifiedAt: new(enginetest.Epoch)}}
	c.Spec.Allocatable, c.Spec.Allocated = api.Quantities{"cpu": "4"}, api.Quantities{"cpu": "1"}
	c.Status.ObservedGeneration, c.Status.CapacityReportedAt = 1, new(enginetest.Epoch)
	declared := *c
	declared.Metadata.Generation, declared.Metadata.ModifiedAt = 2, new(enginetest.Epoch.Add(time.Minute))
	declared.Spec.Allocated = api.Quantities{"cpu": "3"}
	labelled := declared
	labelled.Metadata.Generation, labelled.Metadata.ModifiedAt = 3, new(enginetest.Epoch.Add(time.Hour))
	observed := labelled
	observed.Status.ObservedGeneration, observed.Status.CapacityReportedAt = 3, new(enginetest.Epoch.Add(time.Minute))

	p := enginetest.NewPlacement("web")
	p.Spec.ResourceRequests = api.Quantities{"cpu": "2"}
	q := enginetest.Compile(t, placement.NewQuery, p)
	reserved := ledger.NewReservations()
	f, delta := (&columns.Fleet{}).With(enginetest.Clusters(c), enginetest.Epoch)
	reserved.Sync(f, delta)
	reserved.Hold(f, q.Key, q.Requests(), "c1", enginetest.Epoch.Add(time.Second))
	small := enginetest.NewPlacement("small")
	small.Spec.ResourceRequests = api.Quantities{"cpu": "500m"}
	for i, next := range []*api.Cluster{&declared, &labelled, &observed} {
		f, delta = f.With(enginetest.Clusters(next), enginetest.Epoch)
		reserved.Sync(f, delta)
		if !placement.Admits(f, q, reserved, 0, true) {
			t.Errorf("step %d: the placement does not fit on its own cluster", i)
		}
		want := api.Quantity("1")
		if i > 0 {
			want = "500m" // held by a decision that is newer than the report
		}
		if got := ledger.Available(f, reserved, 0)["cpu"]; got != want {
			t.Errorf("step %d: %s of cpu are available, want %s", i, got, want)
		}
		if i == 0 {
			reserve(t, reserved, f, small, "c1", enginetest.Epoch.Add(2*time.Minute))
		}
	}
}

// If a heartbeat reported the amounts in use, they count until the status says that the declared ones are newer, and so
// do the reservations that they do not include.
func TestDeclaredReportWaitsForTheHeartbeatsStatus(t *testing.T) {
	c := &api.Cluster{Metadata: api.Metadata{Name: "c1", Generation: 1, ModifiedAt: new(enginetest.Epoch)}}
	c.Spec.Allocatable = api.Quantities{"cpu": "4"}
	c.Status.ObservedGeneration, c.Status.CapacityReportedAt = 1, new(enginetest.Epoch)
	c.Status.Allocated = api.Quantities{"cpu": "1"}
	p := enginetest.NewPlacement("web")
	p.Spec.ResourceRequests = api.Quantities{"cpu": "2"}
	reserved := ledger.NewReservations()
	f, delta := (&columns.Fleet{}).With(enginetest.Clusters(c), enginetest.Epoch)
	reserved.Sync(f, delta)
	reserve(t, reserved, f, p, "c1", enginetest.Epoch.Add(time.Second))

	declared := *c
	declared.Metadata.Generation, declared.Metadata.ModifiedAt = 2, new(enginetest.Epoch.Add(time.Minute))
	declared.Spec.Allocated = api.Quantities{"cpu": "3"}
	observed := declared
	observed.Status.ObservedGeneration, observed.Status.CapacityReportedAt = 2, new(enginetest.Epoch.Add(time.Minute))
	observed.Status.Allocated = nil
	for _, next := range []*api.Cluster{&declared, &observed} {
		f, delta = f.With(enginetest.Clusters(next), enginetest.Epoch)
		reserved.Sync(f, delta)
		if got := ledger.Available(f, reserved, 0)["cpu"]; got != "1" {
			t.Errorf("%s of cpu are available, want 1: 4 less 1 and a hold of 2, then 4 less 3", got)
		}
	}
}
