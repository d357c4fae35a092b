package storetest

import (
	"crypto/rand"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/certtest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// Addresses returns addresses for n members of a cluster: each has an IP address that no other test
// uses, and from which no connections are made, until the test ends.
func Addresses(t testing.TB, n int) []string {
	t.Helper()
	list := make([]string, n)
	for i := range list {
		var drawn [2]byte
		_, _ = rand.Read(drawn[:]) // never fails
		host := fmt.Sprintf("127.%d.%d.%d", 1+os.Getpid()%250, drawn[0], 1+drawn[1]%250)
		list[i] = proxytest.FreeAddressOn(t, net.ParseIP(host))
	}
	return list
}

// Certificate is a certificate with its key and its authority, in files.
type Certificate struct{ CertFile, KeyFile, CAFile string }

// NewCertificate issues a certificate, with its own authority, for servers at loopback addresses.
func NewCertificate(t testing.TB, addresses ...string) Certificate {
	t.Helper()
	template := certtest.Loopback("scheduler-server")
	for _, address := range addresses {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(host))
	}
	dir := t.TempDir()
	c := Certificate{filepath.Join(dir, "peer.crt"), filepath.Join(dir, "peer.key"), filepath.Join(dir, "ca.crt")}
	authority := certtest.Authority(t)
	authority.Issue(t, template).Write(t, c.CertFile, c.KeyFile)
	certtest.Write(t, c.CAFile, authority.PEM())
	return c
}
