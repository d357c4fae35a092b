package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// clusterConfigs returns the configurations of servers whose embedded stores form one cluster.
func clusterConfigs(t *testing.T, n int) []config {
	t.Helper()
	addresses := storetest.Addresses(t, n)
	certificate := storetest.NewCertificate(t, addresses...)
	keyFile := filepath.Join(t.TempDir(), "seal.key")
	all := make([]config, n)
	for i := range all {
		c := testConfig(t.TempDir())
		c.Name, c.KeyFile, c.Lease = fmt.Sprint("server-", i), keyFile, lease
		c.ClusterCertFile, c.ClusterKeyFile, c.ClusterCAFile = certificate.CertFile, certificate.KeyFile, certificate.CAFile
		for j, address := range addresses {
			c.ClusterPeers = append(c.ClusterPeers, fmt.Sprintf("server-%d=https://%s", j, address))
		}
		if err := c.check(); err != nil {
			t.Fatal(err)
		}
		all[i] = c
	}
	return all
}

// startAll starts servers concurrently.
func startAll(t *testing.T, all []config) []*runningServer {
	t.Helper()
	return storetest.AtOnce(t, all, func(c config) *runningServer { return start(t, c) })
}

// leaderOf returns the index of the leader.
func leaderOf(t *testing.T, servers []*runningServer) (leader int) {
	t.Helper()
	eventually.True(t, "one leads", func() bool {
		leader = slices.IndexFunc(servers, func(s *runningServer) bool {
			info, err := s.client.Server(context.Background())
			return err == nil && info.Leader
		})
		return leader >= 0
	})
	return leader
}

// TestServersRunTheirOwnEtcdCluster checks that servers whose embedded stores form a cluster behave like servers on an
// external etcd.
func TestServersRunTheirOwnEtcdCluster(t *testing.T) {
	configs := clusterConfigs(t, 3)
	servers := startAll(t, configs)
	fillFleet(servers[1], 90, 10)
	for i := range 6 {
		decide(t, servers[i%3], servers[(i+1)%3], []string{"paris", "berlin"}[i%2])
	}
	info, err := servers[0].client.Server(t.Context())
	if err != nil || len(info.Servers) != 3 || info.Store.Mode != "embedded" {
		t.Fatalf("unexpected info %+v, %v", info, err)
	}
	before := toJSON(t, servers[0].objects())
	// Stop the leader, which is also a third of the store.
	first := leaderOf(t, servers)
	if err := servers[first].stop(); err != nil {
		t.Fatal(err)
	}
	others := slices.Delete(slices.Clone(servers), first, first+1)
	leaderOf(t, others)
	for _, s := range others {
		if after := toJSON(t, s.objects()); after != before {
			t.Fatalf("objects before:\n%s\nafterwards:\n%s", before, after)
		}
	}
	decide(t, others[0], others[1], "paris")
	// It returns with its data directory, and reads what was written without it.
	servers[first] = start(t, configs[first])
	decide(t, servers[first], others[0], "berlin")
	// With two of three stopped, reads continue, and writes fail with the reason.
	for _, s := range others {
		if err := s.stop(); err != nil {
			t.Fatal(err)
		}
	}
	last := servers[first]
	eventually.True(t, "writes are rejected with the reason", func() bool {
		p := placement("shop", "late")
		p.SetDefaults()
		_, err := last.client.Put(context.Background(), p, client.PutOptions{})
		return err != nil && strings.Contains(err.Error(), "more than half of all members are needed")
	})
	if got := get[*api.Placement](last, api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}); len(got.Status.Clusters) != 1 {
		t.Errorf("status read without the other servers: %+v", got.Status)
	}
	again := start(t, configs[(first+1)%3])
	eventually.True(t, "writes are accepted again", func() bool {
		_, err := last.client.Put(context.Background(), staticProvider("other", map[string]float64{"berlin": 1}), client.PutOptions{})
		return err == nil
	})
	// One that stopped without the others could not hand over: its lease has to expire.
	leaderOf(t, []*runningServer{last, again})
	decide(t, last, again, "paris")
}

// TestClusterSettingsThatContradict each other are refused before anything is touched.
func TestClusterSettingsThatContradict(t *testing.T) {
	sound := clusterConfigs(t, 3)[0]
	for want, change := range map[string]func(*config){
		"cluster-peers: must be absent when etcd-endpoints is set": func(c *config) { c.DataDir, c.EtcdEndpoints = "", []string{"http://a:1"} },
		"data-dir: is required":                                        func(c *config) { c.DataDir = "" },
		`this server, "d", is not in the list`:                         func(c *config) { c.Name = "d" },
		`cluster-peers: "a" is not of the form name=https://host:port`: func(c *config) { c.ClusterPeers = []string{"a"} },
		`the address of a needs a port`:                                func(c *config) { c.ClusterPeers = []string{"a=https://b"} },
		"plain HTTP is for loopback addresses only":                    func(c *config) { c.ClusterPeers = []string{"server-0=http://192.0.2.1:1"} },
		"the name server-0 is listed twice":                            func(c *config) { c.ClusterPeers = []string{"server-0=https://a:1", "server-0=https://b:1"} },
		"the address https://a:1 is listed twice":                      func(c *config) { c.ClusterPeers = []string{"server-0=https://a:1", "b=https://a:1"} },
		"some addresses have https and others http":                    func(c *config) { c.ClusterPeers = []string{"server-0=https://a:1", "b=http://127.0.0.1:1"} },
		"cluster-cert-file: is required":                               func(c *config) { c.ClusterCertFile = "" },
		"cluster-key-file: is required":                                func(c *config) { c.ClusterKeyFile = "" },
		"cluster-ca-file: is required":                                 func(c *config) { c.ClusterCAFile = "" },
		"cluster-ca-file: must be absent":                              func(c *config) { c.ClusterPeers = []string{"server-0=http://127.0.0.1:1"} },
		"cluster-listen: needs cluster-peers":                          func(c *config) { c.ClusterPeers, c.ClusterListen = nil, "127.0.0.1:1" },
		"cluster-join: needs cluster-peers":                            func(c *config) { c.ClusterPeers, c.ClusterJoin = nil, true },
		"the list needs a member of it besides":                        func(c *config) { c.ClusterPeers, c.ClusterJoin = c.ClusterPeers[:1], true },
		`"here", is not of the form host:port`:                         func(c *config) { c.ClusterListen = "here" },
		"key-file: is required with cluster-peers":                     func(c *config) { c.KeyFile = "" },
	} {
		c := sound
		change(&c)
		if err := c.check(); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("the error is %v, want %q", err, want)
		}
	}
}

