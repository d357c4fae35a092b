package openstack

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"go.uber.org/goleak"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// capture is a recorded response of a real OpenStack.
type capture struct {
	Status int               `json:"status"`
	Header map[string]string `json:"headers"`
	Body   json.RawMessage   `json:"body"`
}

var captures sync.Map // by name

func loadCapture(t testing.TB, name string) capture {
	t.Helper()
	if c, ok := captures.Load(name); ok {
		return c.(capture)
	}
	data, err := os.ReadFile("testdata/captures/" + name + ".json")
	if err != nil {
		t.Fatal(err)
	}
	var c capture
	if err := json.Unmarshal(data, &c); err != nil {
		t.Fatal(err)
	}
	captures.Store(name, c)
	return c
}

// recorded is an OpenStack that returns recorded responses. A test changes them by path, for all regions or, with the
// host, for one.
type recorded struct {
	t        testing.TB
	mu       sync.Mutex
	password string
	regions  []string // in addition to RegionOne; a region's host is its name
	answers  map[string]func(r *http.Request) (status int, body []byte)
	asked    map[string]int
	tokens   map[string]bool
	issued   int
	maximum  string            // newest version of Nova's API
	newest   bool              // "latest" is the only version it takes
	without  string            // type of a service that is not in the catalog
	seen     func(body string) // called with the body of each login
}

func newRecorded(t testing.TB) *recorded {
	return &recorded{
		t: t, password: "right", maximum: "2.93", answers: map[string]func(*http.Request) (int, []byte){},
		asked: map[string]int{}, tokens: map[string]bool{},
	}
}

// answer sets the recorded response for a path, or for a host and a path.
func (o *recorded) answer(path, name string) {
	c := loadCapture(o.t, name)
	o.reply(path, func(*http.Request) (int, []byte) { return c.Status, c.Body })
}

func (o *recorded) reply(path string, f func(r *http.Request) (int, []byte)) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if f == nil {
		delete(o.answers, path)
		return
	}
	o.answers[path] = f
}

// requests returns the number of requests for a path, or for a host and a path.
func (o *recorded) requests(path string) int {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.asked[path]
}

func (o *recorded) setPassword(password string) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.password = password
}

// expire invalidates all tokens.
func (o *recorded) expire() {
	o.mu.Lock()
	defer o.mu.Unlock()
	clear(o.tokens)
}

// RoundTrip implements http.RoundTripper, without a network.
func (o *recorded) RoundTrip(r *http.Request) (*http.Response, error) {
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	w := httptest.NewRecorder()
	o.ServeHTTP(w, r)
	if err := r.Context().Err(); err != nil {
		return nil, err
	}
	resp := w.Result()
	resp.Request = r
	return resp, nil
}

// ServeHTTP implements http.Handler.
func (o *recorded) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	status, header, body := o.respond(r)
	for name, value := range header {
		w.Header().Set(name, value)
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_, _ = w.Write(body)
}

func (o *recorded) respond(r *http.Request) (int, map[string]string, []byte) {
	path := r.URL.Path
	o.mu.Lock()
	o.asked[path]++
	o.asked[r.URL.Hostname()+path]++
	special := o.answers[r.URL.Hostname()+path]
	if special == nil {
		special = o.answers[path]
	}
	known := o.tokens[r.Header.Get("X-Auth-Token")]
	o.mu.Unlock()
	if path != "/v3/auth/tokens" && !known {
		return http.StatusUnauthorized, nil, loadCapture(o.t, "error-401-wrong-password").Body
	}
	if special != nil {
		status, body := special(r)
		return status, nil, body
	}
	name := ""
	switch {
	case path == "/v3/auth/tokens":
		return o.login(r)
	case path == "/v2.1/os-hypervisors/detail":
		return o.hypervisors(r)
	case path == "/v2.1/os-aggregates":
		name = "nova-aggregates"
	case path == "/v2.1/flavors/detail" && r.URL.Query().Get("is_public") == "None":
		name = "nova-flavors-detail-all-2.87"
	case path == "/resource_providers":
		name = "placement-resource-providers"
	case strings.HasPrefix(path, "/resource_providers/"):
		return o.provider(path)
	case strings.HasSuffix(path, "/scheduler-stats/get_pools") && r.URL.Query().Get("detail") == "true":
		name = "cinder-scheduler-stats-pools-detail"
	case strings.HasSuffix(path, "/types") && r.URL.Query().Get("is_public") == "None":
		name = "cinder-volume-types-is_public-none"
	case path == "/v2.0/networks" && r.URL.Query().Get("router:external") == "true":
		return http.StatusOK, nil, []byte(`{"networks":[{"id":"8bdd917b-4ac9-4567-85f4-a2d66f1f17e0"}]}`)
	case path == "/v2.0/network-ip-availabilities":
		name = "neutron-network-ip-availabilities"
	case path == "/v3/projects" && r.URL.Query().Get("tags") == "ocm":
		name = "keystone-projects-tags-ocm"
	case path == "/v3/projects":
		name = "keystone-projects"
	case path == "/v3/auth/projects":
		name = "keystone-auth-projects"
	case path == "/v1/clustertemplates":
		name = "magnum-clustertemplates"
	case path == "/v1/clusters/detail":
		name = "magnum-clusters-detail"
	default:
		return http.StatusNotFound, nil, []byte(`{"error":{"code":404,"message":"not recorded: ` + path + `"}}`)
	}
	c := loadCapture(o.t, name)
	return c.Status, nil, c.Body
}

