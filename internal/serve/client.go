package serve

import (
	"net"
	"net/netip"
)

// ClientOf returns the key by which connections and requests of a client are counted: the host of
// an IPv4 client, or the /64 network of an IPv6 client, which can use any address in it.
func ClientOf(remoteAddress string) string {
	host, _, err := net.SplitHostPort(remoteAddress)
	if err != nil {
		return remoteAddress
	}
	address, err := netip.ParseAddr(host)
	if err != nil {
		return host
	}
	address = address.Unmap().WithZone("")
	if address.Is6() && !address.IsLoopback() {
		if network, err := address.Prefix(64); err == nil {
			return network.String()
		}
	}
	return address.String()
}
