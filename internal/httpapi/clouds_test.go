package httpapi

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/openstack"
)

const oneZone = `{"collector":"c","sequence":1,"full":true,"regions":[{"name":"R","full":true,"zones":[{"name":"z","hosts":1,"available":{"cpu":"4","storage/ssd":"10Gi"}}]}]}`

// TestReportCloud checks that the collector gets the signals' answer to a report.
func TestReportCloud(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clouds/paris", `{"spec":{}}`)
	for name, c := range map[string]struct {
		path, body string
		changed    bool
		err        error
		status     int
		detail     string
	}{
		"new":             {body: oneZone, changed: true, status: 200},
		"unchanged":       {body: oneZone, status: 204},
		"out of sequence": {body: oneZone, err: fmt.Errorf("x: %w", &openstack.SequenceError{Expected: 3}), status: 409, detail: "cloud \"paris\": the report is out of sequence: send number 3 or a full report"},
		"no previous report": {
			body: oneZone, err: &openstack.SequenceError{}, status: 409, detail: "cloud \"paris\": there is no previous report: send a full one",
		},
		"cloud with credentials": {
			body: oneZone, err: fmt.Errorf("x: %w", openstack.ErrCollected), status: 422,
			detail: "cloud \"paris\": the server collects the capacity of the cloud itself, because it has the credentials; remove the credentials to push its capacity",
		},
		"cloud deleted meanwhile":  {body: oneZone, err: fmt.Errorf("x: %w", openstack.ErrNotFound), status: 404, detail: "cloud \"paris\" does not exist"},
		"unknown cloud":            {path: "/v1/clouds/rome/resources", body: oneZone, status: 404, detail: "cloud \"rome\" does not exist"},
		"no body":                  {body: "", status: 400},
		"not JSON":                 {body: "{", status: 400},
		"unknown field":            {body: `{"collector":"c","sequence":1,"zones":[]}`, status: 422},
		"no sequence number":       {body: `{"collector":"c"}`, status: 422},
		"amount is not a quantity": {body: strings.Replace(oneZone, `"4"`, `"four"`, 1), status: 422},
		"negative":                 {body: strings.Replace(oneZone, `"4"`, `"-4"`, 1), status: 422},
		"negative flavor":          {body: strings.Replace(oneZone, `"name":"R"`, `"name":"R","flavors":[{"id":"1","name":"m1","vcpus":-1,"memory_mib":1}]`, 1), status: 422},
		"flavor without a name":    {body: strings.Replace(oneZone, `"name":"R"`, `"name":"R","flavors":[{"id":"1","vcpus":1,"memory_mib":1}]`, 1), status: 422},
		"zone twice":               {body: strings.Replace(oneZone, `[{"name":"z"`, `[{"name":"z"},{"name":"z"`, 1), status: 422},
		"error and capacity": {
			body: strings.Replace(oneZone, `"name":"R"`, `"name":"R","error":"x"`, 1), status: 422,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asked := 0
			s.signals.report = func(cloud string, report api.CloudReport) (int64, bool, error) {
				asked++
				if cloud != "paris" || report.Collector != "c" || report.Regions[0].Zones[0].Available["storage/ssd"] != "10Gi" {
					t.Errorf("%s: unexpected report %+v", cloud, report)
				}
				return s.fleet.Snapshot().Revision(), c.changed, c.err
			}
			path := c.path
			if path == "" {
				path = "/v1/clouds/paris/resources"
			}
			a := s.do(http.MethodPut, path, c.body)
			if a.StatusCode != c.status {
				t.Fatalf("got %d %s, want %d", a.StatusCode, a.body, c.status)
			}
			switch {
			case c.status >= 400:
				if p := a.problem(t); c.detail != "" && p.Detail != c.detail {
					t.Errorf("got %s, want %s", p.Detail, c.detail)
				}
			case c.status == 204 && len(a.body) > 0:
				t.Errorf("204 with the body %s", a.body)
			case c.status == 200 && decodeAs[api.Cloud](t, a).Metadata.Name != "paris":
				t.Errorf("got %s", a.body)
			}
			if reached := c.detail != "" && c.path == "" || c.status < 300; reached != (asked == 1) {
				t.Errorf("the signals were called %d times", asked)
			}
		})
	}
}

