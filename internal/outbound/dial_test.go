package outbound

import (
	"context"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// TestMain disables DNS: only names in the hosts file resolve.
func TestMain(m *testing.M) {
	net.DefaultResolver = &net.Resolver{PreferGo: true, Dial: func(context.Context, string, string) (net.Conn, error) {
		return nil, errors.New("there is no name server")
	}}
	os.Exit(m.Run())
}

// counted starts a server on loopback that counts its connections.
func counted(t *testing.T, handler http.HandlerFunc) (*httptest.Server, *atomic.Int64) {
	t.Helper()
	var connections atomic.Int64
	server := httptest.NewUnstartedServer(handler)
	server.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			connections.Add(1)
		}
	}
	server.Start()
	t.Cleanup(server.Close)
	return server, &connections
}

// TestDialer checks that rejected addresses are rejected in any notation, and that nothing is sent to them. Only
// loopback has listeners; for other addresses the test calls the function that checks every address before connecting.
func TestDialer(t *testing.T) {
	server, connections := counted(t, func(http.ResponseWriter, *http.Request) {})
	_, port, err := net.SplitHostPort(server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	denied, err := addresspolicy.New(addresspolicy.Options{Loopback: true, Deny: []string{"127.0.0.0/8", "::1"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, policy := range []*addresspolicy.Policy{nil, denied} {
		for _, host := range []string{"127.0.0.1", "localhost", "LocalHost", "[::ffff:127.0.0.1]", "0.0.0.0", "[::]", "127.1", "0x7f.1", "0x7f000001", "2130706433", "017700000001", "127.0.0.1.", ""} {
			resp, err := New(policy, Options{}).Get("http://" + host + ":" + port + "/")
			if err == nil {
				_ = resp.Body.Close()
				t.Errorf("connected to %q", host)
				continue
			}
			var refusal *addresspolicy.Refusal
			if !errors.As(err, &refusal) {
				t.Errorf("%q: got %v", host, err)
			} else if Describe(err) != refusal.Error() {
				t.Errorf("%q: described as %q", host, Describe(err))
			}
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections, want none", n)
	}
	resp, err := New(addresspolicy.OnLoopback(), Options{}).Get("http://localhost:" + port)
	if err != nil {
		t.Fatal(err)
	}
	_ = resp.Body.Close()
	if connections.Load() != 1 {
		t.Error("the server does not count its connections")
	}
}

// TestControl checks that a name is judged by each address that it resolves to at that moment.
func TestControl(t *testing.T) {
	g := &gate{policy: addresspolicy.OnLoopback(), host: "rebound.example"}
	for address, refused := range map[string]bool{
		"169.254.169.254:80": true, "[fe80::1%eth0]:80": true, "[::ffff:169.254.169.254]:80": true, "[64:ff9b::a9fe:a9fe]:80": true,
		"[fd00:ec2::254]:80": true, "nonsense": true, "/run/socket": true,
		"198.51.100.7:80": false, "[2001:db8::1]:443": false, "127.0.0.1:80": false,
	} {
		if err := g.control(t.Context(), "tcp", address, nil); (err != nil) != refused {
			t.Errorf("%s: got %v", address, err)
		}
	}
	// The error is the same every time, in whatever order the addresses were tried.
	err := g.describe(&net.OpError{Op: "dial", Err: g.refused})
	if want := "the server must not connect to rebound.example (169.254.169.254): it is a link-local address, which is never allowed"; err.Error() != want {
		t.Errorf("got %q, want %q", err, want)
	}
}

// TestProxied checks that a proxy only gets requests for addresses that the server itself may connect to, and that the
// proxy's own address is checked, too.
func TestProxied(t *testing.T) {
	proxy, connections := counted(t, func(w http.ResponseWriter, r *http.Request) { w.WriteHeader(http.StatusTeapot) })
	to, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	get := func(p *addresspolicy.Policy, address string) error {
		transport := &http.Transport{Proxy: Proxied(p, http.ProxyURL(to)), DialContext: Dialer(p), DisableKeepAlives: true}
		resp, err := (&http.Client{Transport: transport}).Get(address)
		if err == nil {
			_ = resp.Body.Close()
		}
		return err
	}
	limited, err := addresspolicy.New(addresspolicy.Options{Loopback: true, Allow: []string{"127.0.0.1", "good.invalid"}, Deny: []string{"*.good.invalid"}})
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		policy  *addresspolicy.Policy
		address string
		want    string
	}{
		{addresspolicy.OnLoopback(), "http://169.254.169.254/", "never allowed"},
		{addresspolicy.OnLoopback(), "http://[::ffff:169.254.169.254]/", "never allowed"},
		{limited, "http://bad.invalid/", "--outbound-allow does not list the name"},
		{limited, "http://a.good.invalid/", "--outbound-deny lists *.good.invalid"},
		{nil, "http://good.invalid/", "127.0.0.1: it is a loopback address"},
	} {
		if err := get(c.policy, c.address); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v, want %q", c.address, err, c.want)
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d requests to the proxy, want none", n)
	}
	if err := get(limited, "http://good.invalid/"); err != nil || connections.Load() != 1 {
		t.Errorf("listed address: %v, %d connections", err, connections.Load())
	}
}

// TestRedirects checks that only redirects within the same origin are followed.
func TestRedirects(t *testing.T) {
	elsewhere, connections := counted(t, func(http.ResponseWriter, *http.Request) {})
	target := ""
	server, _ := counted(t, func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/" {
			w.Header().Set("Location", target)
			w.WriteHeader(http.StatusTemporaryRedirect)
			return
		}
		if r.Header.Get("X-Secret") != "hush" {
			w.WriteHeader(http.StatusUnauthorized)
		}
	})
	origin, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	client := New(addresspolicy.OnLoopback(), Options{Origin: origin, Headers: map[string]string{"X-Secret": "hush"}})
	for location, want := range map[string]error{
		"/next":                            nil,
		server.URL + "/next":               nil,
		elsewhere.URL + "/":                ErrRedirectedAway, // another port
		"//localhost:" + origin.Port():     ErrRedirectedAway, // another name
		"https://" + origin.Host + "/next": ErrRedirectedAway, // another scheme
		"http://169.254.169.254/":          ErrRedirectedAway,
		"file:///etc/passwd":               ErrRedirectedAway,
		"/":                                ErrRedirects,
	} {
		target = location
		resp, err := client.Get(server.URL + "/")
		if !errors.Is(err, want) {
			t.Errorf("%s: got %v, want %v", location, err, want)
		}
		if err == nil {
			_ = resp.Body.Close()
			if resp.StatusCode != http.StatusOK {
				t.Errorf("%s: got %s, want 200 with the headers", location, resp.Status)
			}
		}
	}
	if n := connections.Load(); n != 0 {
		t.Errorf("%d connections to another server, want none", n)
	}
}
