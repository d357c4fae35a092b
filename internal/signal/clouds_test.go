package signal

import (
	"errors"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/openstack"
)

// TestClouds checks that a report about a cloud is stored, even right after the cloud was written, and is known after a
// restart.
func TestClouds(t *testing.T) {
	s, codec := openStore(t)
	b := start(t, s, codec)
	key := api.Key{Kind: api.KindCloud, Name: "paris"}
	report := func(sequence int64, full bool, cpu api.Quantity) api.CloudReport {
		zone := api.CloudZone{Name: "z", Hosts: 1, Available: api.Quantities{"cpu": cpu}}
		return api.CloudReport{Collector: "c", Sequence: sequence, Full: full, Regions: []api.CloudRegionReport{{Name: "R", Zones: []api.CloudZone{zone}}}}
	}
	expect := func(b *bench, revision int64, cpu api.Quantity) {
		t.Helper()
		snapshot, err := b.fleet.WaitRevision(t.Context(), revision)
		if err != nil {
			t.Fatal(err)
		}
		status := snapshot.Get(key).Object.(*api.Cloud).Status
		if got := status.Region("R").Zone("z").Available["cpu"]; got != cpu {
			t.Errorf("stored is %s, want %s", got, cpu)
		}
	}
	if _, _, err := b.ReportCloud(t.Context(), "paris", report(1, true, "4")); !errors.Is(err, openstack.ErrNotFound) {
		t.Errorf("ReportCloud() of an unknown cloud: error %v, want ErrNotFound", err)
	}
	written := b.write(t.Context(), &api.Cloud{Metadata: api.Metadata{Name: "paris"}})
	if _, err := b.fleet.WaitRevision(t.Context(), written); err != nil {
		t.Fatal(err)
	}
	revision, changed, err := b.ReportCloud(t.Context(), "paris", report(1, true, "4"))
	if err != nil || !changed || revision <= written {
		t.Fatalf("revision %d, changed %t, %v", revision, changed, err)
	}
	expect(b, revision, "4")
	if _, err := b.LiveOpenStack(t.Context(), "paris", api.LiveOptions{}); !errors.Is(err, openstack.ErrNoCredentials) {
		t.Errorf("LiveOpenStack(): error %v, want ErrNoCredentials", err)
	}
	if _, err := b.LiveOpenStack(t.Context(), "rome", api.LiveOptions{}); !errors.Is(err, openstack.ErrNotFound) {
		t.Errorf("LiveOpenStack() of an unknown cloud: error %v, want ErrNotFound", err)
	}
	b.stop()

	b = start(t, s, codec)
	if _, changed, err := b.ReportCloud(t.Context(), "paris", report(1, true, "4")); err != nil || changed {
		t.Errorf("same report after a restart: changed %t, %v", changed, err)
	}
	revision, changed, err = b.ReportCloud(t.Context(), "paris", report(2, false, "3"))
	if err != nil || !changed {
		t.Fatalf("next report after a restart: changed %t, %v", changed, err)
	}
	expect(b, revision, "3")
}