func TestLiveOpenStack(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clouds/paris", `{"spec":{}}`)
	const path = "/v1/clouds/paris/openstack-projects"
	var got api.LiveOptions
	answer := &api.LiveOpenStack{Projects: []api.LiveProject{{ID: "1", Name: "red", Enabled: true, Tags: []string{"a"}}}}
	var failing error
	s.signals.live = func(_ string, options api.LiveOptions) (*api.LiveOpenStack, error) {
		got = options
		return answer, failing
	}
	for query, want := range map[string]api.LiveOptions{
		"": {}, "?tags=a,b": {Tags: []string{"a", "b"}}, "?enabled=false": {Disabled: true}, "?enabled=true&tags=a": {Tags: []string{"a"}},
	} {
		a := s.do(http.MethodGet, path+query, "")
		if live := decodeAs[api.LiveOpenStack](t, a); a.StatusCode != 200 || len(live.Projects) != 1 || live.Projects[0].Name != "red" {
			t.Errorf("%s: unexpected answer %d %s", query, a.StatusCode, a.body)
		}
		if fmt.Sprint(got) != fmt.Sprint(want) {
			t.Errorf("%s: asked for %+v, want %+v", query, got, want)
		}
	}
	for _, query := range []string{"?tags=a,,b", "?enabled=perhaps", "?other=1"} {
		if a := s.do(http.MethodGet, path+query, ""); a.StatusCode != 422 {
			t.Errorf("%s: got %d %s, want 422", query, a.StatusCode, a.body)
		}
	}
	for _, c := range []struct {
		err    error
		status int
		detail string
	}{
		{fmt.Errorf("x: %w", openstack.ErrNotFound), 404, "cloud \"paris\" does not exist"},
		{fmt.Errorf("x: %w", openstack.ErrNoCredentials), 409, "cloud \"paris\" has no credentials: set spec.openstack, so that the server can query its OpenStack"},
		{&openstack.Failure{Reason: api.ReasonUnauthorized, Message: "logging in: the user is refused"}, 502, "cloud \"paris\": logging in: the user is refused"},
	} {
		failing = c.err
		if a := s.do(http.MethodGet, path, ""); a.StatusCode != c.status || a.problem(t).Detail != c.detail {
			t.Errorf("got %d %s, want %d %s", a.StatusCode, a.body, c.status, c.detail)
		}
	}
	if a := s.do(http.MethodGet, "/v1/clouds/rome/openstack-projects", ""); a.StatusCode != 404 {
		t.Errorf("unknown cloud: got %d %s, want 404", a.StatusCode, a.body)
	}
}

// TestCloudPermissions checks that agents may push, that tokens limited to namespaces may do so for the clouds of these
// namespaces, and that they only see the projects of these.
func TestCloudPermissions(t *testing.T) {
	s := startServer(t, authenticated, func(o *Options) { o.LoginFailureBurst = 1000 })
	s.signals.live = func(string, api.LiveOptions) (*api.LiveOpenStack, error) {
		return &api.LiveOpenStack{Projects: []api.LiveProject{}}, nil
	}
	tokens := []string{
		s.addToken(auth.RoleAdmin), s.addToken(auth.RoleEditor), s.addToken(auth.RoleViewer), s.addToken(auth.RoleAgent),
		s.addToken(auth.RoleEditor, "shop"), s.addToken(auth.RoleViewer, "shop"), s.addToken(auth.RoleAgent, "shop"), "",
	}
	s.token = tokens[0]
	s.mustPut("/v1/clouds/shared", `{"spec":{}}`)
	s.mustPut("/v1/clouds/shops", `{"spec":{"namespace":"shop"}}`)
	s.mustPut("/v1/clouds/others", `{"spec":{"namespace":"other"}}`)
	for _, c := range []struct {
		method, path string
		want         []int
	}{
		{http.MethodPut, "/v1/clouds/shared/resources", []int{204, 204, 403, 204, 403, 403, 403, 401}},
		{http.MethodPut, "/v1/clouds/shops/resources", []int{204, 204, 403, 204, 204, 403, 204, 401}},
		{http.MethodPut, "/v1/clouds/others/resources", []int{204, 204, 403, 204, 403, 403, 403, 401}},
		{http.MethodPut, "/v1/clouds/nothing/resources", []int{404, 404, 403, 404, 404, 403, 404, 401}},
		{http.MethodGet, "/v1/clouds/shared/openstack-projects", []int{200, 200, 200, 403, 403, 403, 403, 401}},
		{http.MethodGet, "/v1/clouds/shops/openstack-projects", []int{200, 200, 200, 403, 200, 200, 403, 401}},
		{http.MethodGet, "/v1/clouds/others/openstack-projects", []int{200, 200, 200, 403, 403, 403, 403, 401}},
	} {
		for i, token := range tokens {
			s.token = token
			body := ""
			if c.method == http.MethodPut {
				body = oneZone
			}
			if a := s.do(c.method, c.path, body); a.StatusCode != c.want[i] {
				t.Errorf("%s %s with token %d: %d %s, want %d", c.method, c.path, i, a.StatusCode, a.body, c.want[i])
			}
		}
	}
}

func FuzzReportCloud(f *testing.F) {
	s := startServer(f)
	s.mustPut("/v1/clouds/paris", `{"spec":{}}`)
	f.Add([]byte(oneZone))
	f.Add([]byte(`{"collector":"c","sequence":2,"error":"no response in time","reason":"Unauthorized"}`))
	f.Add([]byte(`{"collector":"c","sequence":2,"regions":[{"name":"R","error":"x","failures":3},{"name":"S","removed_zones":["a"],"flavors":[{"id":"1","name":"s"}],"volume_types":[]}]}`))
	for _, seed := range hostileDocuments {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		w := httptest.NewRecorder()
		s.handler.ServeHTTP(w, httptest.NewRequest(http.MethodPut, "/v1/clouds/paris/resources?wait=0s", strings.NewReader(string(body))))
		if w.Code >= 500 {
			t.Fatalf("%d %s for %q", w.Code, w.Body, body)
		}
		if w.Code >= 400 {
			answer{&http.Response{StatusCode: w.Code, Header: w.Header()}, w.Body.Bytes()}.problem(t)
		}
	})
}
