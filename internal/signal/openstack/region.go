package openstack

import (
	"context"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// sizesEvery is after how many collections flavors and volume types are read again: they hardly
// ever change.
const sizesEvery = 10

// region reads one region of OpenStack. It caches what need not be read each time.
type region struct {
	session *session
	name    string

	novaVersion int // index into novaVersions
	known       map[string]*provider
	sizesAge    int // collections since flavors and volume types were read
	flavorList  []api.CloudFlavor
	volumeList  []api.CloudVolumeType
}

// collect reads everything about the region.
func (r *region) collect(ctx context.Context) (*api.CloudRegion, error) {
	if r.session.service(r.name, computeTypes) == nil {
		return nil, failed("the identity service lists no public compute service in the region %q; it lists one in %s", r.name, listed(r.session.regions()))
	}
	hypervisors, err := r.hypervisors(ctx)
	if err != nil {
		return nil, err
	}
	aggregates, err := r.aggregates(ctx)
	if err != nil {
		return nil, err
	}
	pools, err := r.pools(ctx)
	if err != nil {
		return nil, err
	}
	floating, err := r.floatingIPs(ctx)
	if err != nil {
		return nil, err
	}
	if err := r.sizes(ctx); err != nil {
		return nil, err
	}
	zones := compute(hypervisors, aggregates)
	regional(zones, storage(pools, r.volumeList), floating)
	return &api.CloudRegion{Name: r.name, Zones: zones, Flavors: r.flavorList, VolumeTypes: r.volumeList}, nil
}

// sizes reads the flavors and volume types if due.
func (r *region) sizes(ctx context.Context) error {
	r.sizesAge++
	if r.flavorList != nil && r.sizesAge <= sizesEvery {
		return nil
	}
	flavors, err := r.flavors(ctx)
	if err != nil {
		return err
	}
	types, err := r.volumeTypes(ctx)
	if err != nil {
		return err
	}
	r.flavorList, r.volumeList, r.sizesAge = flavors, types, 0
	return nil
}

func listed(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
