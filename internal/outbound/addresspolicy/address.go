package addresspolicy

import "net/netip"

// class is a range of addresses with one meaning.
type class struct {
	prefix netip.Prefix
	// Description, as a part of a sentence.
	what string
}

const (
	linkLocal   = "a link-local address"
	metadata    = "the address of a cloud's metadata service"
	unspecified = "no address of a host"
	multicast   = "a multicast address"
	broadcast   = "the broadcast address"
)

// never are the addresses that no setting allows. Clouds serve the credentials of the requesting
// machine at link-local addresses; some clouds use additional ones for that.
var never = []class{
	{netip.MustParsePrefix("169.254.0.0/16"), linkLocal},
	{netip.MustParsePrefix("fe80::/10"), linkLocal},
	{netip.MustParsePrefix("100.100.100.200/32"), metadata}, // Alibaba Cloud
	{netip.MustParsePrefix("168.63.129.16/32"), metadata},   // Azure
	{netip.MustParsePrefix("192.0.0.192/32"), metadata},     // Oracle Cloud
	{netip.MustParsePrefix("fd00:ec2::/32"), metadata},      // AWS, with the credentials of containers and of pods
	{netip.MustParsePrefix("fd20:ce::254/128"), metadata},   // Google Cloud
	{netip.MustParsePrefix("fd00:42::42/128"), metadata},    // Scaleway
	{netip.MustParsePrefix("fd00:a9fe:a9fe::/64"), metadata},
	{netip.MustParsePrefix("0.0.0.0/8"), unspecified}, // 0.0.0.0 connects to loopback
	{netip.MustParsePrefix("::/128"), unspecified},
	{netip.MustParsePrefix("224.0.0.0/4"), multicast},
	{netip.MustParsePrefix("ff00::/8"), multicast},
	{netip.MustParsePrefix("255.255.255.255/32"), broadcast},
}

var loopback = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")}

// neverOf describes an address that is never allowed, or returns "".
func neverOf(address netip.Addr) string {
	for _, c := range never {
		if c.prefix.Contains(address) {
			return c.what
		}
	}
	return ""
}

// plain returns an address without its zone, and with IPv4-mapped IPv6 addresses converted to IPv4.
func plain(address netip.Addr) netip.Addr { return address.WithZone("").Unmap() }

// Forms of IPv6 addresses that embed an IPv4 address.
var (
	nat64       = netip.MustParsePrefix("64:ff9b::/96")    // RFC 6052
	localNAT64  = netip.MustParsePrefix("64:ff9b:1::/48")  // RFC 8215
	sixToFour   = netip.MustParsePrefix("2002::/16")       // RFC 3056
	teredo      = netip.MustParsePrefix("2001::/32")       // RFC 4380
	compatible  = netip.MustParsePrefix("::/96")           // RFC 4291
	translation = netip.MustParsePrefix("::ffff:0:0:0/96") // RFC 2765
)

// meanings returns an address and all IPv4 addresses that the network may translate it to.
func meanings(address netip.Addr) []netip.Addr {
	address = plain(address)
	all := []netip.Addr{address}
	if address.Is4() {
		return all
	}
	b := address.As16()
	v4 := func(w, x, y, z byte) { all = append(all, netip.AddrFrom4([4]byte{w, x, y, z})) }
	last := func() { v4(b[12], b[13], b[14], b[15]) }
	switch {
	case nat64.Contains(address), translation.Contains(address):
		last()
	case localNAT64.Contains(address):
		last()
		v4(b[6], b[7], b[9], b[10]) // a prefix of 48 bits
		v4(b[7], b[9], b[10], b[11])
		v4(b[9], b[10], b[11], b[12]) // of 64
	case sixToFour.Contains(address):
		v4(b[2], b[3], b[4], b[5])
	case teredo.Contains(address):
		v4(b[4], b[5], b[6], b[7])
		v4(^b[12], ^b[13], ^b[14], ^b[15])
	case compatible.Contains(address) && address != netip.IPv6Unspecified() && address != netip.IPv6Loopback():
		last()
	}
	// ISATAP, RFC 5214.
	if b[8]&^2 == 0 && b[9] == 0 && b[10] == 0x5e && b[11] == 0xfe {
		last()
	}
	return all
}
