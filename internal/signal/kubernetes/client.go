package kubernetes

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/scheduler/terraform-provider-scheduler/internal/signal/outbound"
)

const (
	// requestsPerSecond and requestsAtOnce bound what one cluster is asked,
	// whatever it answers. The regular course takes a probe per interval.
	requestsPerSecond = 10
	requestsAtOnce    = 20
	// maxAnswer bounds an answer other than a watch: a page of pods takes a few
	// MiB, the discovery document of a cluster with very many types as well.
	maxAnswer = 64 << 20
)

// client is the access to one cluster. It has connections of its own, so that
// closing it ends them and nobody else's.
type client struct {
	http      *http.Client
	transport *http.Transport
	conns     *connections
	base      *url.URL
	core      rest.Interface
	metadata  metadata.Interface
	discovery *discovery.DiscoveryClient
}

// dialer opens connections.
type dialer func(ctx context.Context, network, address string) (net.Conn, error)

func newClient(config *rest.Config, dial dialer) (*client, error) {
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	config.UserAgent = "scheduler-server"
	config.WarningHandlerWithContext = rest.NoWarnings{}
	base, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, invalid("the server of its cluster is not an address")
	}
	trusted, err := rest.TLSConfigFor(config)
	if err != nil {
		return nil, invalid("its certificates or its key cannot be read")
	}
	c := &client{base: base, conns: &connections{dial: dial, open: map[net.Conn]struct{}{}}}
	c.transport = &http.Transport{
		Proxy:                  http.ProxyFromEnvironment,
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
	if config.Proxy != nil {
		c.transport.Proxy = config.Proxy
	}
	authorized, err := rest.HTTPWrappersForConfig(config, boundedTransport{c.transport})
	if err != nil {
		return nil, invalid("its credentials cannot be used together")
	}
	c.http = &http.Client{
		Transport: authorized,
		// A redirect would carry the credentials to wherever it points.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	coreConfig := rest.CopyConfig(config)
	coreConfig.APIPath = "/api"
	coreConfig.GroupVersion = &corev1.SchemeGroupVersion
	coreConfig.NegotiatedSerializer = scheme.Codecs.WithoutConversion()
	coreConfig.ContentType = "application/vnd.kubernetes.protobuf"
	coreConfig.AcceptContentTypes = "application/vnd.kubernetes.protobuf,application/json"
	if c.core, err = rest.RESTClientForConfigAndClient(coreConfig, c.http); err != nil {
		return nil, invalid("it describes no access to a cluster")
	}
	if c.metadata, err = metadata.NewForConfigAndClient(config, c.http); err != nil {
		return nil, invalid("it describes no access to a cluster")
	}
	if c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, c.http); err != nil {
		return nil, invalid("it describes no access to a cluster")
	}
	return c, nil
}

// readyz asks the API server how it is, and returns the status of the answer.
func (c *client) readyz(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.base.JoinPath("readyz").String(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := c.http.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	// Read, so that the connection can be used again; not more than it should be.
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, err
}

// close ends every connection, whatever goes on on it.
func (c *client) close() {
	c.conns.close()
	c.transport.CloseIdleConnections()
}

// connections are the open connections of a client.
type connections struct {
	dial   dialer
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
type boundedTransport struct{ base http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (t boundedTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	resp, err := t.base.RoundTrip(req)
	if err == nil && req.URL.Query().Get("watch") == "" {
		resp.Body = outbound.Bounded(resp.Body, maxAnswer)
	}
	return resp, err
}
