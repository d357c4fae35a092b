package httpapi

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/spot"
)

// fakeSpot records announcements and returns what the test sets.
type fakeSpot struct {
	mu        sync.Mutex
	announced map[string]time.Time // by cluster/node
	err       error
	list      []api.DistributedWorkload
}

func (f *fakeSpot) Interrupt(_ context.Context, cluster, node string, deadline time.Time) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		f.announced[cluster+"/"+node] = deadline
	}
	return f.err
}

func (f *fakeSpot) Withdraw(_ context.Context, cluster, node string) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err == nil {
		delete(f.announced, cluster+"/"+node)
	}
	return f.err
}

func (f *fakeSpot) Distributions(string) ([]api.DistributedWorkload, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.list, f.err
}

func (f *fakeSpot) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.err = err
}

func (f *fakeSpot) deadline(node string) (at time.Time, announced bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	at, announced = f.announced[node]
	return at, announced
}

const nodePath = "/v1/clusters/eu-1/nodes/ip-10-0-0-1.ec2.internal/interruption"

// withSpot is the body of a cluster with a kubeconfig and a spot block.
func withSpot(spec string) string {
	return `{"spec":{` + spec + `"kubernetes":{"kubeconfig":` + kubeconfig("t") + `}}}`
}

var splitCluster = withSpot(`"spot":{"enabled":true},`)

// spotNow is the current time in tests about interruptions.
var spotNow = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

func startSpotServer(t testing.TB, adjust ...func(*Options)) (*testServer, *fakeSpot) {
	f := &fakeSpot{announced: map[string]time.Time{}}
	s := startServer(t, append(adjust, func(o *Options) {
		o.Spot = f
		o.Now = func() time.Time { return spotNow }
	})...)
	return s, f
}

func TestInterruptions(t *testing.T) {
	s, f := startSpotServer(t)
	s.mustPut("/v1/clusters/eu-1", splitCluster)
	s.mustPut("/v1/clusters/plain", withSpot(""))
	s.mustPut("/v1/clusters/off", withSpot(`"spot":{"enabled":false},`))
	s.mustPut("/v1/clusters/blind", `{"spec":{"spot":{"enabled":true}}}`)
	in := func(d time.Duration) string { return spotNow.Add(d).Format(time.RFC3339) }
	const node = "eu-1/ip-10-0-0-1.ec2.internal"
	for _, test := range []struct {
		name, path, body string
		status           int
		deadline         time.Duration
		text             string
	}{
		{"no body", nodePath, "", 200, 2 * time.Minute, ""},
		{"empty body", nodePath, "{}", 200, 2 * time.Minute, ""},
		{"deadline", nodePath, `{"deadline":"` + in(30*time.Second) + `"}`, 200, 30 * time.Second, ""},
		{"deadline in another time zone", nodePath, `{"deadline":"2026-03-01T13:01:00+01:00"}`, 200, time.Minute, ""},
		{"deadline now", nodePath, `{"deadline":"` + in(0) + `"}`, 200, 0, ""},
		{"deadline in a day", nodePath, `{"deadline":"` + in(24*time.Hour) + `"}`, 200, 24 * time.Hour, ""},
		{"deadline in the past", nodePath, `{"deadline":"` + in(-time.Second) + `"}`, 422, 0, "2026-03-01T11:59:59Z is in the past: it is 2026-03-01T12:00:00Z now"},
		{"deadline too far ahead", nodePath, `{"deadline":"` + in(24*time.Hour+time.Second) + `"}`, 422, 0, "is more than a day ahead"},
		{"deadline is not a time", nodePath, `{"deadline":"soon"}`, 422, 0, "deadline"},
		{"unknown field", nodePath, `{"at":"` + in(time.Minute) + `"}`, 422, 0, "at"},
		{"null", nodePath, `null`, 422, 0, "must be a JSON object"},
		{"not JSON", nodePath, `{`, 400, 0, ""},
		{"unknown cluster", strings.Replace(nodePath, "eu-1", "eu-2", 1), "", 404, 0, `cluster "eu-2" does not exist`},
		{"invalid node name", "/v1/clusters/eu-1/nodes/A_B/interruption", "", 404, 0, `cluster "eu-1" has no node "A_B"`},
		{"node name too long", "/v1/clusters/eu-1/nodes/" + strings.Repeat("n", 254) + "/interruption", "", 404, 0, "has no node"},
		{"spot not set", strings.Replace(nodePath, "eu-1", "plain", 1), "", 409, 0, `spot is not enabled for cluster "plain": set spec.spot.enabled`},
		{"spot disabled", strings.Replace(nodePath, "eu-1", "off", 1), "", 409, 0, `spot is not enabled for cluster "off"`},
		{"no kubeconfig", strings.Replace(nodePath, "eu-1", "blind", 1), "", 409, 0, `cluster "blind" has no kubeconfig: set spec.kubernetes.kubeconfig`},
	} {
		t.Run(test.name, func(t *testing.T) {
			f.announced = map[string]time.Time{}
			a := s.do(http.MethodPost, test.path, test.body)
			if a.StatusCode != test.status {
				t.Fatalf("got %d %s, want %d", a.StatusCode, a.body, test.status)
			}
			at, announced := f.deadline(node)
			if test.status != 200 {
				if len(f.announced) > 0 || !strings.Contains(strings.ReplaceAll(string(a.body), `\"`, `"`), test.text) {
					t.Errorf("answered %s, announced %t, want %q", a.body, announced, test.text)
				}
				a.problem(t)
				return
			}
			want := spotNow.Add(test.deadline)
			if got := decodeAs[api.Interruption](t, a); !announced || !at.Equal(want) || got.Deadline == nil || !got.Deadline.Equal(want) {
				t.Errorf("answered %s, announced %s, want %s", a.body, at, want)
			}
		})
	}
	s.do(http.MethodPost, nodePath, "")
	for range 2 {
		if a := s.do(http.MethodDelete, nodePath, ""); a.StatusCode != http.StatusNoContent || len(a.body) > 0 {
			t.Errorf("withdrawal: got %d %s, want 204", a.StatusCode, a.body)
		}
	}
	if at, announced := f.deadline(node); announced {
		t.Errorf("still announced with deadline %s", at)
	}
}

