package storetest

import (
	"net/url"
	"sync"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Etcd runs an etcd with a listener in this process and returns its host and port. It ends with the
// test, or when stop is called.
func Etcd(t testing.TB) (address string, stop func()) {
	t.Helper()
	c := etcdConfig(t.TempDir())
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	c.ListenClientUrls, c.AdvertiseClientUrls, c.ListenPeerUrls = anywhere, anywhere, anywhere
	member, err := embed.StartEtcd(c)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(member.Close)
	t.Cleanup(stop)
	<-member.Server.ReadyNotify()
	return member.Clients[0].Addr().String(), stop
}

func etcdConfig(dir string) *embed.Config {
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync = dir, true
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	return c
}

// EtcdMember is a member of an etcd cluster with a data directory that is there already.
type EtcdMember struct {
	Name, Dir string
	// Peer is the host and port at which the others reach it.
	Peer string
}

// EtcdOn runs the members of an etcd cluster in this process, and returns the hosts and ports for clients.
func EtcdOn(t testing.TB, initialCluster string, members ...EtcdMember) (addresses []string) {
	t.Helper()
	var started []*embed.Etcd
	for _, m := range members {
		c := etcdConfig(m.Dir)
		c.Name, c.InitialCluster = m.Name, initialCluster
		peer := []url.URL{{Scheme: "http", Host: m.Peer}}
		c.ListenPeerUrls, c.AdvertisePeerUrls = peer, peer
		anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
		c.ListenClientUrls, c.AdvertiseClientUrls = anywhere, anywhere
		member, err := embed.StartEtcd(c)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(member.Close)
		started = append(started, member)
	}
	for _, member := range started {
		<-member.Server.ReadyNotify()
		addresses = append(addresses, member.Clients[0].Addr().String())
	}
	return addresses
}
