package storetest

import (
	"net/url"
	"sync"
	"testing"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"
)

// Etcd runs an etcd in this process that listens, as one outside of it does, and
// returns its host and port. It ends with the test, or before with stop.
func Etcd(t testing.TB) (address string, stop func()) {
	t.Helper()
	c := embed.NewConfig()
	c.Dir, c.UnsafeNoFsync = t.TempDir(), true
	c.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
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