// TestSpotErrors checks that each error of the spot runner gets its own response, in every operation.
func TestSpotErrors(t *testing.T) {
	s, f := startSpotServer(t)
	s.mustPut("/v1/clusters/eu-1", splitCluster)
	for _, test := range []struct {
		err    error
		status int
		detail string
	}{
		{fmt.Errorf("of eu-1: %w", spot.ErrNotEnabled), 409, `spot is not enabled for cluster "eu-1": set spec.spot.enabled`},
		{fmt.Errorf("of eu-1: %w", spot.ErrNotConnected), 503, `cluster "eu-1" is not connected at present: its condition SpotReady says why; repeat the request`},
		{fmt.Errorf("of eu-1: %w", spot.ErrNoNode), 404, `cluster "eu-1" has no node "ip-10-0-0-1.ec2.internal"`},
		{fmt.Errorf("secret"), 500, "the server failed; its log says why"},
	} {
		f.fail(test.err)
		for _, request := range [][2]string{{http.MethodPost, nodePath}, {http.MethodDelete, nodePath}, {http.MethodGet, "/v1/clusters/eu-1/distributions"}} {
			if request[0] == http.MethodGet && test.status == 404 {
				continue
			}
			a := s.do(request[0], request[1], "")
			if p := a.problem(t); p.Status != test.status || p.Detail != test.detail || (test.status == 503) != (a.Header.Get("Retry-After") != "") {
				t.Errorf("%s after %v: %d %s, want %d %s", request[0], test.err, a.StatusCode, a.body, test.status, test.detail)
			}
		}
	}
}

// TestAServerThatSplitsNothing answers all the same.
func TestAServerThatSplitsNothing(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/eu-1", splitCluster)
	for _, request := range [][2]string{{http.MethodPost, nodePath}, {http.MethodDelete, nodePath}, {http.MethodGet, "/v1/clusters/eu-1/distributions"}} {
		if a := s.do(request[0], request[1], ""); a.StatusCode != 503 {
			t.Errorf("%s: got %d %s, want 503", request[0], a.StatusCode, a.body)
		}
	}
}

func split(kind, namespace, name string) api.DistributedWorkload {
	return api.DistributedWorkload{Kind: kind, Namespace: namespace, Name: name, Source: api.DistributionOfLabels, ClusterDistribution: api.ClusterDistribution{
		Cluster: "eu-1", Replicas: 5, Mode: api.ModeCustom, TargetOnDemand: 2, TargetSpot: 3, OnDemand: 2, Spot: 3, State: api.DistributionConverged,
	}}
}

func TestDistributionsAreListed(t *testing.T) {
	s, f := startSpotServer(t)
	s.mustPut("/v1/clusters/eu-1", splitCluster)
	const path = "/v1/clusters/eu-1/distributions"
	if a := s.do(http.MethodGet, path, ""); strings.TrimSpace(string(a.body)) != `{"items":[]}` {
		t.Errorf("no workloads: got %d %s", a.StatusCode, a.body)
	}
	f.list = []api.DistributedWorkload{
		split("StatefulSet", "shop", "a"), split("Deployment", "shop", "web"), split("Deployment", "shop", "api"), split("StatefulSet", "bank", "z"),
	}
	given := slices.Clone(f.list)
	a := s.do(http.MethodGet, path, "")
	got := decodeAs[distributionList](t, a)
	if want := []api.DistributedWorkload{given[3], given[2], given[1], given[0]}; !slices.Equal(got.Items, want) {
		t.Errorf("got %s\nwant %+v", a.body, want)
	}
	if !slices.Equal(f.list, given) {
		t.Error("the given list was sorted in place")
	}
	if want := `{"kind":"StatefulSet","namespace":"bank","name":"z","source":"labels","cluster":"eu-1","replicas":5,"mode":"custom","target_on_demand":2,"target_spot":3,"on_demand":2,"spot":3,"state":"converged"}`; !strings.Contains(string(a.body), want) {
		t.Errorf("got %s\nwant %s", a.body, want)
	}
	for path, want := range map[string]int{"/v1/clusters/none/distributions": 404, path + "?limit=1": 422} {
		if a := s.do(http.MethodGet, path, ""); a.StatusCode != want {
			t.Errorf("%s: got %d %s, want %d", path, a.StatusCode, a.body, want)
		}
	}
	s.mustPut("/v1/clusters/eu-1", withSpot(""))
	if a := s.do(http.MethodGet, path, ""); a.StatusCode != 409 {
		t.Errorf("without spot: got %d %s, want 409", a.StatusCode, a.body)
	}
}

