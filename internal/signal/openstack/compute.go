package openstack

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"

	"github.com/gophercloud/gophercloud/v2"
	"golang.org/x/sync/errgroup"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// novaVersions are the versions of Nova's API in the order in which they are tried. From 2.88 on,
// the list of hypervisors has no amounts, and fails as a whole while one host is down; 2.53 is for
// an OpenStack that is older than the first, and the last for one that supports neither.
var novaVersions = []string{"2.87", "2.53", "latest"}

// placementRequests is the number of concurrent requests to Placement.
const placementRequests = 8

// shownHypervisor is a hypervisor as returned by Nova.
type shownHypervisor struct {
	ID      json.RawMessage `json:"id"` // a UUID since 2.53, a number before
	State   string          `json:"state"`
	Status  string          `json:"status"`
	Service struct {
		Host string `json:"host"`
	} `json:"service"`
	VCPUs        *int64 `json:"vcpus"`
	VCPUsUsed    *int64 `json:"vcpus_used"`
	MemoryMB     *int64 `json:"memory_mb"`
	MemoryMBUsed *int64 `json:"memory_mb_used"`
}

func (h *shownHypervisor) id() string { return strings.Trim(string(h.ID), `"`) }

// hasAmounts reports whether Nova returned the hypervisor's amounts.
func (h *shownHypervisor) hasAmounts() bool {
	return h.VCPUs != nil && h.VCPUsUsed != nil && h.MemoryMB != nil && h.MemoryMBUsed != nil
}

// hypervisors reads the resources of the region's hosts. Nova knows their totals, Placement how
// much can be allocated.
func (r *region) hypervisors(ctx context.Context) ([]hypervisor, error) {
	shown, err := r.shownHypervisors(ctx)
	if err != nil {
		return nil, err
	}
	providers, err := r.providers(ctx, shown)
	if err != nil {
		return nil, err
	}
	out := make([]hypervisor, 0, len(shown))
	for i := range shown {
		h := &shown[i]
		p := providers[h.id()]
		if p == nil && !h.hasAmounts() && h.isUp() {
			return nil, failed("listing the hypervisors: neither the compute service nor Placement reports the resources of the host %q", h.Service.Host)
		}
		joined := h.with(p)
		joined.cpu, joined.memory = joined.cpu.sane(), joined.memory.sane()
		out = append(out, joined)
	}
	return out, nil
}

func (h *shownHypervisor) isUp() bool { return h.State == "up" && h.Status == "enabled" }

// with combines what Nova and Placement return for a hypervisor. Nova's used amount includes what
// is reserved for the host itself, which is already subtracted from Placement's allocatable amount.
func (h *shownHypervisor) with(p *provider) hypervisor {
	out := hypervisor{id: h.id(), host: h.Service.Host, up: h.isUp()}
	if h.hasAmounts() {
		out.cpu = amount{total: *h.VCPUs, allocatable: *h.VCPUs, used: *h.VCPUsUsed}
		out.memory = amount{total: *h.MemoryMB, allocatable: *h.MemoryMB, used: *h.MemoryMBUsed}
	}
	if p == nil {
		return out
	}
	cpu, memory := p.cpu(), p.Inventories["MEMORY_MB"]
	if !h.hasAmounts() {
		out.cpu.total, out.cpu.used = cpu.total, p.Usages["VCPU"]+p.Usages["PCPU"]
		out.memory.total, out.memory.used = memory.Total, p.Usages["MEMORY_MB"]
	} else {
		out.cpu.used -= cpu.reserved
		out.memory.used -= memory.Reserved
	}
	out.cpu.allocatable, out.memory.allocatable = cpu.allocatable, memory.allocatable()
	return out
}

// shownHypervisors lists the hypervisors with the first API version that OpenStack supports.
func (r *region) shownHypervisors(ctx context.Context) ([]shownHypervisor, error) {
	nova := r.session.service(r.name, computeTypes)
	for {
		nova.Microversion = novaVersions[r.novaVersion]
		out, err := list[shownHypervisor](ctx, r.session, nova, "listing the hypervisors", "os-hypervisors/detail", "hypervisors")
		if err == nil {
			return out, nil
		}
		if statusOf(err) != http.StatusNotAcceptable || r.novaVersion+1 == len(novaVersions) {
			return nil, err
		}
		r.novaVersion++
	}
}

// aggregates lists the host aggregates.
func (r *region) aggregates(ctx context.Context) ([]aggregate, error) {
	type shown struct {
		Zone     string            `json:"availability_zone"`
		Metadata map[string]string `json:"metadata"`
		Hosts    []string          `json:"hosts"`
	}
	nova := r.session.service(r.name, computeTypes)
	nova.Microversion = novaVersions[r.novaVersion]
	list, err := list[shown](ctx, r.session, nova, "listing the aggregates", "os-aggregates", "aggregates")
	if err != nil {
		return nil, err
	}
	out := make([]aggregate, len(list))
	for i, a := range list {
		if a.Zone == "" {
			a.Zone = a.Metadata["availability_zone"]
		}
		out[i] = aggregate{zone: a.Zone, hosts: a.Hosts}
	}
	return out, nil
}

