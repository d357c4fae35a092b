package api

import (
	"maps"
	"net/url"
	"slices"

	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// outboundHost is a host that the server connects to because an object refers to it.
type outboundHost struct {
	// Field is the field that names the host.
	Field string
	// Host is a name or an IP address.
	Host string
	// Secret says that the field's value must not be repeated in messages.
	Secret bool
}

// outboundHostsOf returns the hosts that the server connects to because of an object. Invalid
// addresses are skipped: validation reports them.
func outboundHostsOf(object Object) []outboundHost {
	var hosts []outboundHost
	add := func(field, address string, secret bool) {
		if u, err := url.Parse(address); err == nil && u.Hostname() != "" {
			hosts = append(hosts, outboundHost{field, u.Hostname(), secret})
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

// CheckOutbound returns an error for each field whose host the policy blocks as written, at most
// one per field. What names resolve to is checked only when connecting.
func CheckOutbound(object Object, policy *addresspolicy.Policy) FieldErrors {
	var errs FieldErrors
	for _, h := range outboundHostsOf(object) {
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
