package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// externalEtcd starts an etcd that listens, like one outside the server.
func externalEtcd(t testing.TB) (endpoint string) {
	t.Helper()
	endpoint, _ = storetest.Etcd(t)
	return endpoint
}

// TestReadinessTellsWhetherWritesWork: without its store the server still reads,
// and says that nothing can be written, and why.
func TestReadinessTellsWhetherWritesWork(t *testing.T) {
	t.Parallel()
	endpoint, stopEtcd := storetest.Etcd(t)
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile = []string{endpoint}, filepath.Join(t.TempDir(), "seal.key")
	c.StoreTimeout, c.StorePatience = time.Second, 3*time.Second
	s := start(t, c)
	put(s, staticProvider("rates", map[string]float64{"berlin": 10}))
	get := func(path string) (int, string) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, s.url+path, nil)
		if err != nil {
			t.Fatal(err)
		}
		resp, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.StatusCode, string(body)
	}
	if status, body := get("/readyz"); status != http.StatusOK {
		t.Fatalf("/readyz: got %d %s, want 200", status, body)
	}
	stopEtcd()
	eventually.True(t, "without its store, the server is not ready, and reports the cause", func() bool {
		status, body := get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "writes have failed for")
	})
	if status, body := get("/v1/metrics-providers/rates"); status != http.StatusOK {
		t.Errorf("read without the store: got %d %s, want 200", status, body)
	}
}

func TestExternalEtcdHoldsEverything(t *testing.T) {
	t.Parallel()
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile = []string{externalEtcd(t)}, filepath.Join(t.TempDir(), "seal.key")
	if err := c.check(); err != nil {
		t.Fatal(err)
	}
	s := start(t, c)
	if web := fillFleet(s, 90, 10); !slices.Equal(web.Status.Clusters, []string{"berlin"}) {
		t.Fatalf("clusters %v, want berlin", web.Status.Clusters)
	}
	info, err := s.client.Server(t.Context())
	if err != nil || info.Store.Mode != "external" {
		t.Fatalf("info %+v, error %v", info, err)
	}
	before := toJSON(t, s.objects())
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, c)
	if after := toJSON(t, s.objects()); after != before {
		t.Fatalf("objects before:\n%s\nafterwards:\n%s", before, after)
	}
	put(s, staticProvider("rates", map[string]float64{"berlin": 10, "paris": 90}))
	if web := put(s, placement("shop", "web")); !slices.Equal(web.Status.Clusters, []string{"paris"}) {
		t.Fatalf("clusters %v, want paris", web.Status.Clusters)
	}
}

// TestTwoServersShareAStore checks that each answers every request, that one of them decides, and that the other takes
// over when it stops.
func TestTwoServersShareAStore(t *testing.T) {
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile, c.Lease = []string{externalEtcd(t)}, filepath.Join(t.TempDir(), "seal.key"), lease
	c.Name = "first"
	first := start(t, c)
	c.Name = "second"
	second := start(t, c)
	if web := fillFleet(second, 90, 10); !slices.Equal(web.Status.Clusters, []string{"berlin"}) {
		t.Fatalf("clusters %v, want berlin", web.Status.Clusters)
	}
	for _, s := range []*runningServer{first, second} {
		info, err := s.client.Server(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(info.Servers) != 2 || info.Servers[0].Name != "first" || !info.Servers[0].Leader || info.Leader != (info.Name == "first") {
			t.Errorf("info of %s: %+v", info.Name, info)
		}
	}
	before := toJSON(t, second.objects())
	if got := toJSON(t, first.objects()); got != before {
		t.Errorf("the first server has\n%s\nthe second\n%s", got, before)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the second server leads", func() bool {
		info, err := second.client.Server(t.Context())
		return err == nil && info.Leader && len(info.Servers) == 1
	})
	if after := toJSON(t, second.objects()); after != before {
		t.Errorf("objects before:\n%s\nafterwards:\n%s", before, after)
	}
	put(second, staticProvider("rates", map[string]float64{"berlin": 10, "paris": 90}))
	if web := put(second, placement("shop", "web")); !slices.Equal(web.Status.Clusters, []string{"paris"}) {
		t.Fatalf("clusters %v, want paris", web.Status.Clusters)
	}
}

