// Package addresspolicy decides which addresses the server may connect to because of objects that users
// write: metrics providers, probes, clouds, kubeconfigs. Package outbound enforces the policy on
// every connection, when it is made and after the name was resolved.
package addresspolicy

import (
	"errors"
	"fmt"
	"net/netip"
	"strconv"
	"strings"
)

// Policy decides which addresses are allowed. The nil Policy and the zero value are the strictest:
// loopback is blocked, and the lists are empty.
type Policy struct {
	loopback    bool
	allow, deny rules
}

// Options of a Policy.
type Options struct {
	// Loopback allows loopback addresses. It is set while the server itself listens on loopback
	// only: whoever can write to it can connect to them anyway.
	Loopback bool
	// Allow lists names, addresses and ranges. If it is set, nothing else is allowed. A range of
	// loopback addresses allows these.
	Allow []string
	// Deny lists names, addresses and ranges that are blocked. It takes precedence over Allow.
	Deny []string
}

// New returns a Policy. Its error names every invalid entry.
func New(o Options) (*Policy, error) {
	p := &Policy{loopback: o.Loopback}
	var errs [2]error
	p.allow, errs[0] = parseRules(AllowFlag, o.Allow)
	p.deny, errs[1] = parseRules(DenyFlag, o.Deny)
	for _, prefix := range p.allow.prefixes {
		for _, c := range never {
			if c.prefix.Bits() <= prefix.Bits() && c.prefix.Contains(prefix.Addr()) {
				errs[0] = errors.Join(errs[0], fmt.Errorf("%s: %s is %s, which the server never connects to", AllowFlag, show(prefix), c.what))
			}
		}
	}
	if err := errors.Join(errs[:]...); err != nil {
		return nil, err
	}
	return p, nil
}

// OnLoopback returns the policy of a process that only serves its own machine and has no lists.
func OnLoopback() *Policy { return &Policy{loopback: true} }

// Settings that a refusal names.
const (
	AllowFlag = "outbound-allow"
	DenyFlag  = "outbound-deny"
)

// Refusal is the error about an address that is blocked.
type Refusal struct {
	// Host is the name or address as written, "" if only the address is known.
	Host string
	// Address is what the name resolves to; the zero value if it was not resolved.
	Address netip.Addr
	// Why is the rule, and what would allow the address, without the address itself.
	Why string
}

// Error says which address is blocked, by which rule, and what would allow it.
func (r *Refusal) Error() string {
	what := r.Host
	literal, err := netip.ParseAddr(strings.Trim(r.Host, "[]"))
	switch {
	case !r.Address.IsValid():
	case r.Host == "" || err == nil && plain(literal) == r.Address:
		what = r.Address.String()
	default:
		what += " (" + r.Address.String() + ")"
	}
	return "the server must not connect to " + what + ": " + r.Why
}

// CheckHost checks a host as written in a URL, before it is resolved: a name by the lists, an
// address as Check does.
func (p *Policy) CheckHost(host string) error {
	if refusal := p.Judge(host); refusal != nil {
		return refusal
	}
	return nil
}

// Judge is CheckHost; it returns nil if the host is allowed.
func (p *Policy) Judge(host string) *Refusal {
	if p == nil {
		p = &Policy{}
	}
	if address, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return p.judge(host, address)
	}
	if host == "" || looksNumeric(host) {
		return &Refusal{Host: strconv.Quote(host), Why: "it is neither a valid name nor an address such as 10.0.0.1 or [2001:db8::1]"}
	}
	if rule := p.deny.name(host); rule != "" {
		return &Refusal{Host: host, Why: "--" + DenyFlag + " lists " + rule}
	}
	return nil
}

// looksNumeric recognizes names that some systems treat as addresses, such as 127.1 or 0x7f000001:
// the last label is a number.
func looksNumeric(host string) bool {
	host = strings.ToLower(strings.TrimSuffix(host, "."))
	last := host[strings.LastIndexByte(host, '.')+1:]
	digits := "0123456789"
	if hex, ok := strings.CutPrefix(last, "0x"); ok {
		last, digits = hex, digits+"abcdef"
	}
	return strings.Trim(last, digits) == ""
}

// CheckUnresolved checks a name whose addresses are unknown here, because somebody else will
// resolve it.
func (p *Policy) CheckUnresolved(host string) error {
	if err := p.CheckHost(host); err != nil {
		return err
	}
	if p != nil && p.allow.given() && p.allow.name(host) == "" {
		return &Refusal{Host: host, Why: "--" + AllowFlag + " does not list the name, and its address is not known"}
	}
	return nil
}

// Check checks an address that a host resolves to; the host may be the address itself.
func (p *Policy) Check(host string, address netip.Addr) error {
	if refusal := p.judge(host, address); refusal != nil {
		return refusal
	}
	return nil
}

func (p *Policy) judge(host string, address netip.Addr) *Refusal {
	if p == nil {
		p = &Policy{}
	}
	all := meanings(address)
	address = all[0]
	refused := func(format string, args ...any) *Refusal {
		return &Refusal{Host: host, Address: address, Why: fmt.Sprintf(format, args...)}
	}
	isLoopback := false
	for _, a := range all {
		if what := neverOf(a); what != "" {
			return refused("it is %s, which is never allowed", what)
		}
		isLoopback = isLoopback || anyContains(loopback, a)
	}
	rule := p.deny.name(host)
	for _, a := range all {
		if rule == "" {
			rule = p.deny.prefix(a)
		}
	}
	if rule != "" {
		return refused("--%s lists %s", DenyFlag, rule)
	}
	listed := p.allow.prefix(address) != "" || p.allow.name(host) != ""
	switch {
	case isLoopback && p.allow.opensLoopback(address):
		return nil
	case isLoopback && !p.loopback:
		return refused("it is a loopback address, which is allowed only while the server itself listens on loopback alone, or where --%s lists it", AllowFlag)
	case p.allow.given() && !listed:
		return refused("--%s does not list it", AllowFlag)
	}
	return nil
}
