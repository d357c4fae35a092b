package addresspolicy

import (
	"errors"
	"fmt"
	"net/netip"
	"regexp"
	"strings"
)

// rules are a list of names, addresses and ranges.
type rules struct {
	prefixes []netip.Prefix
	names    []string // in lower case; one that starts with a dot matches its subdomains
}

// hostName is the form of a name in a list. The last label must not be a number: some systems would
// treat the name as an address.
var hostName = regexp.MustCompile(`^(\*\.)?([a-z0-9_]([a-z0-9_-]*[a-z0-9_])?\.)*[a-z_]([a-z0-9_-]*[a-z0-9_])?$`)

func parseRules(setting string, entries []string) (rules, error) {
	var r rules
	var errs []error
	for _, entry := range entries {
		text := strings.ToLower(strings.TrimSpace(entry))
		if prefix, err := netip.ParsePrefix(text); err == nil {
			if mapped := prefix.Addr(); mapped.Is4In6() && prefix.Bits() >= 96 {
				prefix = netip.PrefixFrom(mapped.Unmap(), prefix.Bits()-96)
			}
			r.prefixes = append(r.prefixes, prefix.Masked())
			continue
		}
		if address, err := netip.ParseAddr(strings.Trim(text, "[]")); err == nil && address.Zone() == "" {
			address = plain(address)
			r.prefixes = append(r.prefixes, netip.PrefixFrom(address, address.BitLen()))
			continue
		}
		if text = strings.TrimSuffix(text, "."); hostName.MatchString(text) {
			r.names = append(r.names, strings.TrimPrefix(text, "*"))
			continue
		}
		errs = append(errs, fmt.Errorf("%s: %q is neither an address, nor a range such as 10.0.0.0/8, nor a name such as prometheus.example.com or *.example.com", setting, entry))
	}
	return r, errors.Join(errs...)
}

func (r rules) given() bool { return len(r.prefixes)+len(r.names) > 0 }

// name returns the entry that matches a name, or "".
func (r rules) name(host string) string {
	host = strings.TrimSuffix(strings.ToLower(host), ".")
	for _, name := range r.names {
		switch {
		case name == host:
			return name
		case name[0] == '.' && len(host) > len(name) && strings.HasSuffix(host, name):
			return "*" + name
		}
	}
	return ""
}

// prefix returns the entry that matches an address, or "".
func (r rules) prefix(address netip.Addr) string {
	for _, prefix := range r.prefixes {
		if prefix.Contains(address) {
			return show(prefix)
		}
	}
	return ""
}

// opensLoopback reports whether an entry for loopback addresses matches. Names, and ranges of
// everything, do not count.
func (r rules) opensLoopback(address netip.Addr) bool {
	for _, prefix := range r.prefixes {
		for _, all := range loopback {
			if all.Bits() <= prefix.Bits() && all.Contains(prefix.Addr()) && prefix.Contains(address) {
				return true
			}
		}
	}
	return false
}

func show(prefix netip.Prefix) string {
	if prefix.IsSingleIP() {
		return prefix.Addr().String()
	}
	return prefix.String()
}

func anyContains(prefixes []netip.Prefix, address netip.Addr) bool {
	for _, prefix := range prefixes {
		if prefix.Contains(address) {
			return true
		}
	}
	return false
}