func (o *recorded) login(r *http.Request) (int, map[string]string, []byte) {
	data, err := io.ReadAll(r.Body)
	if err != nil {
		o.t.Error(err)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.seen != nil {
		o.seen(string(data))
	}
	if !bytes.Contains(data, []byte(`"password":"`+o.password+`"`)) && !bytes.Contains(data, []byte(`"secret":"`+o.password+`"`)) {
		return http.StatusUnauthorized, nil, loadCapture(o.t, "error-401-wrong-password").Body
	}
	o.issued++
	token := fmt.Sprint("token-", o.issued)
	o.tokens[token] = true
	return http.StatusCreated, map[string]string{"X-Subject-Token": token}, o.withRegions(loadCapture(o.t, "keystone-auth-tokens").Body)
}

// withRegions adds the other regions to the catalog.
func (o *recorded) withRegions(body []byte) []byte {
	var token map[string]map[string]any
	if err := json.Unmarshal(body, &token); err != nil {
		o.t.Error(err)
	}
	for _, service := range token["token"]["catalog"].([]any) {
		entry := service.(map[string]any)
		if entry["type"] == o.without {
			entry["type"] = "nothing"
		}
		endpoints := entry["endpoints"].([]any)
		for _, name := range o.regions {
			for _, e := range endpoints[:3] {
				endpoint := map[string]any{}
				for key, value := range e.(map[string]any) {
					endpoint[key] = value
				}
				endpoint["region"], endpoint["region_id"] = name, name
				endpoint["url"] = strings.Replace(endpoint["url"].(string), "127.0.0.1", strings.ToLower(name), 1)
				endpoints = append(endpoints, endpoint)
			}
		}
		entry["endpoints"] = endpoints
	}
	out, err := json.Marshal(token)
	if err != nil {
		o.t.Error(err)
	}
	return out
}

// hypervisors responds according to the version, as Nova does.
func (o *recorded) hypervisors(r *http.Request) (int, map[string]string, []byte) {
	version := r.Header.Get("X-Openstack-Nova-Api-Version")
	if r.Header.Get("Openstack-Api-Version") != "compute "+version {
		o.t.Errorf("the two version headers differ: %v", r.Header)
	}
	var c capture
	switch {
	case version == "latest":
		c = loadCapture(o.t, "nova-hypervisors-detail-2.88")
	case o.newest || version > o.maximum:
		c = loadCapture(o.t, "error-406-microversion-2.999")
	default:
		c = loadCapture(o.t, "nova-hypervisors-detail-"+version)
	}
	return c.Status, nil, c.Body
}

// provider derives Placement's responses from what Nova says about the hosts. Only those of one host were recorded; the
// others are like it.
func (o *recorded) provider(path string) (int, map[string]string, []byte) {
	var hosts struct {
		Hypervisors []shownHypervisor `json:"hypervisors"`
	}
	if err := json.Unmarshal(loadCapture(o.t, "nova-hypervisors-detail-2.87").Body, &hosts); err != nil {
		o.t.Error(err)
	}
	parts := strings.Split(path, "/")
	if parts[2] == "d4688938-eb0c-44c0-98af-7407c346e43c" {
		c := loadCapture(o.t, "placement-rp-"+parts[3])
		return c.Status, nil, c.Body
	}
	for _, h := range hosts.Hypervisors {
		if h.id() != parts[2] {
			continue
		}
		if parts[3] == "usages" {
			return http.StatusOK, nil, fmt.Appendf(nil, `{"usages":{"VCPU":%d,"MEMORY_MB":%d,"DISK_GB":1}}`, *h.VCPUsUsed, *h.MemoryMBUsed-512)
		}
		return http.StatusOK, nil, fmt.Appendf(nil, `{"inventories":{"VCPU":{"total":%d,"reserved":0,"allocation_ratio":4.0},"MEMORY_MB":{"total":%d,"reserved":512,"allocation_ratio":1.0}}}`, *h.VCPUs, *h.MemoryMB)
	}
	return http.StatusNotFound, nil, []byte(`{"errors":[]}`)
}

// hangs is a response that does not arrive in time.
func hangs(r *http.Request) (int, []byte) {
	<-r.Context().Done()
	return http.StatusGatewayTimeout, nil
}

// says responds with a status and a text.
func says(status int, body string) func(*http.Request) (int, []byte) {
	return func(*http.Request) (int, []byte) { return status, []byte(body) }
}

const keystoneURL = "http://127.0.0.1:5000/v3"

func access() *api.OpenStackSpec {
	return &api.OpenStackSpec{
		AuthURL: keystoneURL, Username: "admin", UserDomainName: "Default", Password: api.NewSecret("right"),
		ProjectName: "admin", ProjectDomainName: "Default", Interval: "60s", Timeout: "10s",
	}
}

// collectOnce collects RegionOne of an OpenStack.
func collectOnce(t testing.TB, o http.RoundTripper, spec *api.OpenStackSpec) (*api.CloudRegion, error) {
	t.Helper()
	s, err := login(t.Context(), spec, addresspolicy.OnLoopback(), o)
	if err != nil {
		return nil, err
	}
	defer s.close()
	return (&region{name: "RegionOne", session: s}).collect(t.Context())
}

// inBubble runs a subtest with a simulated clock.
func inBubble(t *testing.T, name string, f func(*testing.T)) {
	t.Run(name, func(t *testing.T) { synctest.Test(t, f) })
}

var epoch = time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
