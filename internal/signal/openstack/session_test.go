package openstack

import (
	"bytes"
	"encoding/pem"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// TestLoginOverTheNetwork covers certificates, addresses that do not respond, and servers that are not OpenStack.
func TestLoginOverTheNetwork(t *testing.T) {
	stack := newRecorded(t)
	secure := httptest.NewUnstartedServer(stack)
	secure.Config.ErrorLog = log.New(io.Discard, "", 0)
	secure.StartTLS()
	defer secure.Close()
	plain := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("<html>")) }))
	defer plain.Close()
	endless := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusCreated)
		for range 100 {
			if _, err := w.Write(bytes.Repeat([]byte(" "), 1<<20)); err != nil {
				return
			}
		}
	}))
	defer endless.Close()
	away := httptest.NewServer(http.RedirectHandler(plain.URL+"/v3/auth/tokens", http.StatusTemporaryRedirect))
	defer away.Close()
	certificate := string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: secure.Certificate().Raw}))
	for name, c := range map[string]struct {
		url  string
		set  func(*api.OpenStackSpec)
		want string // part of the message after the address
	}{
		"known certificate":   {url: secure.URL, set: func(s *api.OpenStackSpec) { s.CACert = certificate }},
		"unchecked":           {url: secure.URL, set: func(s *api.OpenStackSpec) { s.InsecureSkipVerify = true }},
		"with the version":    {url: secure.URL + "/v3/", set: func(s *api.OpenStackSpec) { s.CACert = certificate }},
		"unknown certificate": {url: secure.URL, want: "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		"refused":             {url: "http://" + proxytest.FreeAddress(t), want: "dial: connect: connection refused"},
		"not an OpenStack":    {url: plain.URL, want: "the response is 200 OK"},
		"endless":             {url: endless.URL, want: "the response is too large"},
		"redirects elsewhere": {url: away.URL, want: outbound.ErrRedirectedAway.Error()},
	} {
		t.Run(name, func(t *testing.T) {
			spec := access()
			spec.AuthURL = c.url
			if c.set != nil {
				c.set(spec)
			}
			for range 2 {
				s, err := login(t.Context(), spec, addresspolicy.OnLoopback(), nil)
				if err == nil {
					s.close()
				}
				switch {
				case c.want == "" && err != nil:
					t.Errorf("got %v", err)
				case c.want != "" && (err == nil || strings.TrimPrefix(err.Error(), "logging in at "+c.url+": ") != c.want):
					t.Errorf("got %v, want %s", err, c.want)
				}
			}
		})
	}
}

// TestLoginWays checks that the login request follows from the fields that are set.
func TestLoginWays(t *testing.T) {
	for name, c := range map[string]struct {
		spec api.OpenStackSpec
		want string
	}{
		"names": {
			api.OpenStackSpec{Username: "u", UserDomainName: "d", Password: api.NewSecret("right"), ProjectName: "p", ProjectDomainName: "e"},
			`{"auth":{"identity":{"methods":["password"],"password":{"user":{"domain":{"name":"d"},"name":"u","password":"right"}}},"scope":{"project":{"domain":{"name":"e"},"name":"p"}}}}`,
		},
		"ids": {
			api.OpenStackSpec{UserID: "1", Password: api.NewSecret("right"), ProjectID: "2"},
			`{"auth":{"identity":{"methods":["password"],"password":{"user":{"id":"1","password":"right"}}},"scope":{"project":{"id":"2"}}}}`,
		},
		"application credential": {
			api.OpenStackSpec{ApplicationCredentialID: "3", ApplicationCredentialSecret: api.NewSecret("right")},
			`{"auth":{"identity":{"application_credential":{"id":"3","secret":"right"},"methods":["application_credential"]}}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			var got string
			stack := newRecorded(t)
			stack.seen = func(body string) { got = body }
			spec := c.spec
			spec.AuthURL = keystoneURL
			s, err := login(t.Context(), &spec, addresspolicy.OnLoopback(), stack)
			if err != nil {
				t.Fatal(err)
			}
			s.close()
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

// FuzzAnswers checks that, for any response of an OpenStack, the result is valid amounts or an error.
func FuzzAnswers(f *testing.F) {
	paths := []string{
		"/v2.1/os-hypervisors/detail", "/v2.1/os-aggregates", "/v2.1/flavors/detail", "/resource_providers",
		"/resource_providers/d4688938-eb0c-44c0-98af-7407c346e43c/inventories", "/v3/acc4504980c04948b4bb3a5c5bdffc48/scheduler-stats/get_pools",
		"/v3/acc4504980c04948b4bb3a5c5bdffc48/types", "/v2.0/networks", "/v2.0/network-ip-availabilities",
	}
	for i, name := range []string{
		"nova-hypervisors-detail-2.87", "nova-aggregates", "nova-flavors-detail-all-2.87", "placement-resource-providers", "placement-rp-inventories",
		"cinder-scheduler-stats-pools-detail", "cinder-volume-types-is_public-none", "neutron-networks", "neutron-network-ip-availabilities",
	} {
		f.Add(byte(i), []byte(loadCapture(f, name).Body))
		f.Add(byte(i), []byte(`{"hypervisors":[null],"aggregates":[null],"flavors":[null],"pools":[null],"networks":null,"inventories":null}`))
	}
	f.Add(byte(0), []byte(`{"hypervisors":[{"id":1,"state":"up","status":"enabled","vcpus":-9223372036854775808,"vcpus_used":9223372036854775807,"memory_mb":-1,"memory_mb_used":1}]}`))
	f.Add(byte(4), []byte(`{"inventories":{"VCPU":{"total":9223372036854775807,"reserved":-1,"allocation_ratio":1e300}}}`))
	f.Fuzz(func(t *testing.T, which byte, body []byte) {
		stack := newRecorded(t)
		stack.reply(paths[int(which)%len(paths)], says(200, string(body)))
		got, err := collectOnce(t, stack, access())
		if err != nil {
			if strings.Contains(err.Error(), "right") {
				t.Fatalf("the message contains the password: %v", err)
			}
			return
		}
		report := api.CloudReport{Collector: "c", Sequence: 1, Regions: []api.CloudRegionReport{{Name: "r", Zones: got.Zones}}}
		for _, wrong := range report.Validate() {
			if !strings.HasSuffix(wrong.Field, ".name") { // zones have names that the OpenStack chooses
				t.Fatalf("%s: %s for %q", wrong.Field, wrong.Message, body)
			}
		}
	})
}
