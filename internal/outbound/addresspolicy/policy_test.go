package addresspolicy

import (
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func mustNew(t *testing.T, o Options) *Policy {
	t.Helper()
	p, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// TestNever: no setting opens link-local addresses and those of metadata services,
// in whatever form of address they are written.
func TestNever(t *testing.T) {
	everything := mustNew(t, Options{Loopback: true, Allow: []string{"0.0.0.0/0", "::/0", "127.0.0.0/8", "::1", "metadata.example", "*.example"}})
	for _, address := range []string{
		"169.254.169.254", "169.254.0.1", "169.254.170.2", "fe80::1", "fe80::a9fe:a9fe", "fe80::1%eth0", "febf::1",
		"100.100.100.200", "168.63.129.16", "192.0.0.192", "fd00:ec2::254", "fd00:ec2::23", "fd20:ce::254", "fd00:42::42", "fd00:a9fe:a9fe::1",
		"0.0.0.0", "0.1.2.3", "::", "224.0.0.1", "239.255.255.250", "ff02::1", "255.255.255.255",
		"::ffff:169.254.169.254", "::ffff:0.0.0.0", "::ffff:100.100.100.200%eth0",
		"::169.254.169.254", "::ffff:0:169.254.169.254",
		"64:ff9b::169.254.169.254", "64:ff9b:1::169.254.169.254", "64:ff9b:1:a9fe:a9:fe00::",
		"2002:a9fe:a9fe::1", "2002:a83f:8110::",
		"2001:0:a9fe:a9fe::1", "2001:0:808:808:0:0:5601:5601",
		"2001:db8::5efe:169.254.169.254", "2001:db8::200:5efe:169.254.169.254",
	} {
		for _, p := range []*Policy{nil, {}, OnLoopback(), everything} {
			for _, host := range []string{address, "metadata.example"} {
				err := p.Check(host, netip.MustParseAddr(address))
				if err == nil || !strings.Contains(err.Error(), "which is never allowed") {
					t.Errorf("%s as %s: got %v", address, host, err)
				}
			}
			if err := p.CheckHost(address); err == nil {
				t.Errorf("CheckHost(%s) succeeded", address)
			}
		}
	}
}

// TestNeverCannotBeAllowed: whoever lists such an address learns at the start that it
// has no effect.
func TestNeverCannotBeAllowed(t *testing.T) {
	for _, entry := range []string{"169.254.169.254", "169.254.0.0/16", "169.254.1.0/24", "fe80::/64", "::ffff:169.254.169.254", "fd00:ec2::254", "0.0.0.0", "224.0.0.0/8", "100.100.100.200/32"} {
		if _, err := New(Options{Allow: []string{"10.0.0.0/8", entry}}); err == nil || !strings.Contains(err.Error(), "outbound-allow: ") || !strings.Contains(err.Error(), "never connects to") {
			t.Errorf("%s: got %v", entry, err)
		}
		if _, err := New(Options{Deny: []string{entry}}); err != nil {
			t.Errorf("New() rejects the denied entry %s: %v", entry, err)
		}
	}
}

func TestCheck(t *testing.T) {
	for _, c := range []struct {
		name    string
		options Options
		host    string // the address, if empty
		address string
		want    string // part of the error; empty = allowed
	}{
		{"public", Options{}, "", "198.51.100.7", ""},
		{"private", Options{}, "", "10.1.2.3", ""},
		{"unique local", Options{}, "", "fd12::1", ""},
		{"loopback, server on a public address", Options{}, "", "127.0.0.1", "while the server itself listens on loopback alone, or where --outbound-allow lists it"},
		{"loopback by name", Options{}, "localhost", "127.0.0.1", "localhost (127.0.0.1): it is a loopback address"},
		{"loopback of IPv6", Options{}, "", "::1", "loopback"},
		{"loopback in another form", Options{}, "", "::ffff:127.0.0.1", "loopback"},
		{"loopback through NAT64", Options{}, "", "64:ff9b::127.0.0.1", "loopback"},
		{"any loopback address", Options{}, "", "127.255.1.2", "loopback"},
		{"loopback, server on loopback", Options{Loopback: true}, "", "127.0.0.1", ""},
		{"loopback of IPv6, server on loopback", Options{Loopback: true}, "", "::1", ""},
		{"loopback allowed", Options{Allow: []string{"127.0.0.0/8"}}, "", "127.0.0.1", ""},
		{"one loopback address allowed", Options{Allow: []string{"127.0.0.1"}}, "localhost", "127.0.0.1", ""},
		{"other loopback address", Options{Allow: []string{"127.0.0.1"}}, "", "127.0.0.2", "loopback"},
		{"allowing everything excludes loopback", Options{Allow: []string{"0.0.0.0/0", "::/0"}}, "", "127.0.0.1", "loopback"},
		{"an allowed name excludes loopback", Options{Allow: []string{"*.example.com"}}, "a.example.com", "127.0.0.1", "loopback"},
		{"not in the allowed list", Options{Allow: []string{"10.0.0.0/8"}}, "", "192.0.2.1", "--outbound-allow does not list it"},
		{"not in the allowed list, loopback", Options{Loopback: true, Allow: []string{"10.0.0.0/8"}}, "", "127.0.0.1", "--outbound-allow does not list it"},
		{"listed range", Options{Allow: []string{"10.0.0.0/8"}}, "prometheus", "10.1.2.3", ""},
		{"listed name", Options{Allow: []string{"Prometheus.Example.com."}}, "prometheus.example.COM", "10.1.2.3", ""},
		{"listed suffix", Options{Allow: []string{"*.example.com"}}, "a.b.example.com.", "10.1.2.3", ""},
		{"suffix itself", Options{Allow: []string{"*.example.com"}}, "example.com", "10.1.2.3", "does not list it"},
		{"not below the suffix", Options{Allow: []string{"*.example.com"}}, "badexample.com", "10.1.2.3", "does not list it"},
		{"denied range", Options{Deny: []string{"10.0.0.0/8"}}, "prometheus", "10.1.2.3", "prometheus (10.1.2.3): --outbound-deny lists 10.0.0.0/8"},
		{"denied, other form", Options{Deny: []string{"10.0.0.0/8"}}, "", "64:ff9b::10.1.2.3", "--outbound-deny lists 10.0.0.0/8"},
		{"denied name", Options{Deny: []string{"*.corp"}}, "a.corp", "198.51.100.7", "--outbound-deny lists *.corp"},
		{"deny takes precedence", Options{Allow: []string{"10.0.0.0/8"}, Deny: []string{"10.1.0.0/16"}}, "", "10.1.2.3", "--outbound-deny lists 10.1.0.0/16"},
		{"deny takes precedence over allowed names", Options{Allow: []string{"a.corp"}, Deny: []string{"10.1.0.0/16"}}, "a.corp", "10.1.2.3", "--outbound-deny"},
		{"denied loopback", Options{Loopback: true, Deny: []string{"127.0.0.0/8"}}, "", "127.0.0.1", "--outbound-deny lists 127.0.0.0/8"},
		{"range with host bits", Options{Deny: []string{"10.1.2.3/8"}}, "", "10.200.0.1", "--outbound-deny lists 10.0.0.0/8"},
		{"range of mapped addresses", Options{Deny: []string{"::ffff:10.0.0.0/104"}}, "", "10.200.0.1", "--outbound-deny lists 10.0.0.0/8"},
	} {
		t.Run(c.name, func(t *testing.T) {
			host := c.host
			if host == "" {
				host = c.address
			}
			err := mustNew(t, c.options).Check(host, netip.MustParseAddr(c.address))
			switch {
			case c.want == "" && err != nil:
				t.Errorf("rejected: %v", err)
			case c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)):
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

// TestCheckUnresolved checks that a name that only a proxy can resolve is judged by the name.
func TestCheckUnresolved(t *testing.T) {
	for _, c := range []struct {
		options Options
		host    string
		allowed bool
	}{
		{Options{}, "a.corp", true},
		{Options{}, "169.254.169.254", false},
		{Options{Deny: []string{"a.corp"}}, "a.corp", false},
		{Options{Allow: []string{"a.corp"}}, "a.corp", true},
		{Options{Allow: []string{"10.0.0.0/8"}}, "a.corp", false},
	} {
		if err := mustNew(t, c.options).CheckUnresolved(c.host); (err == nil) != c.allowed {
			t.Errorf("%+v, %s: got %v", c.options, c.host, err)
		}
	}
}

func TestRules(t *testing.T) {
	for _, entry := range []string{"", " ", "http://a", "a:80", "10.0.0.0/33", "10.0.0", "0x7f.1", "2130706433", "*", "*.", "a.*", "**.a", "-a", "a..b", "fe80::1%eth0", "10.0.0.1-10.0.0.9", "a b"} {
		if _, err := New(Options{Deny: []string{entry}}); err == nil || !strings.Contains(err.Error(), "outbound-deny: ") {
			t.Errorf("%q: got %v", entry, err)
		}
	}
	for _, entry := range []string{"localhost", "LOCALHOST", "a.b", "*.b", "a_b.c", "xn--mnchen-3ya.de", "[::1]", "10.0.0.1", "a1", "1a.com", "3com.com"} {
		if _, err := New(Options{Deny: []string{entry}}); err != nil {
			t.Errorf("%q: %v", entry, err)
		}
	}
}

func TestCheckHost(t *testing.T) {
	p := mustNew(t, Options{Deny: []string{"*.corp", "10.0.0.0/8"}})
	for host, want := range map[string]string{
		"prometheus": "", "a.example.com": "", "a.example.com.": "", "198.51.100.7": "", "[2001:db8::1]": "", "2001:db8::1": "", "3com.com": "", "a.1b": "", "bad.cafe": "",
		"": `must not connect to "": it is neither a valid name nor an address`, "127.1": "neither a valid name", "0x7f.1": "neither a valid name", "0x7F.0x1": "neither a valid name",
		"2130706433": "neither a valid name", "127.0.0.1.": "neither a valid name", "010.0.0.1": "neither a valid name", "1.2.3.4.5": "neither a valid name", ".": "neither a valid name", "a.0x": "neither a valid name",
		"a.corp": "--outbound-deny lists *.corp", "10.1.2.3": "--outbound-deny lists 10.0.0.0/8", "[::ffff:10.1.2.3]": "--outbound-deny lists 10.0.0.0/8",
	} {
		if err := p.CheckHost(host); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %v, want %q", host, err, want)
		}
	}
}

// TestGuide: the guide lists every range that is never connected to.
func TestGuide(t *testing.T) {
	guide, err := os.ReadFile(filepath.Join("..", "..", "..", "templates", "guides", "outbound.md.tmpl"))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range never {
		if !strings.Contains(string(guide), "`"+show(c.prefix)+"`") {
			t.Errorf("the guide does not contain %s", show(c.prefix))
		}
	}
}
