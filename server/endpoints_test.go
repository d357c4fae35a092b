package main

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// TestWorkGoesOnAtAnotherServer: servers are lost one after the other, each in the
// middle of writes that it has not answered yet. A client of all of them finishes every
// write, none is made twice, and a watch tells all of it once.
func TestWorkGoesOnAtAnotherServer(t *testing.T) {
	t.Parallel()
	servers, etcd := several(t, 3)
	fillFleet(servers[0], 90, 10)
	var proxies []*proxytest.Proxy
	var endpoints []string
	for _, s := range servers {
		proxies = append(proxies, proxytest.Start(t, strings.TrimPrefix(s.url, "http://")))
		endpoints = append(endpoints, "http://"+proxies[len(proxies)-1].Address())
	}
	c, err := client.New(client.Options{Endpoints: endpoints, MaxRetries: 20})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.Close)
	start := get[*api.Placement](servers[0], placementKey("shop", "web")).Metadata.ResourceVersion

	ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
	defer cancel()
	var all sync.WaitGroup
	defer all.Wait()
	var mu sync.Mutex
	told := map[string]int{}       // how often each event about each version of an object was received
	newest := map[api.Key]string{} // the last version received
	watched, watching := context.WithCancel(ctx)
	defer watching()
	all.Go(func() {
		for event, err := range c.Watch(watched, start, api.KindPlacement) {
			if watched.Err() != nil {
				return
			}
			if err != nil {
				t.Errorf("the watch ended: %v", err)
				return
			}
			mu.Lock()
			key, version := api.KeyOf(event.Object), event.Object.Meta().ResourceVersion
			told[fmt.Sprint(event.Type, " ", key, " at ", version)]++
			newest[key] = version
			mu.Unlock()
		}
	})

	var over atomic.Bool
	var created atomic.Int64
	var writing sync.WaitGroup
	for w := range 4 {
		writing.Go(func() {
			for n := 0; !over.Load(); n++ {
				p := placement("shop", fmt.Sprintf("p-%d-%d", w, n))
				p.SetDefaults()
				stored, err := c.Put(ctx, p, client.PutOptions{Create: true})
				if err != nil {
					t.Errorf("create %s: %v", api.KeyOf(p), err)
					return
				}
				created.Add(1)
				changed, ok := stored.Copy().(*api.Placement)
				if !ok {
					t.Errorf("stored object has the type %T", stored)
					return
				}
				changed.Metadata.Labels = map[string]string{"changed": "once"}
				if _, err := c.Put(ctx, changed, client.PutOptions{IfMatch: stored.Meta().ResourceVersion}); err != nil {
					t.Errorf("change %s: %v", api.KeyOf(p), err)
					return
				}
			}
		})
	}
	// Stop the server in use while it delays a response, and start it again later.
	for range 6 {
		at := proxies[0]
		for i, endpoint := range endpoints {
			if c.Endpoint() == endpoint {
				at = proxies[i]
			}
		}
		held := at.Held()
		at.Stall(proxytest.ToClient)
		eventually.True(t, "an answer is held back", func() bool { return at.Held() > held })
		at.Down(t)
		at.Pass(proxytest.ToClient)
		eventually.True(t, "another server is used", func() bool { return c.Endpoint() != "http://"+at.Address() })
		at.Up(t)
	}
	over.Store(true)
	writing.Wait()

	resp, err := etcd.Get(ctx, "/v1/spec/placement/", clientv3.WithPrefix())
	if err != nil {
		t.Fatal(err)
	}
	counted := int64(0)
	for _, kv := range resp.Kvs {
		if strings.Contains(string(kv.Key), "/p-") {
			if counted++; kv.Version != 2 {
				t.Errorf("%s was written %d times", kv.Key, kv.Version)
			}
		}
	}
	if counted != created.Load() {
		t.Errorf("%d placements found, but %d created", counted, created.Load())
	}
	eventually.True(t, "the watch has delivered everything", func() bool {
		mu.Lock()
		defer mu.Unlock()
		for object, err := range servers[0].client.List(ctx, api.KindPlacement, client.ListOptions{}) {
			if err != nil || object.Meta().Name != "web" && newest[api.KeyOf(object)] != object.Meta().ResourceVersion {
				return false
			}
		}
		return true
	})
	watching()
	all.Wait()
	for what, times := range told {
		if times != 1 {
			t.Errorf("announced %d times: %s", times, what)
		}
	}
}

// TestAnswersNameTheirServer also covers responses that are forwarded to the leader.
func TestAnswersNameTheirServer(t *testing.T) {
	servers, _ := several(t, 2)
	fillFleet(servers[0], 90, 10)
	for i, s := range servers {
		for _, ask := range []struct{ method, path, body, want string }{
			{http.MethodGet, "/v1/clusters", "", fmt.Sprint("server-", i)},
			{http.MethodGet, "/v1/clusters/nowhere", "", fmt.Sprint("server-", i)},
			// Only the leader accepts this. A heartbeat may be answered by a follower, which relays it.
			{http.MethodPost, "/v1/clusters/berlin/nodes/node-1/interruption", "{}", "server-0"},
			{http.MethodGet, "/healthz", "", ""},
		} {
			req, err := http.NewRequestWithContext(t.Context(), ask.method, s.url+ask.path, strings.NewReader(ask.body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Content-Type", "application/json")
			answer, err := http.DefaultClient.Do(req)
			if err != nil {
				t.Fatal(err)
			}
			_ = answer.Body.Close()
			if got := strings.Join(answer.Header.Values("Scheduler-Server"), " and "); got != ask.want {
				t.Errorf("%s %s at server %d was answered by %q, want %q (%s)", ask.method, ask.path, i, got, ask.want, answer.Status)
			}
			if ages := len(answer.Header.Values("Scheduler-Last-Contact")); ages != 1 && ask.want != "" {
				t.Errorf("%s %s at server %d has %d ages", ask.method, ask.path, i, ages)
			}
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
