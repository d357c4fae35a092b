package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"sync"
	"syscall"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// Dial opens network connections.
type Dial func(ctx context.Context, network, address string) (net.Conn, error)

// Dialer returns a Dial that connects to what a policy allows. The addresses of a name are checked
// individually when a connection to them is about to be made, so that a name cannot be changed
// after the check, and no packet is sent to a rejected address.
func Dialer(p *addresspolicy.Policy) Dial {
	return func(ctx context.Context, network, address string) (net.Conn, error) {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			return nil, err
		}
		if err := p.CheckHost(host); err != nil {
			return nil, err
		}
		ctx, cancel := context.WithTimeout(ctx, dialTimeout)
		defer cancel()
		slot, err := take(ctx)
		if err != nil {
			return nil, err
		}
		gate := &gate{policy: p, host: host}
		dialer := &net.Dialer{KeepAlive: 30 * time.Second, ControlContext: gate.control}
		conn, err := dialer.DialContext(ctx, network, address)
		if err != nil {
			slot.release()
			return nil, gate.describe(err)
		}
		return &slotted{Conn: conn, slot: slot}, nil
	}
}

// gate checks the addresses of one host. Several may be tried concurrently.
type gate struct {
	policy *addresspolicy.Policy
	host   string

	mu      sync.Mutex
	refused *addresspolicy.Refusal
}

// control is called before every attempt to connect, with the address passed to the operating
// system.
func (g *gate) control(_ context.Context, _, address string, _ syscall.RawConn) error {
	to, err := netip.ParseAddrPort(address)
	if err != nil {
		return errNoAddress // it cannot be checked
	}
	err = g.policy.Check(g.host, to.Addr())
	if refused, ok := errors.AsType[*addresspolicy.Refusal](err); ok {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.refused == nil || refused.Address.Less(g.refused.Address) {
			g.refused = refused
		}
	}
	return err
}

const errNoAddress = Error("this is not an IP address")

// describe returns the error for a name of which no address could be connected to. If several were
// rejected, it is the same one every time, whatever their order.
func (g *gate) describe(err error) error {
	if _, ok := errors.AsType[*addresspolicy.Refusal](err); !ok {
		return err
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.refused
}

// Proxied applies a policy to requests that a proxy forwards: the connection to the proxy is
// checked like every other, and the requested address is checked here. The proxy resolves the name
// itself; so if it cannot be resolved here, only the names in the lists apply.
func Proxied(p *addresspolicy.Policy, choose func(*http.Request) (*url.URL, error)) func(*http.Request) (*url.URL, error) {
	return func(r *http.Request) (*url.URL, error) {
		proxy, err := choose(r)
		if proxy == nil || err != nil {
			return proxy, err
		}
		if err := checkTarget(r.Context(), p, r.URL.Hostname()); err != nil {
			return nil, err
		}
		return proxy, nil
	}
}

func checkTarget(ctx context.Context, p *addresspolicy.Policy, host string) error {
	if err := p.CheckHost(host); err != nil {
		return err
	}
	if _, err := netip.ParseAddr(host); err == nil {
		return nil
	}
	addresses, err := net.DefaultResolver.LookupNetIP(ctx, "ip", host)
	if err != nil || len(addresses) == 0 {
		return p.CheckUnresolved(host)
	}
	for _, address := range addresses {
		if err := p.Check(host, address); err != nil {
			return err
		}
	}
	return nil
}