// TestAMemberWithAnotherKeyIsRefused, as a server on an external etcd is.
func TestAMemberWithAnotherKeyIsRefused(t *testing.T) {
	configs := clusterConfigs(t, 3)
	servers := make([]*runningServer, 2)
	var starting sync.WaitGroup
	for i := range servers {
		starting.Go(func() { servers[i] = start(t, configs[i]) })
	}
	starting.Wait()
	other := configs[2]
	other.KeyFile = filepath.Join(t.TempDir(), "seal.key")
	logger, _, err := newLogger(other, io.Discard)
	if err != nil {
		t.Fatal(err)
	}
	var said bytes.Buffer
	if err := run(t.Context(), other, logger, &said); err == nil || errors.Is(err, context.Canceled) || !strings.Contains(err.Error(), "use the same key file for all servers") {
		t.Fatalf("the server ended with %v, want a wrong key", err)
	}
	put(servers[0], placement("shop", "web"))
}

// TestMembersByCommand adds members to a single server by commands, replaces one, and returns to a single server with a
// backup.
func TestMembersByCommand(t *testing.T) {
	configs := clusterConfigs(t, 2)
	first, second := configs[0], configs[1]
	alone := testConfig(first.DataDir)
	alone.KeyFile = first.KeyFile
	s := start(t, alone)
	fillFleet(s, 90, 10)
	before := toJSON(t, s.objects())
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	peers := slices.Clone(first.ClusterPeers)
	first.ClusterPeers = peers[:1]
	s = start(t, first)
	if after := toJSON(t, s.objects()); after != before {
		t.Fatalf("objects before:\n%s\nafterwards:\n%s", before, after)
	}
	said := mustCommand(t, "members", "add", peers[1], "--endpoint", s.url)
	for _, word := range []string{"--name server-1", "--cluster-join", "--cluster-peers " + strings.Join(peers, ","), "--cluster-cert-file"} {
		if !strings.Contains(said, word) {
			t.Errorf("members add says %q, want %q in it", said, word)
		}
	}
	if list := mustCommand(t, "members", "list", "--endpoint", s.url); !strings.Contains(list, "server-1") || !strings.Contains(list, "not started yet") {
		t.Errorf("unexpected output of members list: %s", list)
	}
	second.ClusterJoin = true
	other := start(t, second)
	decide(t, other, s, "paris")
	eventually.True(t, "it votes", func() bool {
		return !strings.Contains(mustCommand(t, "members", "list", "--endpoint", other.url), "not")
	})
	for _, c := range []struct{ args, want string }{
		{"add here", "not of the form name=https://host:port"}, {"add " + peers[1], "already"}, {"remove nobody", "there is no such member"},
	} {
		code, _, stderr := command(t, append([]string{"members"}, append(strings.Fields(c.args), "--endpoint", s.url)...)...)
		if code != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("members %s: exit code %d, message %q, want %q", c.args, code, stderr, c.want)
		}
	}
	// The data directory of a member cannot be opened on its own.
	if err := other.stop(); err != nil {
		t.Fatal(err)
	}
	if code, _, stderr := command(t, "backup", "--data-dir", second.DataDir, filepath.Join(t.TempDir(), "b")); code != 1 || !strings.Contains(stderr, "one of 2 members of a cluster") {
		t.Errorf("backup: exit code %d, message %q", code, stderr)
	}
	other = start(t, second)
	decide(t, s, other, "berlin")
	// A backup of the cluster can be restored to a single server, which others can join.
	backup := filepath.Join(t.TempDir(), "backup")
	mustCommand(t, "backup", "--endpoint", other.url, backup)
	want := toJSON(t, other.objects())
	restored := testConfig(filepath.Join(t.TempDir(), "restored"))
	restored.KeyFile = first.KeyFile
	mustCommand(t, "restore", "--data-dir", restored.DataDir, backup)
	third := start(t, restored)
	if got := strings.Count(toJSON(t, third.objects()), `"berlin"`); got != strings.Count(want, `"berlin"`) {
		t.Errorf("the restored store has\n%s\nwant\n%s", toJSON(t, third.objects()), want)
	}
	if list := mustCommand(t, "members", "list", "--endpoint", third.url); !strings.Contains(list, "not part of a cluster") {
		t.Errorf("unexpected output of members list for a single server: %s", list)
	}
}
