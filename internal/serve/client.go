package serve

import (
	"net"
	"net/netip"
)

// ClientOf is whose connections and requests are counted together: the host of an IPv4 client, the
// /64 network of an IPv6 client, which can choose any address in it.
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
