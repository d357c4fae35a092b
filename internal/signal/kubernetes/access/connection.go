package access

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
)

// Connection is the access to the API server of one cluster. It has network
// connections of its own, so that closing it ends them and nobody else's.
type Connection struct {
	HTTP *http.Client
	Base *url.URL

	transport *http.Transport
	conns     *connections
}

// Open prepares the access that a config describes; nothing is asked yet. maxAnswer
// bounds the answers that are not watches, in bytes. Connections are made by dial,
// to what the policy allows; nil = over the network.
func Open(config *rest.Config, network *netpolicy.Policy, dial outbound.Dial, maxAnswer int64) (*Connection, error) {
	if dial == nil {
		dial = outbound.Dialer(network)
	}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, invalid("the server of its cluster is not an address")
	}
	trusted, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, invalid("its certificates or its key cannot be read")
	}
	c := &Connection{Base: base, conns: &connections{dial: dial, open: map[net.Conn]struct{}{}}}
	c.transport = &http.Transport{
		Proxy:                  outbound.Proxied(network, proxyOf(config)),
		DialContext:            c.conns.connect,
		TLSClientConfig:        trusted,
		ForceAttemptHTTP2:      true,
		TLSHandshakeTimeout:    10 * time.Second,
		MaxConnsPerHost:        16,
		MaxIdleConnsPerHost:    4,
		IdleConnTimeout:        90 * time.Second,
		MaxResponseHeaderBytes: 64 << 10,
		// A connection whose other end is gone without a word ends by itself,
		// and the watches on it with it.
		HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
	}
	authorized, err := rest.HTTPWrappersForConfig(config, boundedTransport{c.transport, maxAnswer})
	if err != nil {
		return nil, invalid("its credentials cannot be used together")
	}
	c.HTTP = &http.Client{
		Transport: authorized,
		// A redirect would carry the credentials to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	return c, nil
}

// proxyOf is the proxy that the config names, else that of the environment.
func proxyOf(config *rest.Config) func(*http.Request) (*url.URL, error) {
	if config.Proxy != nil {
		return config.Proxy
	}
	return http.ProxyFromEnvironment
}

// Incomplete is the error about a config from which no client can be made.
func Incomplete() error { return invalid("it describes no access to a cluster") }

// Close ends every network connection, whatever goes on on it.
func (c *Connection) Close() {
	c.conns.close()
	c.transport.CloseIdleConnections()
}

// connections are the open network connections.
type connections struct {
	dial   outbound.Dial
	mu     sync.Mutex
	closed bool
	open   map[net.Conn]struct{}
}

func (c *connections) connect(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := c.dial(ctx, network, address)
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close() // nobody uses it
		return nil, net.ErrClosed
	}
	tracked := &connection{Conn: conn, of: c}
	c.open[tracked] = struct{}{}
	return tracked, nil
}

func (c *connections) close() {
	c.mu.Lock()
	c.closed = true
	open := c.open
	c.open = map[net.Conn]struct{}{}
	c.mu.Unlock()
	for conn := range open {
		_ = conn.Close() // whatever was under way on it has ended
	}
}

// connection leaves the open ones when it is closed.
type connection struct {
	net.Conn
	of *connections
}

// Close implements net.Conn.
func (c *connection) Close() error {
	c.of.mu.Lock()
	delete(c.of.open, c)
	c.of.mu.Unlock()
	return c.Conn.Close()
}

// boundedTransport bounds the bodies of answers other than watches, which have a
// bound per event.
type boundedTransport struct {
	base http.RoundTripper
	max  int64
}

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") == "" {
		resp.Body = outbound.Bounded(resp.Body, t.max)
	}
	return resp, err
}
