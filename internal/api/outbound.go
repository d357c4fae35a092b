package api

import (
	"maps"
	"net/url"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
)

// OutboundHost is a host that the server connects to because an object names it.
type OutboundHost struct {
	// Field is where the object names it.
	Field string
	// Host is a name or an address.
	Host string
	// Secret says that the field is one whose value nobody repeats.
	Secret bool
}

// OutboundHosts lists the hosts that an object has the server connect to. What cannot
// be read is left out: validation says so.
func OutboundHosts(object Object) []OutboundHost {
	var hosts []OutboundHost
	add := func(field, address string, secret bool) {
		if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
			hosts = append(hosts, OutboundHost{field, u.Hostname(), secret})
		}
	}
	switch o := object.(type) {
	case *MetricsProvider:
		blocks := o.Spec.blocks()
		for _, t := range slices.Sorted(maps.Keys(blocks)) {
			add("spec."+string(t)+".url", blocks[t], false)
		}
	case *Cluster:
		if o.Spec.Health != nil {
			add("spec.health.url", o.Spec.Health.URL, false)
		}
		if o.HasKubeconfig() {
			var k kubeconfig
			if yaml.Unmarshal([]byte(o.Spec.Kubernetes.Kubeconfig.Reveal()), &k) == nil {
				for _, c := range k.Clusters {
					add("spec.kubernetes.kubeconfig", c.Cluster.Server, true)
					add("spec.kubernetes.kubeconfig", c.Cluster.ProxyURL, true)
				}
			}
		}
	case *Cloud:
		if o.Spec.OpenStack != nil {
			add(openStackField+".auth_url", o.Spec.OpenStack.AuthURL, false)
		}
	case *OpenStackProject:
		if o.Spec.OpenStack != nil {
			add(openStackField+".auth_url", o.Spec.OpenStack.AuthURL, false)
		}
	}
	return hosts
}

// CheckOutbound says which hosts of an object a policy refuses by what is written, at
// most one for each field. Where names lead, only the connection shows.
func CheckOutbound(object Object, policy *netpolicy.Policy) FieldErrors {
	var errs FieldErrors
	for _, h := range OutboundHosts(object) {
		refusal := policy.Judge(h.Host)
		switch {
		case refusal == nil || len(errs) > 0 && errs[len(errs)-1].Field == h.Field:
		case h.Secret:
			errs.Add(h.Field, "names a host that the server must not connect to: %s", refusal.Why)
		default:
			errs.Add(h.Field, "%s", refusal)
		}
	}
	return errs
}
