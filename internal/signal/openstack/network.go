package openstack

import (
	"context"
	"encoding/json"
	"math"
	"net/http"
	"strings"
)

// addresses are the addresses of a network for one IP version.
type addresses struct {
	version     int
	total, used int64
}

// floatingIPs adds up the IPv4 addresses of external networks. Used addresses include those of
// routers, which are not available for floating IPs.
func floatingIPs(external [][]addresses) amount {
	var sum amount
	for _, subnets := range external {
		for _, a := range subnets {
			if a.version == 4 {
				sum = sum.plus(amount{total: a.total, allocatable: a.total, used: a.used})
			}
		}
	}
	return sum
}

// floatingIPs reads how many floating IPs the region has; nil if unknown.
func (r *region) floatingIPs(ctx context.Context) (*amount, error) {
	neutron := r.session.service(r.name, networkTypes)
	if neutron == nil {
		return nil, nil
	}
	version := "v2.0/"
	if strings.HasSuffix(neutron.Endpoint, "/"+version) {
		version = "" // already in the catalog
	}
	type network struct {
		ID string `json:"id"`
	}
	networks, err := list[network](ctx, r.session, neutron, "listing the external networks", version+"networks?router:external=true&fields=id", "networks")
	if err != nil {
		return nil, err
	}
	external := map[string]bool{}
	for _, n := range networks {
		external[n.ID] = true
	}
	type availability struct {
		NetworkID string `json:"network_id"`
		Subnets   []struct {
			Version int   `json:"ip_version"`
			Total   count `json:"total_ips"`
			Used    count `json:"used_ips"`
		} `json:"subnet_ip_availability"`
	}
	all, err := list[availability](ctx, r.session, neutron, "reading how many addresses are free", version+"network-ip-availabilities", "network_ip_availabilities")
	if statusOf(err) == http.StatusNotFound {
		return nil, nil // an optional extension of Neutron
	}
	if err != nil {
		return nil, err
	}
	var of [][]addresses
	for _, a := range all {
		if !external[a.NetworkID] {
			continue
		}
		subnets := make([]addresses, len(a.Subnets))
		for i, s := range a.Subnets {
			subnets[i] = addresses{version: s.Version, total: int64(s.Total), used: int64(s.Used)}
		}
		of = append(of, subnets)
	}
	sum := floatingIPs(of)
	return &sum, nil
}

// count is a number of addresses. For IPv6 it may exceed int64.
type count int64

// UnmarshalJSON implements json.Unmarshaler.
func (c *count) UnmarshalJSON(data []byte) error {
	var n float64
	if err := json.Unmarshal(data, &n); err != nil {
		return err
	}
	*c = count(min(max(n, 0), math.MaxInt32))
	return nil
}
