package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	clientv3 "go.etcd.io/etcd/client/v3"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// lease is one that a busy machine renews in time.
const lease = time.Minute

// several starts servers on one etcd. The first of them leads.
func several(t testing.TB, n int, options ...func(*config)) (servers []*runningServer, etcd *clientv3.Client) {
	t.Helper()
	return severalFor(t, n, lease, options...)
}

// severalFor is several with another lease.
func severalFor(t testing.TB, n int, lease time.Duration, options ...func(*config)) (servers []*runningServer, etcd *clientv3.Client) {
	t.Helper()
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile, c.Lease = []string{externalEtcd(t)}, filepath.Join(t.TempDir(), "seal.key"), lease
	for _, option := range options {
		option(&c)
	}
	for i := range n {
		c.Name, c.HistoryDir = fmt.Sprint("server-", i), t.TempDir()
		servers = append(servers, start(t, c))
		servers[i].historyDir = c.HistoryDir
	}
	etcd, err := clientv3.New(clientv3.Config{Endpoints: c.EtcdEndpoints, DialTimeout: eventually.Limit})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = etcd.Close() })
	return servers, etcd
}

// leads waits until a server is the leader.
func (s *runningServer) leads() {
	s.t.Helper()
	eventually.True(s.t, "the server leads", func() bool {
		info, err := s.client.Server(context.Background())
		return err == nil && info.Leader
	})
}

// decide writes values that move a placement through one server, and reads the result from another.
func decide(t *testing.T, through, from *runningServer, better string) {
	t.Helper()
	values := map[string]float64{"berlin": 10, "paris": 10}
	values[better] = 90
	put(through, staticProvider("rates", values))
	if got := put(through, placement("shop", "web")).Status.Clusters; !slices.Equal(got, []string{better}) {
		t.Errorf("the writer is shown %v, want %s", got, better)
	}
	if got := get[*api.Placement](from, api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}).Status.Clusters; !slices.Equal(got, []string{better}) {
		t.Errorf("clusters %v at another server, want %s", got, better)
	}
}

// TestEveryServerShowsWhatWasWrittenThroughAnother checks that the response to a write contains the decision, and so
// does every read that starts afterwards, on any server.
func TestEveryServerShowsWhatWasWrittenThroughAnother(t *testing.T) {
	t.Parallel()
	servers, _ := several(t, 3)
	fillFleet(servers[1], 90, 10)
	for i := range 9 {
		decide(t, servers[i%3], servers[(i+1+i/3%2)%3], []string{"paris", "berlin"}[i%2])
	}
	// Through all of them concurrently.
	var writers sync.WaitGroup
	for i, s := range servers {
		writers.Go(func() {
			for n := range 10 {
				p := placement("shop", fmt.Sprintf("p-%d-%d", i, n))
				p.SetDefaults()
				var stored, object api.Object
				err := s.repeated(func() (err error) {
					stored, err = s.client.Put(t.Context(), p, client.PutOptions{})
					return err
				})
				if err != nil {
					t.Error(err)
					return
				}
				if got, ok := stored.(*api.Placement); !ok || len(got.Status.Clusters) != 1 {
					t.Errorf("%s was answered before its decision", api.KeyOf(stored))
				}
				err = s.repeated(func() (err error) {
					object, err = servers[(i+1)%3].client.Get(t.Context(), api.KeyOf(p))
					return err
				})
				if err != nil {
					t.Error(err)
				} else if got, ok := object.(*api.Placement); !ok || len(got.Status.Clusters) != 1 {
					t.Errorf("another server shows %s without its decision", api.KeyOf(p))
				}
			}
		})
	}
	writers.Wait()
}

// heartbeat sends a heartbeat, and repeats it when the server asks for it.
func (s *runningServer) heartbeat(cluster string, beat api.Heartbeat) (got *api.Cluster, err error) {
	s.t.Helper()
	err = s.repeated(func() (err error) {
		got, err = s.client.Heartbeat(s.t.Context(), cluster, beat)
		return err
	})
	return got, err
}

// TestReportsReachTheServerThatLeads through whichever one they come.
func TestReportsReachTheServerThatLeads(t *testing.T) {
	servers, _ := several(t, 2)
	fillFleet(servers[0], 90, 10)
	for _, s := range servers {
		got, err := s.heartbeat("berlin", api.Heartbeat{Capacity: api.Quantities{"cpu": "8"}})
		if err != nil || got.Status.LastHeartbeatAt == nil {
			t.Fatalf("Heartbeat() = %+v, %v", got, err)
		}
	}
	_, err := servers[1].heartbeat("nowhere", api.Heartbeat{})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Status != http.StatusNotFound {
		t.Fatalf("Heartbeat() of an unknown cluster: error %v", err)
	}
}

