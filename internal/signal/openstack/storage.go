package openstack

import (
	"cmp"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

const (
	// unlimited is the least amount of a backend without a limit, in GiB: 8 Pi.
	unlimited = 8 << 20

	// mostGiB is more than a quantity can be, in GiB: 8 Ei. What reports as much has no limit.
	mostGiB = 8 << 30
)

// pool is a storage pool of Cinder's scheduler. Sizes are in GiB.
type pool struct {
	backend string
	place   string // what identifies the storage that it is on
	total   size
	free    size
	// provisioned is the total size of its volumes, if the backend reports it.
	provisioned size
	thin        bool    // volumes use space only as they are filled
	ratio       float64 // overcommit ratio, if thin
	reserved    float64 // percentage that is kept free
}

// size is one of Cinder's sizes: a number, "infinite", or unknown.
type size struct {
	gib      float64
	known    bool
	infinite bool
}

// amount returns the amounts of a pool; ok is false if they are unknown. It is computed as in
// Cinder's own scheduler.
func (p pool) amount() (a amount, endless, ok bool) {
	ratio := 1.0
	if p.thin && p.ratio >= 1 {
		ratio = p.ratio
	}
	if p.total.infinite || p.free.infinite && !p.total.known || p.total.gib*ratio >= mostGiB {
		return amount{}, true, true
	}
	if !p.total.known {
		return amount{}, false, false
	}
	var used float64
	switch {
	case p.provisioned.known && (p.thin || !p.free.known):
		used = p.provisioned.gib
	case p.free.known && !p.free.infinite:
		used = p.total.gib - p.free.gib
	case p.free.infinite:
		used = 0
	default:
		return amount{}, false, false
	}
	reserved := math.Floor(p.total.gib * p.reserved / 100)
	return amount{
		total:       whole(math.Floor(p.total.gib)),
		allocatable: whole(math.Floor(p.total.gib*ratio) - reserved),
		used:        whole(math.Ceil(used)),
	}, false, true
}

// scarcer reports whether less is left than according to another report about the same storage: each
// host reports at another time, and some know only of their own volumes.
func (a amount) scarcer(than amount) bool {
	return cmp.Or(
		cmp.Compare(a.allocatable-a.used, than.allocatable-than.used), cmp.Compare(than.used, a.used), cmp.Compare(a.total, than.total),
	) < 0
}

// whole returns a nonnegative number of GiB, at most mostGiB.
func whole(gib float64) int64 { return int64(min(max(gib, 0), mostGiB)) }

// storage adds up the pools of every volume type, by resource name. A type has the pools of the
// backend in its extra specs, and a backend without a type is listed under its own name. Unknown
// amounts are left out. Pools of several hosts on the same storage count once.
func storage(pools []pool, types []api.CloudVolumeType) map[string]amount {
	type stored struct{ backend, place string }
	places := map[stored]amount{}
	endless := map[string]bool{}
	for _, p := range pools {
		a, infinite, ok := p.amount()
		if !ok {
			continue
		}
		at := stored{p.backend, p.place}
		if was, known := places[at]; !known || a.scarcer(was) {
			places[at] = a
		}
		endless[p.backend] = endless[p.backend] || infinite
	}
	backends := map[string]amount{}
	for at, a := range places {
		backends[at.backend] = backends[at.backend].plus(a)
	}
	out := map[string]amount{}
	put := func(name, backend string) {
		key := resourceOf(name)
		if key == "" {
			return
		}
		if _, taken := out[key]; taken {
			return
		}
		a := backends[backend]
		if endless[backend] {
			a = amount{total: max(a.total, unlimited), allocatable: max(a.allocatable, unlimited)}
		}
		out[key] = a
	}
	named := map[string]bool{}
	for _, t := range types {
		if _, ok := backends[t.Backend]; ok && t.Backend != "" {
			named[t.Backend] = true
			put(t.Name, t.Backend)
		}
	}
	for _, backend := range slices.Sorted(maps.Keys(backends)) {
		if !named[backend] {
			put(backend, backend)
		}
	}
	return out
}

// resourceOf returns the resource name of a volume type. OpenStack accepts any text as a name;
// characters that are invalid in resource names become "-", and of types that then have the same
// name the first counts.
func resourceOf(name string) string {
	const alphanumeric = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
	var text strings.Builder
	for _, r := range name {
		if strings.ContainsRune(alphanumeric+"-_.", r) {
			text.WriteRune(r)
		} else {
			text.WriteByte('-')
		}
	}
	trim := func(s string) string { return strings.Trim(s, "-_.") }
	clean := trim(text.String())
	if len(clean) > 63 {
		clean = trim(clean[:63])
	}
	if clean == "" {
		return ""
	}
	return api.ResourceStoragePrefix + clean
}

// regional adds the resources of a whole region to each of its zones, modifying their maps.
func regional(zones []api.CloudZone, pools map[string]amount, floatingIPs *amount) {
	for _, zone := range zones {
		for name, a := range pools {
			a.into(zone, name, "Gi")
		}
		if floatingIPs != nil {
			floatingIPs.into(zone, api.ResourceFloatingIPs, "")
		}
	}
}
