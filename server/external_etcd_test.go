package main

import (
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/store/storetest"
)

// externalEtcd starts an etcd that listens, as one outside of the server does.
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
	c.StoreTimeout = time.Second
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
		t.Fatalf("ready: %d %s", status, body)
	}
	stopEtcd()
	eventually.True(t, "without its store the server is not ready, and says why", func() bool {
		status, body := get("/readyz")
		return status == http.StatusServiceUnavailable && strings.Contains(body, "writes have failed for")
	})
	if status, body := get("/v1/metrics-providers/rates"); status != http.StatusOK {
		t.Errorf("reading without the store: %d %s", status, body)
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
		t.Fatalf("decided %v", web.Status.Clusters)
	}
	info, err := s.client.Server(t.Context())
	if err != nil || info.Store.Mode != "external" {
		t.Fatalf("server %+v, %v", info, err)
	}
	before := toJSON(t, s.objects())
	if err := s.stop(); err != nil {
		t.Fatal(err)
	}
	s = start(t, c)
	if after := toJSON(t, s.objects()); after != before {
		t.Fatalf("before:\n%s\nafter:\n%s", before, after)
	}
	put(s, staticProvider("rates", map[string]float64{"berlin": 10, "paris": 90}))
	if web := put(s, placement("shop", "web")); !slices.Equal(web.Status.Clusters, []string{"paris"}) {
		t.Fatalf("decided %v", web.Status.Clusters)
	}
}

// TestTwoServersShareAStore: each answers every request, one of them decides, and the
// other one does as soon as that one stops.
func TestTwoServersShareAStore(t *testing.T) {
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile, c.Lease = []string{externalEtcd(t)}, filepath.Join(t.TempDir(), "seal.key"), 5*time.Second
	c.Name = "first"
	first := start(t, c)
	c.Name = "second"
	second := start(t, c)
	if web := fillFleet(second, 90, 10); !slices.Equal(web.Status.Clusters, []string{"berlin"}) {
		t.Fatalf("decided %v", web.Status.Clusters)
	}
	for _, s := range []*runningServer{first, second} {
		info, err := s.client.Server(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(info.Servers) != 2 || info.Servers[0].Name != "first" || !info.Servers[0].Leader || info.Leader != (info.Name == "first") {
			t.Errorf("%s says %+v", info.Name, info)
		}
	}
	before := toJSON(t, second.objects())
	if got := toJSON(t, first.objects()); got != before {
		t.Errorf("the first shows\n%s\nand the second\n%s", got, before)
	}
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	eventually.True(t, "the second one leads", func() bool {
		info, err := second.client.Server(t.Context())
		return err == nil && info.Leader && len(info.Servers) == 1
	})
	if after := toJSON(t, second.objects()); after != before {
		t.Errorf("before:\n%s\nafter:\n%s", before, after)
	}
	put(second, staticProvider("rates", map[string]float64{"berlin": 10, "paris": 90}))
	if web := put(second, placement("shop", "web")); !slices.Equal(web.Status.Clusters, []string{"paris"}) {
		t.Fatalf("decided %v", web.Status.Clusters)
	}
}
