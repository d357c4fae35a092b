package store

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"sync"
	"time"

	"go.etcd.io/etcd/client/pkg/v3/transport"
	"go.etcd.io/etcd/client/pkg/v3/types"
	"go.etcd.io/etcd/server/v3/etcdserver/api/membership"
)

// Cluster configures the embedded members of several servers as one etcd cluster.
type Cluster struct {
	// Name is this server's name in Peers.
	Name string
	// Peers are the initial members of the cluster, or the members that a new member contacts. They
	// include this server.
	Peers []Peer
	// Listen is the address for connections from the other members: host:port. Default: that of the
	// server's own URL.
	Listen string
	// Join makes a server with an empty data directory wait for the existing cluster instead of
	// creating a new one.
	Join bool
	// CertFile and KeyFile are presented to the other members, whose certificates must chain to
	// CAFile. They are read again for every connection.
	CertFile, KeyFile, CAFile string
}

// Peer is a member with the name and address by which the others know it.
type Peer struct{ Name, URL string }

// String returns the peer in the form of the settings.
func (p Peer) String() string { return p.Name + "=" + p.URL }

// ParsePeer parses name=https://host:port.
func ParsePeer(text string) (Peer, error) {
	name, address, ok := strings.Cut(text, "=")
	if !ok || name == "" || strings.ContainsAny(name, ", \t\n/") {
		return Peer{}, fmt.Errorf("%q is not of the form name=https://host:port", text)
	}
	u, err := url.Parse(address)
	switch {
	case err != nil, u.Scheme != "https" && u.Scheme != "http", u.Hostname() == "", u.User != nil, u.Path != "", u.RawQuery != "", u.Fragment != "":
		return Peer{}, fmt.Errorf("%q: the address of %s is not of the form https://host:port", text, name)
	case u.Port() == "" || u.Port() == "0":
		return Peer{}, fmt.Errorf("%q: the address of %s needs a port", text, name)
	case u.Scheme == "http" && !isLoopbackHost(u.Hostname()):
		return Peer{}, fmt.Errorf("%q: plain HTTP is for loopback addresses only: everything that is stored passes there; write https", text)
	}
	return Peer{name, address}, nil
}

func isLoopbackHost(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// Check validates the settings of a cluster.
func (c *Cluster) Check() error {
	var errs []error
	names, addresses := map[string]bool{}, map[string]bool{}
	schemes := map[string]bool{}
	for _, p := range c.Peers {
		if _, err := ParsePeer(p.String()); err != nil {
			errs = append(errs, err)
			continue
		}
		if names[p.Name] {
			errs = append(errs, fmt.Errorf("the name %s is listed twice", p.Name))
		}
		if addresses[p.URL] {
			errs = append(errs, fmt.Errorf("the address %s is listed twice", p.URL))
		}
		names[p.Name], addresses[p.URL] = true, true
		scheme, _, _ := strings.Cut(p.URL, ":")
		schemes[scheme] = true
	}
	if len(errs) > 0 {
		return errors.Join(errs...)
	}
	if !names[c.Name] {
		return fmt.Errorf("this server, %q, is not in the list, which has %s: give it the name that it has there, or add it", c.Name, peerList(c.Peers))
	}
	if len(schemes) > 1 {
		return errors.New("some addresses have https and others http: a cluster must use one of them")
	}
	if c.Join && len(c.Peers) < 2 {
		return fmt.Errorf("to join a cluster, the list needs a member of it besides %s", c.own())
	}
	if c.Listen != "" {
		if _, port, err := net.SplitHostPort(c.Listen); err != nil || port == "" || port == "0" {
			return fmt.Errorf("the address to listen on, %q, is not of the form host:port", c.Listen)
		}
		if host, _, _ := net.SplitHostPort(c.Listen); !c.Secure() && !isLoopbackHost(host) {
			return fmt.Errorf("the address to listen on, %q, is not a loopback address: plain HTTP is for those only", c.Listen)
		}
	}
	return nil
}

// Secure reports whether members communicate over TLS.
func (c *Cluster) Secure() bool { return c.scheme() == "https" }

func (c *Cluster) scheme() string {
	scheme, _, _ := strings.Cut(c.own().URL, ":")
	return scheme
}

// own returns this server.
func (c *Cluster) own() Peer {
	i := slices.IndexFunc(c.Peers, func(p Peer) bool { return p.Name == c.Name })
	return c.Peers[max(i, 0)]
}

// addresses returns the addresses of all peers.
func (c *Cluster) addresses() []string {
	all := make([]string, len(c.Peers))
	for i, p := range c.Peers {
		all[i] = p.URL
	}
	slices.Sort(all)
	return all
}

// listenURL returns the address on which this member listens.
func (c *Cluster) listenURL(ctx context.Context) (url.URL, error) {
	own, err := url.Parse(c.own().URL)
	if err != nil {
		return url.URL{}, err
	}
	address := cmp.Or(c.Listen, own.Host)
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return url.URL{}, err
	}
	if net.ParseIP(host) == nil && host != "localhost" && host != "" {
		// etcd listens on IP addresses, and a host name may have several.
		ips, err := net.DefaultResolver.LookupIPAddr(ctx, host)
		if err != nil {
			return url.URL{}, fmt.Errorf("the address at which the other members reach this one: %w", err)
		}
		address = net.JoinHostPort(ips[0].String(), port)
	}
	return url.URL{Scheme: own.Scheme, Host: address}, nil
}

