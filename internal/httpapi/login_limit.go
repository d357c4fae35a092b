package httpapi

import (
	"net"
	"net/netip"
	"sync"

	"golang.org/x/time/rate"
)

// loginLimit slows down failed logins, by client address.
type loginLimit struct {
	rate  rate.Limit
	burst int

	mu        sync.Mutex
	byAddress map[string]*rate.Limiter
}

// maxLimiters bounds the memory that clients with many addresses can take. Where
// there are more, the record starts anew: that grants a few more guesses at 256
// random bits.
const maxLimiters = 10_000

func newLoginLimit(perSecond float64, burst int) *loginLimit {
	return &loginLimit{rate: rate.Limit(perSecond), burst: burst, byAddress: map[string]*rate.Limiter{}}
}

// allow counts one failed login and reports whether the client still gets an
// answer to it.
func (l *loginLimit) allow(remoteAddress string) bool {
	address := clientIP(remoteAddress)
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.byAddress[address]
	if limiter == nil {
		if len(l.byAddress) >= maxLimiters {
			clear(l.byAddress)
		}
		limiter = rate.NewLimiter(l.rate, l.burst)
		l.byAddress[address] = limiter
	}
	return limiter.Allow()
}

// clientIP is the address that limits count by: the host of an IPv4 client, the
// /64 network of an IPv6 client, which can choose any address in it.
func clientIP(remoteAddress string) string {
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