// TestServersThatDemandCertificatesReachEachOther checks that each server presents its own certificate to the others.
func TestServersThatDemandCertificatesReachEachOther(t *testing.T) {
	t.Parallel()
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile, c.Lease = []string{externalEtcd(t)}, filepath.Join(t.TempDir(), "seal.key"), lease
	c.TLSCertFile, c.TLSKeyFile = selfSigned(t)
	c.ClientCAFile, c.PeerCAFile = c.TLSCertFile, c.TLSCertFile
	known := func(o *client.Options) {
		o.CACertFile, o.ClientCertFile, o.ClientKeyFile = c.TLSCertFile, c.TLSCertFile, c.TLSKeyFile
	}
	leader, other := start(t, c, known), start(t, c, known)
	leader.leads()
	if web := fillFleet(other, 90, 10); !slices.Equal(web.Status.Clusters, []string{"berlin"}) {
		t.Fatalf("clusters %v, want berlin", web.Status.Clusters)
	}
	if got, err := other.heartbeat("berlin", api.Heartbeat{}); err != nil || got.Status.LastHeartbeatAt == nil {
		t.Fatalf("a heartbeat: %+v, %v", got, err)
	}
}

// writes returns the number of objects that etcd has written.
func writes(t *testing.T, etcd *clientv3.Client) (n int64) {
	t.Helper()
	resp, err := etcd.Get(t.Context(), "/v1/", clientv3.WithPrefix(), clientv3.WithKeysOnly())
	if err != nil {
		t.Fatal(err)
	}
	for _, kv := range resp.Kvs {
		if !strings.HasPrefix(string(kv.Key), "/v1/sys/") {
			n += kv.Version
		}
	}
	if n == 0 {
		t.Fatal("no objects found")
	}
	return n
}

// heartbeatsTaken returns how many heartbeats a server has received from agents.
func (s *runningServer) heartbeatsTaken() string {
	s.t.Helper()
	status, page := s.request(http.MethodGet, "/metrics", "", "")
	if status != http.StatusOK {
		s.t.Fatalf("/metrics: %d %s", status, page)
	}
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, "scheduler_http_requests_total{") && strings.Contains(line, "/heartbeat") {
			return line
		}
	}
	return ""
}

// TestAgentsMayTalkToAnyServer: what reaches the one that leads through another counts,
// is shown everywhere, and costs the store nothing where it says nothing new, also over
// a change of leader.
func TestAgentsMayTalkToAnyServer(t *testing.T) {
	servers, etcd := several(t, 3)
	leader, followers := servers[0], servers[1:]
	key := api.Key{Kind: api.KindCluster, Name: "edge"}
	edge := &api.Cluster{Metadata: api.Metadata{Name: key.Name}}
	// The grace period outlasts any pause of a busy machine.
	edge.Spec.Health = &api.HealthSpec{Interval: "20s", FailureThreshold: 3, SuccessThreshold: 1}
	put(leader, edge)
	report := api.Heartbeat{Capacity: api.Quantities{"cpu": "8"}, Allocated: api.Quantities{"cpu": "1"}}
	beat := func(s *runningServer) *api.Cluster {
		t.Helper()
		got, err := s.heartbeat(key.Name, report)
		if err != nil {
			t.Fatal(err)
		}
		if got.Status.State != api.StateOnline || got.Status.Allocated["cpu"] != "1" {
			t.Fatalf("unexpected status %+v in the answer to a heartbeat", got.Status)
		}
		return got
	}
	beat(leader)
	for _, s := range followers {
		eventually.True(t, "heartbeats are relayed in batches", func() bool {
			before := leader.heartbeatsTaken()
			beat(s)
			return leader.heartbeatsTaken() == before
		})
	}
	before := writes(t, etcd)
	version := get[*api.Cluster](leader, key).Metadata.ResourceVersion
	var last time.Time
	for i := range 30 {
		got := beat(followers[i%2])
		if got.Metadata.ResourceVersion != version || !got.Status.LastHeartbeatAt.After(last) {
			t.Fatalf("heartbeat at %s, previously at %s; version %s, previously %s", got.Status.LastHeartbeatAt, last, got.Metadata.ResourceVersion, version)
		}
		last = *got.Status.LastHeartbeatAt
	}
	if after := writes(t, etcd); after != before {
		t.Errorf("%d writes without a change", after-before)
	}
	for _, s := range servers {
		eventually.True(t, "every server shows the last heartbeat", func() bool {
			return get[*api.Cluster](s, key).Status.LastHeartbeatAt.Equal(last)
		})
	}
	// A heartbeat that reports a change is stored, whichever server receives it.
	report.Capacity["cpu"] = "16"
	if got := beat(followers[0]); got.Status.Capacity["cpu"] != "16" || got.Metadata.ResourceVersion == version {
		t.Errorf("unexpected status %+v in the answer to a report", got.Status)
	}
	last = *beat(followers[1]).Status.LastHeartbeatAt
	_, err := followers[1].heartbeat("nowhere", api.Heartbeat{})
	if p, ok := errors.AsType[*api.Problem](err); !ok || p.Status != http.StatusNotFound {
		t.Errorf("Heartbeat() of an unknown cluster: error %v", err)
	}
	eventually.True(t, "the other servers have received it", func() bool {
		return get[*api.Cluster](followers[0], key).Status.LastHeartbeatAt.Equal(last)
	})
	// The next leader only knows the heartbeats that it has received, and grants a full grace period.
	if err := leader.stop(); err != nil {
		t.Fatal(err)
	}
	followers[0].leads()
	if s := get[*api.Cluster](followers[0], key).Status; s.State != api.StateOnline || s.LastHeartbeatAt.Before(last) {
		t.Errorf("after the change of the leader: state %s, last heartbeat at %s, previously at %s", s.State, s.LastHeartbeatAt, last)
	}
	eventually.True(t, "heartbeats reach the next leader", func() bool {
		got, err := followers[1].client.Heartbeat(t.Context(), key.Name, report)
		return err == nil && got.Status.State == api.StateOnline && got.Status.LastHeartbeatAt.After(last)
	})
}