// tls returns the TLS configuration for connections between members.
func (c *Cluster) tls() transport.TLSInfo {
	if !c.Secure() {
		return transport.TLSInfo{}
	}
	return transport.TLSInfo{CertFile: c.CertFile, KeyFile: c.KeyFile, TrustedCAFile: c.CAFile, ClientCertAuth: true}
}

func peerList(peers []Peer) string {
	texts := make([]string, len(peers))
	for i, p := range peers {
		texts[i] = p.String()
	}
	return strings.Join(texts, ",")
}

// view is the cluster as reported by one of its members.
type view struct {
	from    Peer
	cluster types.ID
	members []*membership.Member
}

// member returns the member with an address, or nil.
func (v *view) member(address string) *membership.Member {
	i := slices.IndexFunc(v.members, func(m *membership.Member) bool { return slices.Contains(m.PeerURLs, address) })
	if i < 0 {
		return nil
	}
	return v.members[i]
}

// byID returns the member with an ID, or nil.
func (v *view) byID(id types.ID) *membership.Member {
	i := slices.IndexFunc(v.members, func(m *membership.Member) bool { return m.ID == id })
	if i < 0 {
		return nil
	}
	return v.members[i]
}

// addresses returns the addresses of all members.
func (v *view) addresses() []string {
	var all []string
	for _, m := range v.members {
		all = append(all, m.PeerURLs...)
	}
	slices.Sort(all)
	return all
}

func (v *view) list() string { return memberList(v.members) }

func memberList(members []*membership.Member) string {
	texts := make([]string, len(members))
	for i, m := range members {
		texts[i] = m.Name + "=" + strings.Join(m.PeerURLs, "+")
	}
	slices.Sort(texts)
	return strings.Join(texts, ",")
}

// wasReady reports whether a member has ever been ready: it publishes its client address when it
// joins, not before.
func wasReady(m *membership.Member) bool { return len(m.ClientURLs) > 0 }

// askPatience is the timeout for asking a member about its cluster.
const askPatience = 2 * time.Second

// neighbours asks the other members about the cluster. It needs neither a quorum nor a running
// member here.
type neighbours struct {
	cluster *Cluster
	client  *http.Client
	peers   []Peer
}

// newNeighbours knows the members in the settings and those recorded in the data directory.
func newNeighbours(c *Cluster, noted []*membership.Member) (*neighbours, error) {
	t, err := transport.NewTransport(c.tls(), askPatience)
	if err != nil {
		return nil, fmt.Errorf("the certificate for the other members of the cluster: %w", err)
	}
	t.DisableKeepAlives = true
	n := &neighbours{cluster: c, client: &http.Client{Transport: t, Timeout: askPatience}, peers: slices.Clone(c.Peers)}
	for _, m := range noted {
		for _, address := range m.PeerURLs {
			if u, err := url.Parse(address); err == nil && u.Scheme == c.scheme() {
				n.peers = append(n.peers, Peer{m.Name, address})
			}
		}
	}
	slices.SortFunc(n.peers, func(a, b Peer) int { return cmp.Or(cmp.Compare(a.URL, b.URL), cmp.Compare(a.Name, b.Name)) })
	n.peers = slices.CompactFunc(n.peers, func(a, b Peer) bool { return a.URL == b.URL })
	n.peers = slices.DeleteFunc(n.peers, func(p Peer) bool { return p.URL == c.own().URL })
	return n, nil
}

// ask asks all members concurrently. silent contains the errors of those that do not respond.
func (n *neighbours) ask(ctx context.Context) (views []*view, silent []error) {
	answers, failures := make([]*view, len(n.peers)), make([]error, len(n.peers))
	var all sync.WaitGroup
	for i, p := range n.peers {
		all.Go(func() {
			v, err := n.askOne(ctx, p)
			if err != nil {
				failures[i] = fmt.Errorf("%s: %w", p, err)
				return
			}
			answers[i] = v
		})
	}
	all.Wait()
	for i := range n.peers {
		if answers[i] != nil {
			views = append(views, answers[i])
		} else {
			silent = append(silent, failures[i])
		}
	}
	return views, silent
}

// maxMembers limits the size of a member's response.
const maxMembers = 1 << 20

