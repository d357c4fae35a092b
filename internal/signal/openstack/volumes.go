package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// UnmarshalJSON implements json.Unmarshaler. Drivers write sizes as a number, as a string with a
// number, as "infinite" or as "unknown".
func (s *size) UnmarshalJSON(data []byte) error {
	*s = size{}
	var text string
	if json.Unmarshal(data, &text) == nil {
		if text == "infinite" {
			s.infinite = true
			return nil
		}
		data = []byte(text)
	}
	if gib, err := strconv.ParseFloat(string(data), 64); err == nil && gib >= 0 && gib < 1<<60 {
		s.gib, s.known = gib, true
	}
	return nil
}

// shownPool is a storage pool as Cinder shows it.
type shownPool struct {
	Name         string `json:"name"`
	Capabilities struct {
		Backend     string `json:"volume_backend_name"`
		Total       size   `json:"total_capacity_gb"`
		Free        size   `json:"free_capacity_gb"`
		Provisioned size   `json:"provisioned_capacity_gb"`
		Thin        bool   `json:"thin_provisioning_support"`
		// Ratio is a number written as a string, absent on pools that are not thin.
		Ratio    size `json:"max_over_subscription_ratio"`
		Reserved size `json:"reserved_percentage"`
		// Location is text, in a notation of the driver; another value counts as none.
		Location any `json:"location_info"`
	} `json:"capabilities"`
}

// pools lists the storage pools of the region.
func (r *region) pools(ctx context.Context) ([]pool, error) {
	cinder := r.session.service(r.name, volumeTypes)
	if cinder == nil {
		return nil, nil
	}
	list, err := list[shownPool](ctx, r.session, cinder, "listing the storage pools", "scheduler-stats/get_pools?detail=true", "pools")
	if err != nil {
		return nil, err
	}
	out := make([]pool, len(list))
	for i := range list {
		out[i] = list[i].pool()
	}
	return out, nil
}

func (s *shownPool) pool() pool {
	c := &s.Capabilities
	location, _ := c.Location.(string)
	return pool{
		backend: cmp.Or(c.Backend, s.Name), place: placeOf(s.Name, location), total: c.Total, free: c.Free, provisioned: c.Provisioned,
		thin: c.Thin, ratio: c.Ratio.gib, reserved: c.Reserved.gib,
	}
}

// placeOf returns what identifies the storage that a pool is on, from the pool's name
// ("host@backend#pool") and location. Pools of several hosts are the same storage if they agree in it.
//
// The location of a Ceph pool is "cluster:configuration:fsid:user:pool", of which the fsid and the pool
// identify it: each host may call the cluster differently, and log in as another user. The other
// drivers of Cinder name the storage, or the host if it is the host's own (as LVM does), but not
// always the pool on it. A pool without a location is its own, unless it is called by its address in
// the network, as NFS exports are ("10.0.0.1:/volumes").
func placeOf(name, location string) string {
	_, pool, _ := strings.Cut(name, "#")
	parts := strings.Split(location, ":")
	switch n := len(parts); {
	case n >= 4 && fsid.MatchString(parts[n-3]):
		return "ceph:" + parts[n-3] + ":" + parts[n-1]
	case location != "":
		return "location:" + location + "#" + pool
	case strings.Contains(pool, ":/"):
		return "export:" + pool
	}
	return "name:" + name
}

// fsid is the identity of a Ceph cluster.
var fsid = regexp.MustCompile(`^[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}$`)

// volumeTypes lists the volume types, including private ones, by name.
func (r *region) volumeTypes(ctx context.Context) ([]api.CloudVolumeType, error) {
	cinder := r.session.service(r.name, volumeTypes)
	if cinder == nil {
		return nil, nil
	}
	type shown struct {
		ID    string            `json:"id"`
		Name  string            `json:"name"`
		Specs map[string]string `json:"extra_specs"`
	}
	list, err := list[shown](ctx, r.session, cinder, "listing the volume types", "types?is_public=None", "volume_types")
	if err != nil {
		return nil, err
	}
	out := make([]api.CloudVolumeType, len(list))
	for i, t := range list {
		out[i] = api.CloudVolumeType{ID: t.ID, Name: t.Name, Backend: t.Specs["volume_backend_name"]}
	}
	slices.SortFunc(out, func(a, b api.CloudVolumeType) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	return out, nil
}
