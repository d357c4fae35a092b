package main

import (
	"encoding/base64"
	"fmt"
	"net"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// TestLoopbackOnly checks that listening on an address that other machines can reach blocks loopback in users' URLs,
// whichever setting it is.
func TestLoopbackOnly(t *testing.T) {
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	new(config).define(flags)
	flags.VisitAll(func(f *pflag.Flag) {
		if !strings.HasSuffix(f.Name, "listen") {
			return
		}
		for address, open := range map[string]bool{"127.0.0.1:0": true, "localhost:0": true, "[::1]:0": true, "0.0.0.0:0": false, "[::]:0": false, ":0": false, "10.1.2.3:0": false} {
			var c config
			own := pflag.NewFlagSet("serve", pflag.ContinueOnError)
			c.define(own)
			if err := own.Set(f.Name, address); err != nil {
				t.Fatal(err)
			}
			network, err := c.network()
			if err != nil {
				t.Fatal(err)
			}
			if err := network.CheckHost("127.0.0.1"); (err == nil) != open {
				t.Errorf("--%s=%s: connection to loopback: %v", f.Name, address, err)
			}
		}
	})
}

// victim starts a server that only the scheduler can reach, and counts its requests.
func victim(t *testing.T) (*httptest.Server, *atomic.Int64) {
	var visits atomic.Int64
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("hush"))
	}))
	s.Config.ConnState = func(_ net.Conn, state http.ConnState) {
		if state == http.StateNew {
			visits.Add(1)
		}
	}
	s.Start()
	t.Cleanup(s.Close)
	return s, &visits
}

// kubeconfigOf returns a kubeconfig with a token; proxy may be empty.
func kubeconfigOf(server, proxy string) api.Secret {
	if proxy != "" {
		proxy = ", proxy-url: \"" + proxy + "\""
	}
	return api.NewSecret(fmt.Sprintf(`
apiVersion: v1
kind: Config
current-context: c
contexts: [{name: c, context: {cluster: c, user: u}}]
clusters: [{name: c, cluster: {server: "%s"%s}}]
users: [{name: u, user: {token: %s}}]
`, server, proxy, base64.StdEncoding.EncodeToString([]byte("t"))))
}

// TestOutbound checks that the server never connects to an address that its policy rejects, in whichever field users
// put it, and that it says why.
func TestOutbound(t *testing.T) {
	t.Run("reached by others", func(t *testing.T) {
		c := testConfig(t.TempDir())
		c.Listen, c.Insecure = "0.0.0.0:0", true
		testOutbound(t, c, "it is a loopback address, which is allowed only while the server itself listens on loopback alone")
	})
	t.Run("denied", func(t *testing.T) {
		c := testConfig(t.TempDir())
		c.OutboundDeny = []string{"127.0.0.0/8", "::1"}
		testOutbound(t, c, "--outbound-deny lists")
	})
}

func testOutbound(t *testing.T, c config, because string) {
	hidden, visits := victim(t)
	_, port, err := net.SplitHostPort(hidden.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	// As a name, so that only connecting shows where it leads.
	url := "http://localhost:" + port
	c.WebhookListen = "127.0.0.1:0"
	s := start(t, c)

	provider := func(name string, spec api.MetricsProviderSpec) api.Object {
		return put(s, &api.MetricsProvider{Metadata: api.Metadata{Name: name, Namespace: "shop"}, Spec: spec})
	}
	cluster := func(name string, spec api.ClusterSpec) api.Object {
		return put(s, &api.Cluster{Metadata: api.Metadata{Name: name}, Spec: spec})
	}
	kubernetes := func(server, proxy string) *api.KubernetesSpec {
		return &api.KubernetesSpec{Kubeconfig: kubeconfigOf(server, proxy)}
	}
	objects := []api.Object{
		provider("prometheus", api.MetricsProviderSpec{Type: api.ProviderPrometheus, Prometheus: &api.PrometheusSpec{URL: url}}),
		provider("influx", api.MetricsProviderSpec{Type: api.ProviderInflux, Influx: &api.InfluxSpec{URL: url, Bucket: "b", Org: "o"}}),
		provider("kafka", api.MetricsProviderSpec{Type: api.ProviderKafka, Kafka: &api.KafkaSpec{URL: url, Table: "t", ComparisonColumn: "c", ValueColumn: "v"}}),
		cluster("probed", api.ClusterSpec{Health: &api.HealthSpec{URL: url, Interval: "1m", FailureThreshold: 1}}),
		cluster("watched", api.ClusterSpec{Kubernetes: kubernetes(url, "")}),
		cluster("proxied", api.ClusterSpec{Kubernetes: kubernetes("https://198.51.100.1:6443", url)}),
		cluster("split", api.ClusterSpec{Kubernetes: kubernetes(url, ""), Spot: &api.SpotSpec{Enabled: true}}),
		put(s, &api.Cloud{Metadata: api.Metadata{Name: "stack"}, Spec: api.CloudSpec{OpenStack: &api.OpenStackSpec{
			AuthURL: url, Username: "u", Password: api.NewSecret("p"), ProjectName: "p",
		}}}),
	}
	for _, object := range objects {
		key := api.KeyOf(object)
		eventually.True(t, "a condition of "+key.String()+" says why nothing is connected to", func() bool {
			return slices.ContainsFunc(*api.ConditionsOf(get[api.Object](s, key)), func(c api.Condition) bool {
				return strings.Contains(c.Message, because)
			})
		})
	}
	if _, err := s.client.OpenStackProjects(t.Context(), "stack", api.LiveOptions{}); err == nil || !strings.Contains(err.Error(), because) {
		t.Errorf("OpenStackProjects(): error %v", err)
	}
	if n := visits.Load(); n != 0 {
		t.Errorf("%d connections to denied addresses", n)
	}
}