func (n *neighbours) askOne(ctx context.Context, p Peer) (*view, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.URL+"/members", http.NoBody)
	if err != nil {
		return nil, err
	}
	resp, err := n.client.Do(request)
	if err != nil {
		if u, ok := errors.AsType[*url.Error](err); ok {
			err = u.Err
		}
		return nil, err
	}
	defer resp.Body.Close()
	v := &view{from: p}
	if v.cluster, err = types.IDFromString(resp.Header.Get("X-Etcd-Cluster-Id")); err != nil {
		return nil, errors.New("what answers there is not a member of a cluster")
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, maxMembers)).Decode(&v.members); err != nil {
		return nil, fmt.Errorf("the response cannot be read: %w", err)
	}
	return v, nil
}

// adviceReplace says how a former member can rejoin.
func (c *Cluster) adviceReplace() string {
	own := c.own()
	return fmt.Sprintf(`to have it back, empty its data directory, run "scheduler-server members add %s" against another server, and start it as that says`, own)
}

// adviceReplaceMember says how a member whose data cannot be used can take part again.
func (c *Cluster) adviceReplaceMember() string {
	own := c.own()
	return fmt.Sprintf(`run "scheduler-server members remove %s" against another server, empty this data directory, run "scheduler-server members add %s" against another server, and start this one as that says; if those that are left are too few to change members, go on with a backup of one of them`, own.Name, own)
}

// refuse returns an error if this member, whose data directory is initialized, must not take part
// in the cluster that others know.
func (c *Cluster) refuse(dataDir string, cluster, id types.ID, views []*view) error {
	own := c.own()
	for _, v := range views {
		if v.cluster != cluster {
			return fmt.Errorf("%w: the data directory %s belongs to the cluster %s, and %s to the cluster %s (%s): check --cluster-peers and --data-dir; %s",
				errForeign, dataDir, cluster, v.from, v.cluster, v.list(), c.adviceReplace())
		}
		m := v.byID(id)
		switch other := v.member(own.URL); {
		case m == nil:
			return fmt.Errorf("%w: %s was removed from the cluster, as %s says: %s", errRemoved, own.Name, v.from, c.adviceReplace())
		case other != nil && other.ID != id, m.Name != own.Name && slices.ContainsFunc(c.Peers, func(p Peer) bool { return p.Name == m.Name }):
			return fmt.Errorf("%w: the data directory %s is not the one of %s: check --cluster-peers and --data-dir; %s", errForeign, dataDir, own, c.adviceReplace())
		}
	}
	return nil
}

// founding is how an empty data directory becomes a member: InitialCluster and ClusterState of
// etcd.
type founding struct{ initial, state string }

// join determines how an empty data directory becomes a member of the cluster that others know. ok
// is false if none of them knows a cluster.
func (c *Cluster) join(views []*view) (f founding, ok bool, err error) {
	own := c.own()
	for _, v := range views {
		m := v.member(own.URL)
		switch {
		case m == nil:
			return f, false, fmt.Errorf(`%w: the cluster of %s (%s) has no member at %s: run "scheduler-server members add %s" first`, errForeign, v.from, v.list(), own.URL, own)
		case m.Name != "" && m.Name != own.Name:
			return f, false, fmt.Errorf("%w: the member at %s is called %s in the cluster of %s: give this server that name", errForeign, own.URL, m.Name, v.from)
		case wasReady(m):
			return f, false, fmt.Errorf(`%w: %s has been a member of the cluster already, as %s says, and its data is not in this data directory: give it the one it had, or run "scheduler-server members remove %s" and "scheduler-server members add %s" against another server`,
				errForeign, own.Name, v.from, own.Name, own)
		case !m.IsLearner:
			// The others are creating the cluster too.
			if theirs := v.addresses(); !slices.Equal(theirs, c.addresses()) {
				return f, false, fmt.Errorf("%w: the cluster of %s has the members %s, and --cluster-peers of this server lists %s: servers that found a cluster need the same list", errForeign, v.from, v.list(), peerList(c.Peers))
			}
			continue
		}
		texts := make([]string, 0, len(v.members))
		for i, other := range v.members {
			name := cmp.Or(other.Name, fmt.Sprintf("member-%d", i))
			if other.ID == m.ID {
				name = own.Name
			}
			for _, address := range other.PeerURLs {
				texts = append(texts, name+"="+address)
			}
		}
		return founding{strings.Join(texts, ","), "existing"}, true, nil
	}
	return f, false, nil
}

var (
	// errForeign is returned for a data directory that does not belong to the cluster.
	errForeign = errors.New("the server cannot join the cluster")

	// errRemoved is returned to a member that was removed from the cluster.
	errRemoved = errors.New("the server is no longer a member of its cluster")

	// errNoQuorum says that the members that respond have no quorum.
	errNoQuorum = errors.New("the members of the cluster that can be reached have no leader: more than half of all members are needed")
)