// TestHeartbeatsAreHandedOverByServersAlone: who is not one of them is refused, with a
// token and without.
func TestHeartbeatsAreHandedOverByServersAlone(t *testing.T) {
	servers, _ := several(t, 2)
	for _, s := range servers {
		for _, body := range []string{"", "{}", `{"heartbeats":[{"cluster":"berlin"}]}`, "v1.00000000.AAAA"} {
			if status, text := s.request(http.MethodPost, "/v1/heartbeats", "", body); status != http.StatusForbidden {
				t.Errorf("%q: got %d %s, want 403", body, status, text)
			}
		}
	}
}

// TestAPreviewIsKeptByAnyServer: it outlives the one that made it.
func TestAPreviewIsKeptByAnyServer(t *testing.T) {
	servers, _ := several(t, 2)
	fillFleet(servers[1], 90, 10)
	for i, maker := range []*runningServer{servers[1], servers[0]} {
		p := placement("shop", fmt.Sprint("new-", i))
		p.SetDefaults()
		var preview *api.Preview
		err := maker.repeated(func() (err error) {
			preview, err = maker.client.Preview(t.Context(), p)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		other := servers[i]
		if i == 1 {
			if err := maker.stop(); err != nil {
				t.Fatal(err)
			}
			other.leads()
		}
		var stored api.Object
		err = other.repeated(func() (err error) {
			stored, err = other.client.Put(t.Context(), p, client.PutOptions{PreviewToken: preview.ID})
			return err
		})
		if err != nil {
			t.Fatalf("commit at the other server: %v", err)
		}
		if got, ok := stored.(*api.Placement); !ok || !slices.Equal(got.Status.Clusters, []string{"berlin"}) {
			t.Errorf("stored %+v, want it on berlin", stored)
		}
	}
}

// TestAServerThatLosesItsLeaseFollows: it goes on answering, and leads again when it is
// its turn. No decision moves.
func TestAServerThatLosesItsLeaseFollows(t *testing.T) {
	t.Parallel()
	servers, etcd := severalFor(t, 2, 9*time.Second) // a third of it passes until a server notices
	fillFleet(servers[0], 90, 10)
	before := toJSON(t, servers[0].objects())
	for turn := range 3 {
		was, next := servers[turn%2], servers[(turn+1)%2]
		resp, err := etcd.Get(t.Context(), "/v1/sys/live/servers/", clientv3.WithPrefix(), clientv3.WithSort(clientv3.SortByCreateRevision, clientv3.SortAscend))
		if err != nil || len(resp.Kvs) != 2 {
			t.Fatalf("%d candidates, %v, want 2", len(resp.Kvs), err)
		}
		if _, err := etcd.Revoke(t.Context(), clientv3.LeaseID(resp.Kvs[0].Lease)); err != nil {
			t.Fatal(err)
		}
		next.leads()
		eventually.True(t, "the former leader follows", func() bool {
			info, err := was.client.Server(t.Context())
			return err == nil && !info.Leader && len(info.Servers) == 2
		})
		for _, s := range servers {
			if after := toJSON(t, s.objects()); after != before {
				t.Fatalf("turn %d: objects before:\n%s\nafterwards:\n%s", turn, before, after)
			}
		}
	}
	decide(t, servers[0], servers[1], "paris")
	decide(t, servers[1], servers[0], "berlin")
}

// TestAServerWithAnotherKeyIsRefused: neither could read the secrets that the other
// one writes. Where no other server is there and no secret either, any key will do.
func TestAServerWithAnotherKeyIsRefused(t *testing.T) {
	c := testConfig("")
	c.EtcdEndpoints, c.KeyFile, c.Lease, c.Name = []string{externalEtcd(t)}, filepath.Join(t.TempDir(), "seal.key"), lease, "first"
	first := start(t, c)
	other := c
	other.KeyFile, other.Name = filepath.Join(t.TempDir(), "seal.key"), "second"
	refuse := func(words ...string) {
		t.Helper()
		logger, _, err := newLogger(other, io.Discard)
		if err != nil {
			t.Fatal(err)
		}
		var said bytes.Buffer
		err = run(t.Context(), other, logger, &said)
		for _, word := range words {
			if err == nil || !strings.Contains(err.Error(), word) {
				t.Fatalf("the server ended with %v; want %q", err, word)
			}
		}
		if said.Len() > 0 {
			t.Fatalf("the server became ready: %s", &said)
		}
	}
	refuse("key-file: "+other.KeyFile, `the server "first" at `+first.url, "use the same key file for all servers")
	put(first, placement("shop", "web")) // it still works
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	first = start(t, other)
	costs := staticProvider("costs", nil)
	costs.Spec = api.MetricsProviderSpec{Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: "http://127.0.0.1:1"}, BearerToken: api.NewSecret("s3cret")}
	put(first, costs)
	if err := first.stop(); err != nil {
		t.Fatal(err)
	}
	other = c
	refuse(`metrics_provider "costs"`, "it needs the key with id")
}

// TestTokensCountOnEveryServerAtOnce checks that a token created through one server is accepted by all, and that a
// revoked token is accepted by none.
func TestTokensCountOnEveryServerAtOnce(t *testing.T) {
	t.Parallel()
	servers, _ := several(t, 3)
	ask := func(s *runningServer, method, path, token, body string, want int) []byte {
		t.Helper()
		request, err := http.NewRequestWithContext(t.Context(), method, s.url+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		request.Header.Set("Content-Type", "application/json")
		if token != "" {
			request.Header.Set("Authorization", "Bearer "+token)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		text, _ := io.ReadAll(answer.Body)
		if answer.StatusCode != want {
			t.Fatalf("%s %s: %s %s, want %d", method, path, answer.Status, text, want)
		}
		return text
	}
	var admin, made struct{ ID, Token string }
	create := func(s *runningServer, role string, into any) {
		t.Helper()
		if err := json.Unmarshal(ask(s, http.MethodPost, "/v1/tokens", admin.Token, `{"role":"`+role+`"}`, http.StatusCreated), into); err != nil {
			t.Fatal(err)
		}
	}
	create(servers[0], "admin", &admin)
	ask(servers[1], http.MethodGet, "/v1/clusters", "", "", http.StatusUnauthorized)
	for i := range 30 {
		one, next := servers[i%3], servers[(i+1)%3]
		create(one, "viewer", &made)
		ask(next, http.MethodGet, "/v1/clusters", made.Token, "", http.StatusOK)
		ask(one, http.MethodDelete, "/v1/tokens/"+made.ID, admin.Token, "", http.StatusNoContent)
		ask(next, http.MethodGet, "/v1/clusters", made.Token, "", http.StatusUnauthorized)
	}
}

// TestServerWhoseTermEndedDoesNotLead checks that a server says so at once, before the parts that only the leader has
// have stopped.
func TestServerWhoseTermEndedDoesNotLead(t *testing.T) {
	term, end := context.WithCancel(t.Context())
	var l leadership
	if l.Leads() {
		t.Error("Leads() = true before the first term")
	}
	l.current.Store(&duties{term: term})
	if !l.Leads() {
		t.Error("Leads() = false during the term")
	}
	end()
	if l.Leads() {
		t.Error("Leads() = true after the term")
	}
}
