package main

import (
	"crypto/ecdsa"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/scheduler/terraform-provider-scheduler/internal/ca"
)

const (
	// certificateLife is how long certificates are valid; the server warns before the end.
	certificateLife = 365 * 24 * time.Hour
	// authorityLife is the validity of a new authority, which clients must trust.
	authorityLife = 10 * certificateLife
)

func newCertificateCommand() *cobra.Command {
	files := certificateFiles{}
	var hosts []string
	var owner string
	var validFor time.Duration
	cmd := &cobra.Command{
		Use:   "certificate DIR",
		Short: "Issue a certificate for a server",
		Long: `Issue a certificate for a server, NAME.pem with the key NAME-key.pem, from the
certificate authority in the same directory (ca.pem and ca-key.pem). The authority is
created if there is none.

A certificate of the same name is replaced, by one for the same names and addresses
unless others are given. A running server uses the new one without a restart.`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&files.name, "name", "server", "name of the files")
	cmd.Flags().DurationVar(&validFor, "valid-for", certificateLife, "how long the certificate is valid")
	defineIssued(cmd, &hosts, &owner)
	readVariables(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if files.name == "" || files.name == "ca" || files.name != filepath.Base(files.name) || strings.HasPrefix(files.name, ".") {
			return fmt.Errorf("name: %q is not the name of a certificate: use a name such as server, other than ca", files.name)
		}
		if validFor <= 0 {
			return fmt.Errorf("valid-for: %s must be above 0", validFor)
		}
		files.dir = args[0]
		if len(hosts) == 0 {
			hosts = files.currentHosts()
		}
		hosts, err := namedHosts(hosts)
		if err != nil {
			return err
		}
		made := newFiles{}
		if made.owner, err = findOwner(owner); err != nil {
			return err
		}
		if err := made.directory(files.dir, readableDirectory); err != nil {
			return err
		}
		issued, err := files.issue(&made, hosts, time.Now(), validFor)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: for %s; valid until %s\n", files.certificate(), strings.Join(hosts, ", "), issued.NotAfter.UTC().Format(time.DateOnly))
		return err
	}
	return cmd
}

// defineIssued adds the flags that say whom a certificate is for.
func defineIssued(cmd *cobra.Command, hosts *[]string, owner *string) {
	cmd.Flags().StringSliceVar(hosts, "host", nil, "names and addresses at which clients reach the server, in addition to localhost (default the host name and the addresses of this machine)")
	cmd.Flags().StringVar(owner, "user", "", "user that the server runs as, and to whom the files will belong; only root may say so (default who runs the command)")
}

// localHosts are names and addresses of every machine.
var localHosts = []string{"localhost", "127.0.0.1", "::1"}

// namedHosts checks the given names and addresses, or finds those of this machine, and adds the
// local ones.
func namedHosts(given []string) ([]string, error) {
	for _, host := range given {
		if net.ParseIP(host) == nil && len(validation.IsDNS1123Subdomain(host)) > 0 && len(validation.IsWildcardDNS1123Subdomain(host)) > 0 {
			return nil, fmt.Errorf("host: %q is neither a DNS name nor an IP address", host)
		}
	}
	hosts := slices.Clone(given)
	if len(hosts) == 0 {
		var err error
		if hosts, err = foundHosts(); err != nil {
			return nil, err
		}
	}
	for _, host := range localHosts {
		if !slices.Contains(hosts, host) {
			hosts = append(hosts, host)
		}
	}
	return hosts, nil
}

// foundHosts returns the host name, and the addresses at which other machines may reach this one.
func foundHosts() ([]string, error) {
	var hosts []string
	if name, err := os.Hostname(); err == nil && len(validation.IsDNS1123Subdomain(strings.ToLower(name))) == 0 {
		hosts = append(hosts, strings.ToLower(name))
	}
	addresses, err := net.InterfaceAddrs()
	if err != nil {
		return nil, fmt.Errorf("find the addresses of this machine: %w; give --host", err)
	}
	for _, address := range addresses {
		if network, ok := address.(*net.IPNet); ok && network.IP.IsGlobalUnicast() {
			hosts = append(hosts, network.IP.String())
		}
	}
	return hosts, nil
}

// certificateFiles are a certificate, its key, and the authority that issued it, in one directory.
type certificateFiles struct{ dir, name string }

func (f certificateFiles) certificate() string  { return filepath.Join(f.dir, f.name+".pem") }
func (f certificateFiles) key() string          { return filepath.Join(f.dir, f.name+"-key.pem") }
func (f certificateFiles) authority() string    { return filepath.Join(f.dir, "ca.pem") }
func (f certificateFiles) authorityKey() string { return filepath.Join(f.dir, "ca-key.pem") }

func (f certificateFiles) all() []string {
	return []string{f.authority(), f.authorityKey(), f.certificate(), f.key()}
}

// currentHosts returns the names and addresses of the certificate that is there, or none.
func (f certificateFiles) currentHosts() []string {
	pair, err := tls.LoadX509KeyPair(f.certificate(), f.key())
	if err != nil {
		return nil // a new one is issued
	}
	return hostsOf(pair.Leaf)
}

// hostsOf returns the names and addresses that a certificate is for.
func hostsOf(certificate *x509.Certificate) []string {
	hosts := slices.Clone(certificate.DNSNames)
	for _, ip := range certificate.IPAddresses {
		hosts = append(hosts, ip.String())
	}
	return hosts
}

// issue writes a certificate for hosts, and an authority if there is none.
func (f certificateFiles) issue(made *newFiles, hosts []string, now time.Time, life time.Duration) (*x509.Certificate, error) {
	authority, err := f.openAuthority(made, now)
	if err != nil {
		return nil, err
	}
	// Servers also present it to each other.
	usages := []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth}
	issued, err := authority.Issue("scheduler-server", hosts, usages, now, life)
	if err != nil {
		return nil, err
	}
	return issued.Leaf, made.writePair(f.certificate(), f.key(), issued.Leaf, issued.PrivateKey)
}

// openAuthority reads the authority, or makes a new one if there is none.
func (f certificateFiles) openAuthority(made *newFiles, now time.Time) (ca.Authority, error) {
	_, err := os.Stat(f.authority())
	_, keyErr := os.Stat(f.authorityKey())
	if errors.Is(err, fs.ErrNotExist) && errors.Is(keyErr, fs.ErrNotExist) {
		authority, err := ca.New("scheduler-server authority "+now.UTC().Format(time.DateOnly), now, authorityLife)
		if err != nil {
			return ca.Authority{}, err
		}
		return authority, made.writePair(f.authority(), f.authorityKey(), authority.Certificate, authority.Key)
	}
	pair, err := tls.LoadX509KeyPair(f.authority(), f.authorityKey())
	if err != nil {
		return ca.Authority{}, fmt.Errorf("read the certificate authority in %s: %w", f.dir, err)
	}
	key, ok := pair.PrivateKey.(*ecdsa.PrivateKey)
	switch {
	case !ok || !pair.Leaf.IsCA:
		return ca.Authority{}, fmt.Errorf("%s is not a certificate authority with an ECDSA key", f.authority())
	case !now.Before(pair.Leaf.NotAfter):
		return ca.Authority{}, fmt.Errorf("the certificate authority in %s expired on %s: move its files away for a new one, which clients must then trust", f.authority(), pair.Leaf.NotAfter.UTC().Format(time.DateOnly))
	}
	return ca.Authority{Certificate: pair.Leaf, Key: key}, nil
}