// TestMigrationToAnEtcdCluster uses the commands in the guide, and goes back: nothing is lost, no decision moves, and
// versions that clients have stay valid.
func TestMigrationToAnEtcdCluster(t *testing.T) {
	t.Parallel()
	dir, file := t.TempDir(), filepath.Join(t.TempDir(), "backup.tar")
	s := start(t, testConfig(dir))
	fillFleet(s, 90, 10)
	sealed := staticProvider("sealed", nil)
	sealed.Spec.BearerToken = api.NewSecret("hush-hush")
	put(s, sealed)
	// A decision that would now be made differently: nothing moves it.
	kept := placement("shop", "kept")
	kept.Spec.RescheduleAfter = "24h"
	kept = put(s, kept)
	put(s, staticProvider("rates", map[string]float64{"berlin": 10, "paris": 90}))
	before, versions, revision := toJSON(t, s.objects()), s.versions(), storeRevision(s)
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	mustCommand(t, "backup", "--data-dir", dir, file)

	peers := storetest.Addresses(t, 3)
	var list []string
	for i, peer := range peers {
		list = append(list, fmt.Sprintf("etcd-%d=http://%s", i, peer))
	}
	cluster := strings.Join(list, ",")
	var members []storetest.EtcdMember
	for i, peer := range peers {
		m := storetest.EtcdMember{Name: fmt.Sprintf("etcd-%d", i), Dir: filepath.Join(t.TempDir(), "etcd"), Peer: peer}
		members = append(members, m)
		mustCommand(t, "restore", "--data-dir", m.Dir, "--etcd-name", m.Name, "--etcd-initial-cluster", cluster, file)
		if code, _, stderr := command(t, "restore", "--data-dir", m.Dir, "--etcd-name", m.Name, "--etcd-initial-cluster", cluster, file); code != 1 || !strings.Contains(stderr, "holds a store already") {
			t.Errorf("restore over a member: exit code %d: %s", code, stderr)
		}
	}
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile = storetest.EtcdOn(t, cluster, members...), filepath.Join(dir, "seal.key")
	moved := start(t, c)
	if after := toJSON(t, moved.objects()); after != before {
		t.Fatalf("objects before:\n%s\nafterwards:\n%s", before, after)
	}
	if after := moved.versions(); !maps.Equal(after, versions) {
		t.Errorf("versions of objects %v, after the move %v", versions, after)
	}
	if now := storeRevision(moved); now < revision+1_000_000_000 {
		t.Errorf("the store is at revision %d after %d: clients could confuse old revisions with new ones", now, revision)
	}
	if got := get[*api.Placement](moved, placementKey("shop", "kept")); !slices.Equal(got.Status.Clusters, kept.Status.Clusters) {
		t.Errorf("clusters %v, after the move %v", kept.Status.Clusters, got.Status.Clusters)
	}
	put(moved, placement("shop", "later"))
	before = toJSON(t, moved.objects())

	// And back.
	mustCommand(t, "backup", "--endpoint", moved.url, file)
	if err := moved.stop(); err != nil {
		t.Fatal(err)
	}
	target := filepath.Join(t.TempDir(), "back")
	mustCommand(t, "restore", "--data-dir", target, file)
	back := testConfig(target)
	back.KeyFile = c.KeyFile
	if after := toJSON(t, start(t, back).objects()); after != before {
		t.Fatalf("objects before:\n%s\nafter the move back:\n%s", before, after)
	}
}

// storeRevision returns the revision of a server's store.
func storeRevision(s *runningServer) int64 {
	s.t.Helper()
	info, err := s.client.Server(context.Background())
	if err != nil {
		s.t.Fatal(err)
	}
	return info.Store.Revision
}

// TestEtcdMemberNeedsItsPlace: what is said of an etcd member must fit together, and what is wrong is named.
func TestEtcdMemberNeedsItsPlace(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "backup.tar")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		args []string
		want string
	}{
		"no list":              {[]string{"--etcd-name", "a"}, "etcd-initial-cluster: is required"},
		"no name":              {[]string{"--etcd-initial-cluster", "a=http://127.0.0.1:1"}, "etcd-name: is required"},
		"another name":         {[]string{"--etcd-name", "b", "--etcd-initial-cluster", "a=http://127.0.0.1:1"}, `has no member named "b"`},
		"no list of addresses": {[]string{"--etcd-name", "a", "--etcd-initial-cluster", "a:1"}, "not of the form name=https://host:port"},
		"no backup":            {[]string{"--etcd-name", "a", "--etcd-initial-cluster", "a=http://127.0.0.1:1"}, "not a usable backup"},
	} {
		dir := filepath.Join(t.TempDir(), "etcd")
		code, _, stderr := command(t, append([]string{"restore", "--data-dir", dir, file}, c.args...)...)
		if code != 1 || !strings.Contains(stderr, c.want) {
			t.Errorf("%s: exit code %d: %s", name, code, stderr)
		}
		if left, err := os.ReadDir(dir); err == nil && len(left) > 0 {
			t.Errorf("%s: files left: %v", name, left)
		}
	}
}
