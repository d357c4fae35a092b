package ca

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"testing"
	"time"
)

func TestCertificatesAreTrustedForTheirHostsAndUse(t *testing.T) {
	now := time.Now()
	authority, err := New("test authority", now, 30*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	issued, err := authority.Issue("server", []string{"a.example.com", "10.1.2.3", "2001:db8::1"}, []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, now, 365*24*time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.Certificate)
	for _, c := range []struct {
		name    string
		options x509.VerifyOptions
		trusted bool
	}{
		{"name", x509.VerifyOptions{DNSName: "a.example.com"}, true},
		{"address", x509.VerifyOptions{DNSName: "10.1.2.3"}, true},
		{"IPv6 address", x509.VerifyOptions{DNSName: "2001:db8::1"}, true},
		{"another name", x509.VerifyOptions{DNSName: "b.example.com"}, false},
		{"a clock that is behind", x509.VerifyOptions{DNSName: "a.example.com", CurrentTime: now.Add(-Skew / 2)}, true},
		{"after the authority", x509.VerifyOptions{DNSName: "a.example.com", CurrentTime: now.Add(31 * 24 * time.Hour)}, false},
		{"another use", x509.VerifyOptions{KeyUsages: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}}, false},
	} {
		c.options.Roots = roots
		if _, err := issued.Leaf.Verify(c.options); (err == nil) != c.trusted {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	if !issued.Leaf.NotAfter.Equal(authority.Certificate.NotAfter) {
		t.Errorf("valid until %s, after its authority: %s", issued.Leaf.NotAfter, authority.Certificate.NotAfter)
	}
}

func TestEncodedPairsAreRead(t *testing.T) {
	authority, err := New("test authority", time.Now(), time.Hour)
	if err != nil {
		t.Fatal(err)
	}
	key, err := EncodeKey(authority.Key)
	if err != nil {
		t.Fatal(err)
	}
	pair, err := tls.X509KeyPair(EncodeCertificate(authority.Certificate), key)
	if err != nil {
		t.Fatal(err)
	}
	if read, ok := pair.PrivateKey.(*ecdsa.PrivateKey); !ok || !read.Equal(authority.Key) || !pair.Leaf.Equal(authority.Certificate) {
		t.Error("another authority was read than was written")
	}
}