// TestSpotPermissions checks that agents may announce interruptions for their clusters, that tokens limited to
// namespaces may do so for the clusters of these namespaces, and that they only see the workloads of these.
func TestSpotPermissions(t *testing.T) {
	s, f := startSpotServer(t, authenticated, func(o *Options) { o.LoginFailureBurst = 1000 })
	f.list = []api.DistributedWorkload{split("Deployment", "shop", "web"), split("Deployment", "bank", "web")}
	tokens := []string{
		s.addToken(auth.RoleAdmin), s.addToken(auth.RoleEditor), s.addToken(auth.RoleViewer), s.addToken(auth.RoleAgent),
		s.addToken(auth.RoleEditor, "shop"), s.addToken(auth.RoleViewer, "shop"), s.addToken(auth.RoleAgent, "shop"), "",
	}
	s.token = tokens[0]
	for name, namespace := range map[string]string{"shared": "", "shops": "shop", "others": "other"} {
		s.mustPut("/v1/clusters/"+name, withSpot(`"namespace":"`+namespace+`","spot":{"enabled":true},`))
	}
	for _, c := range []struct {
		cluster        string
		announce, read []int
	}{
		{"shared", []int{200, 200, 403, 200, 403, 403, 403, 401}, []int{200, 200, 200, 403, 200, 200, 403, 401}},
		{"shops", []int{200, 200, 403, 200, 200, 403, 200, 401}, []int{200, 200, 200, 403, 200, 200, 403, 401}},
		{"others", []int{200, 200, 403, 200, 403, 403, 403, 401}, []int{200, 200, 200, 403, 403, 403, 403, 401}},
		{"nothing", []int{404, 404, 403, 404, 404, 403, 404, 401}, []int{404, 404, 404, 403, 404, 404, 403, 401}},
	} {
		for i, token := range tokens {
			s.token = token
			path := "/v1/clusters/" + c.cluster + "/nodes/n1/interruption"
			if a := s.do(http.MethodPost, path, ""); a.StatusCode != c.announce[i] {
				t.Errorf("announce in %s with token %d: %d %s, want %d", c.cluster, i, a.StatusCode, a.body, c.announce[i])
			}
			want := c.announce[i]
			if want == 200 {
				want = 204
			}
			if a := s.do(http.MethodDelete, path, ""); a.StatusCode != want {
				t.Errorf("withdraw in %s with token %d: %d %s, want %d", c.cluster, i, a.StatusCode, a.body, want)
			}
			a := s.do(http.MethodGet, "/v1/clusters/"+c.cluster+"/distributions", "")
			if a.StatusCode != c.read[i] {
				t.Errorf("list in %s with token %d: %d %s, want %d", c.cluster, i, a.StatusCode, a.body, c.read[i])
			}
			if bound := i == 4 || i == 5; a.StatusCode == 200 && strings.Contains(string(a.body), "bank") == bound {
				t.Errorf("list in %s with token %d: %s", c.cluster, i, a.body)
			}
		}
	}
}

func FuzzInterruption(f *testing.F) {
	s, _ := startSpotServer(f)
	s.mustPut("/v1/clusters/eu-1", splitCluster)
	f.Add([]byte(`{"deadline":"2026-03-01T12:01:00Z"}`))
	f.Add([]byte(`{"deadline":"0000-01-01T00:00:00Z"}`))
	f.Add([]byte(`{"deadline":"9999-12-31T23:59:59.999999999+23:59"}`))
	for _, seed := range hostileDocuments {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPost, nodePath, strings.NewReader(string(body))))
		if w.Code >= 500 {
			t.Fatalf("%d %s for %q", w.Code, w.Body, body)
		}
		if w.Code >= 400 {
			answer{&http.Response{StatusCode: w.Code, Header: w.Header()}, w.Body.Bytes()}.problem(t)
			return
		}
		got := decodeAs[api.Interruption](t, answer{&http.Response{StatusCode: w.Code}, w.Body.Bytes()})
		if got.Deadline == nil || got.Deadline.Before(spotNow) || got.Deadline.Sub(spotNow) > 24*time.Hour {
			t.Fatalf("%s for %q", w.Body, body)
		}
	})
}
