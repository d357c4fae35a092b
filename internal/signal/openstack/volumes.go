package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"slices"
	"strconv"

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

// pools lists the storage pools of the region.
func (r *region) pools(ctx context.Context) ([]pool, error) {
	cinder := r.session.service(r.name, volumeTypes)
	if cinder == nil {
		return nil, nil
	}
	type shown struct {
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
		} `json:"capabilities"`
	}
	list, err := list[shown](ctx, r.session, cinder, "listing the storage pools", "scheduler-stats/get_pools?detail=true", "pools")
	if err != nil {
		return nil, err
	}
	out := make([]pool, len(list))
	for i := range list {
		c := &list[i].Capabilities
		out[i] = pool{
			backend: cmp.Or(c.Backend, list[i].Name), total: c.Total, free: c.Free, provisioned: c.Provisioned,
			thin: c.Thin, ratio: c.Ratio.gib, reserved: c.Reserved.gib,
		}
	}
	return out, nil
}

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