// flavors lists the flavors, including private ones, by name.
func (r *region) flavors(ctx context.Context) ([]api.CloudFlavor, error) {
	type shown struct {
		ID     string `json:"id"`
		Name   string `json:"name"`
		VCPUs  int64  `json:"vcpus"`
		RAM    int64  `json:"ram"`
		Disk   int64  `json:"disk"`
		Public bool   `json:"os-flavor-access:is_public"`
	}
	nova := r.session.service(r.name, computeTypes)
	list, err := list[shown](ctx, r.session, nova, "listing the flavors", "flavors/detail?is_public=None", "flavors")
	if err != nil {
		return nil, err
	}
	out := make([]api.CloudFlavor, len(list))
	for i, f := range list {
		out[i] = api.CloudFlavor{ID: f.ID, Name: f.Name, VCPUs: f.VCPUs, MemoryMiB: f.RAM, DiskGiB: f.Disk, Public: f.Public}
	}
	slices.SortFunc(out, func(a, b api.CloudFlavor) int { return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID)) })
	return out, nil
}

// provider is a resource provider of Placement.
type provider struct {
	Generation  int64                `json:"-"`
	Inventories map[string]inventory `json:"inventories"`
	Usages      map[string]int64     `json:"usages"`
}

// inventory is an inventory of Placement.
type inventory struct {
	Total           int64   `json:"total"`
	Reserved        int64   `json:"reserved"`
	AllocationRatio float64 `json:"allocation_ratio"`
}

// allocatable returns how much Placement can allocate in total.
func (i inventory) allocatable() int64 {
	return int64(min(max((float64(i.Total)-float64(i.Reserved))*i.AllocationRatio, 0), 2*most))
}

// most exceeds what any host has. A host that reports more counts as having nothing, and what is negative as 0, so that
// sums stay plausible.
const most = 1 << 40

func (a amount) sane() amount {
	if max(a.total, a.allocatable, a.used) > most {
		return amount{}
	}
	return amount{total: max(a.total, 0), allocatable: max(a.allocatable, 0), used: max(a.used, 0)}
}

// cpu adds up shared and dedicated CPUs.
func (p *provider) cpu() (sum struct{ total, reserved, allocatable int64 }) {
	for _, class := range []string{"VCPU", "PCPU"} {
		i := p.Inventories[class]
		sum.total += i.Total
		sum.reserved += i.Reserved
		sum.allocatable += i.allocatable()
	}
	return sum
}

// providers reads Placement's resource providers for the hypervisors that accept machines, by ID. A
// provider's generation grows with every change, so a provider with a known generation is not read
// again.
func (r *region) providers(ctx context.Context, shown []shownHypervisor) (map[string]*provider, error) {
	placement := r.session.service(r.name, placementTypes)
	if placement == nil {
		return nil, nil
	}
	type listed struct {
		UUID       string `json:"uuid"`
		Generation int64  `json:"generation"`
	}
	all, err := list[listed](ctx, r.session, placement, "listing the resource providers", "resource_providers", "resource_providers")
	if err != nil {
		return nil, err
	}
	usages := map[string]bool{} // those needed, and whether their usage is
	for i := range shown {
		if h := &shown[i]; h.isUp() {
			usages[h.id()] = !h.hasAmounts()
		}
	}
	var mu sync.Mutex
	fresh := map[string]*provider{}
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(placementRequests)
	for _, l := range all {
		used, wanted := usages[l.UUID]
		if !wanted {
			continue
		}
		if known := r.known[l.UUID]; known != nil && known.Generation == l.Generation && (known.Usages != nil || !used) {
			mu.Lock()
			fresh[l.UUID] = known
			mu.Unlock()
			continue
		}
		group.Go(func() error {
			return recovery.Confine("", func() error {
				p, err := r.provider(ctx, placement, l.UUID, used)
				if err != nil || p == nil {
					return err
				}
				p.Generation = l.Generation
				mu.Lock()
				defer mu.Unlock()
				fresh[l.UUID] = p
				return nil
			})
		})
	}
	if err := group.Wait(); err != nil {
		return nil, err
	}
	r.known = fresh
	return fresh, nil
}

// provider reads one provider; nil if it has been deleted.
func (r *region) provider(ctx context.Context, placement *gophercloud.ServiceClient, uuid string, used bool) (*provider, error) {
	p := &provider{}
	parts := []string{"inventories"}
	if used {
		parts = append(parts, "usages")
	}
	for _, part := range parts {
		err := get(ctx, placement, fmt.Sprintf("%sresource_providers/%s/%s", placement.Endpoint, uuid, part), p)
		switch {
		case statusOf(err) == http.StatusNotFound:
			return nil, nil
		case err != nil:
			return nil, r.session.refused("reading the "+part+" of a resource provider", err)
		}
	}
	return p, nil
}
