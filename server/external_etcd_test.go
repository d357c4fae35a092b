package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"go.etcd.io/etcd/server/v3/embed"
	"go.uber.org/zap"

	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/logtest"
)

// externalEtcd starts an etcd that listens, as one outside of the server does.
func externalEtcd(t *testing.T) (endpoint string) {
	t.Helper()
	endpoint, _ = startExternalEtcd(t)
	return endpoint
}

func startExternalEtcd(t *testing.T) (endpoint string, stop func()) {
	t.Helper()
	cfg := embed.NewConfig()
	cfg.Dir, cfg.UnsafeNoFsync = t.TempDir(), true
	cfg.ZapLoggerBuilder = embed.NewZapLoggerBuilder(zap.NewNop())
	anywhere := []url.URL{{Scheme: "http", Host: "127.0.0.1:0"}}
	cfg.ListenClientUrls, cfg.AdvertiseClientUrls = anywhere, anywhere
	cfg.ListenPeerUrls = anywhere
	member, err := embed.StartEtcd(cfg)
	if err != nil {
		t.Fatal(err)
	}
	stop = sync.OnceFunc(member.Close)
	t.Cleanup(stop)
	<-member.Server.ReadyNotify()
	return member.Clients[0].Addr().String(), stop
}

// TestReadinessTellsWhetherWritesWork: without its store the server still reads,
// and says that nothing can be written, and why.
func TestReadinessTellsWhetherWritesWork(t *testing.T) {
	endpoint, stopEtcd := startExternalEtcd(t)
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

// TestServerThatLostTheStoreStops starts a second server on the same etcd: the
// first must not go on deciding.
func TestServerThatLostTheStoreStops(t *testing.T) {
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile = []string{externalEtcd(t)}, filepath.Join(t.TempDir(), "seal.key")
	ended := make(chan error, 1)
	logger, _, err := newLogger(c, &logtest.Buffer{})
	if err != nil {
		t.Fatal(err)
	}
	ready := make(chan struct{})
	go func() { ended <- run(context.Background(), c, logger, signalWriter{ready}) }()
	<-ready
	s := start(t, c)
	fillFleet(s, 90, 10)
	// The first one notices when it writes. Where the second has decided before
	// it looks, there is nothing to write, so there is more than one to decide.
	deadline := time.After(eventually.Limit)
	for i, running := 0, true; running; i++ {
		select {
		case err := <-ended:
			if want := "decisions: stop deciding: another server has taken over the store"; err == nil || err.Error() != want {
				t.Fatalf("the first server ended with %v, want %s", err, want)
			}
			running = false
		case <-deadline:
			t.Fatal("the first server goes on")
		case <-time.After(10 * time.Millisecond):
			put(s, placement("shop", fmt.Sprint("web-", i)))
		}
	}
	p := placement("shop", "later")
	p.SetDefaults()
	if _, err := s.client.Put(t.Context(), p, client.PutOptions{}); err != nil {
		t.Fatal(err)
	}
}

// signalWriter closes a channel at the first write.
type signalWriter struct{ written chan struct{} }

// Write implements io.Writer.
func (w signalWriter) Write(data []byte) (int, error) {
	close(w.written)
	return len(data), nil
}
