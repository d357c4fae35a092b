package kube

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"k8s.io/client-go/rest"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// Clusters manages the connections to clusters: one for each, shared by all users.
type Clusters struct {
	// Tracer makes traces of the requests that belong to none. Nil = there are none. It must be set before the
	// first connection.
	Tracer *tracing.Tracer

	network *addresspolicy.Policy
	dial    outbound.Dial

	mu   sync.Mutex
	open map[access]*network
}

// access identifies a connection. Clusters with the same kubeconfig do not share a connection, and
// neither do an old and a new kubeconfig of one cluster.
type access struct {
	cluster    string
	kubeconfig api.Secret
}

// network holds the network connections of a cluster, and the number of users.
type network struct {
	transport *http.Transport
	conns     *connections
	users     int
}

// New returns Clusters without connections. Connections are made by dial to what the policy allows;
// nil means the network.
func New(policy *addresspolicy.Policy, dial outbound.Dial) *Clusters {
	if dial == nil {
		dial = outbound.Dialer(policy)
	}
	return &Clusters{network: policy, dial: dial, open: map[access]*network{}}
}

// Connection is the access to the API server of one cluster.
type Connection struct {
	HTTP *http.Client
	Base *url.URL

	close func()
}

// Open prepares the access to a cluster with a kubeconfig, without making a request. maxAnswer
// limits the size of responses other than watches, in bytes.
func (c *Clusters) Open(cluster string, kubeconfig api.Secret, maxAnswer int64) (*rest.Config, *Connection, error) {
	config, err := Load(kubeconfig)
	if err != nil {
		return nil, nil, err
	}
	config.UserAgent = "scheduler-server"
	config.WarningHandlerWithContext = rest.NoWarnings{}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, nil, invalid("the server of its cluster is not an address")
	}
	key := access{cluster, kubeconfig}
	n, err := c.enter(key, config)
	if err != nil {
		return nil, nil, err
	}
	open, end := context.WithCancel(context.Background())
	leave := sync.OnceFunc(func() { end(); c.leave(key, n) })
	authorized, err := rest.HTTPWrappersForConfig(config, boundedTransport{endingTransport{tracing.Client(n.transport, c.Tracer), open}, maxAnswer})
	if err != nil {
		leave()
		return nil, nil, invalid("its credentials cannot be used together")
	}
	return config, &Connection{Base: base, close: leave, HTTP: &http.Client{
		Transport: authorized,
		// A redirect would send the credentials elsewhere.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}}, nil
}

// enter returns the network connections of a cluster after adding a user.
func (c *Clusters) enter(key access, config *rest.Config) (*network, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := c.open[key]
	if n == nil {
		trusted, err := rest.TLSConfigFor(config)
		if err != nil {
			return nil, invalid("its certificates or its key cannot be read")
		}
		conns := &connections{dial: c.dial, open: map[net.Conn]struct{}{}}
		n = &network{conns: conns, transport: &http.Transport{
			Proxy:               outbound.Proxied(c.network, proxyOf(config)),
			DialContext:         conns.connect,
			TLSClientConfig:     trusted,
			ForceAttemptHTTP2:   true,
			TLSHandshakeTimeout: 10 * time.Second,
			// Without HTTP/2, each watch needs its own connection.
			MaxConnsPerHost:        32,
			MaxIdleConnsPerHost:    4,
			IdleConnTimeout:        90 * time.Second,
			MaxResponseHeaderBytes: 64 << 10,
			// A connection whose peer is gone silently is closed, together with its watches.
			HTTP2: &http.HTTP2Config{SendPingTimeout: 30 * time.Second, PingTimeout: 15 * time.Second},
		}}
		c.open[key] = n
	}
	n.users++
	return n, nil
}

// leave removes a user, and closes the connections with the last one.
func (c *Clusters) leave(key access, n *network) {
	c.mu.Lock()
	n.users--
	last := n.users == 0
	if last {
		delete(c.open, key)
	}
	c.mu.Unlock()
	if last {
		n.conns.close()
		n.transport.CloseIdleConnections()
	}
}

// proxyOf returns the proxy of the config or, by default, that of the environment.
func proxyOf(config *rest.Config) func(*http.Request) (*url.URL, error) {
	if config.Proxy != nil {
		return config.Proxy
	}
	return http.ProxyFromEnvironment
}

// Incomplete returns the error about a config from which no client can be created.
func Incomplete() error { return invalid("it describes no access to a cluster") }

// Close cancels all requests of this connection, and nobody else's.
func (c *Connection) Close() { c.close() }

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
		_ = conn.Close() // not in use
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
		_ = conn.Close() // all requests on it have ended
	}
}

// connection removes itself from the open connections when it is closed.
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

// boundedTransport limits the size of responses other than watches, which have a limit per event.
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

// endingTransport cancels requests, including reading their responses, when its context is done.
type endingTransport struct {
	base http.RoundTripper
	open context.Context
}

// RoundTrip implements http.RoundTripper.
func (t endingTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	if t.open.Err() != nil {
		if req.Body != nil {
			_ = req.Body.Close() // not read
		}
		return nil, net.ErrClosed
	}
	ctx, cancel := context.WithCancel(req.Context())
	stop := context.AfterFunc(t.open, cancel) //nolint:contextcheck // the transport's lifetime, which ends its requests
	resp, err := t.base.RoundTrip(req.WithContext(ctx))
	if err != nil {
		stop()
		cancel()
		return nil, err
	}
	resp.Body = endingBody{resp.Body, func() { stop(); cancel() }}
	return resp, nil
}

// endingBody is a body that ends its request when it is closed.
type endingBody struct {
	io.ReadCloser
	end func()
}

// Close implements io.Closer.
func (b endingBody) Close() error {
	defer b.end()
	return b.ReadCloser.Close()
}
