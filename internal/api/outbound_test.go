package api

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// TestOutboundHosts checks that the address policy covers every field that holds an address. It
// fails for a new field that is not covered.
func TestOutboundHosts(t *testing.T) {
	fields := 0
	for _, info := range Kinds {
		object := info.New()
		var want []string
		fillAddresses(reflect.ValueOf(object.SpecPart()).Elem(), "spec", &want)
		known := map[string]bool{}
		for _, h := range outboundHostsOf(object) {
			if h.Host != strings.ReplaceAll(h.Field, "_", "-")+".example" {
				t.Errorf("%s: the host of %s is %q", info.Kind, h.Field, h.Host)
			}
			known[h.Field] = true
		}
		for _, field := range want {
			fields++
			if !known[field] {
				t.Errorf("%s: the address in %s is not checked against the address policy", info.Kind, field)
			}
		}
	}
	if fields < 5 {
		t.Errorf("only %d fields with addresses", fields)
	}
}

// fillAddresses sets every field whose name indicates an address.
func fillAddresses(v reflect.Value, path string, filled *[]string) {
	switch v.Kind() {
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAddresses(v.Elem(), path, filled)
	case reflect.Struct:
		for i := range v.NumField() {
			if !v.Type().Field(i).IsExported() {
				continue
			}
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			at := path + "." + name
			if (name == "url" || strings.HasSuffix(name, "_url") || strings.HasSuffix(name, "endpoint")) && v.Field(i).Kind() == reflect.String {
				v.Field(i).SetString("http://" + strings.ReplaceAll(at, "_", "-") + ".example/")
				*filled = append(*filled, at)
				continue
			}
			fillAddresses(v.Field(i), at, filled)
		}
	default: // contains no addresses
	}
}

func TestCheckOutbound(t *testing.T) {
	policy, err := addresspolicy.New(addresspolicy.Options{Deny: []string{"*.corp"}})
	if err != nil {
		t.Fatal(err)
	}
	provider := func(url string) Object {
		return &MetricsProvider{Spec: MetricsProviderSpec{Prometheus: &PrometheusSpec{URL: url}}}
	}
	watched := func(server, proxy string) Object {
		return &Cluster{Spec: ClusterSpec{Kubernetes: &KubernetesSpec{Kubeconfig: NewSecret(fmt.Sprintf(
			`{"clusters":[{"name":"c","cluster":{"server":%q,"proxy-url":%q}}]}`, server, proxy))}}}
	}
	for _, c := range []struct {
		object      Object
		field, want string
	}{
		{provider("http://prometheus:9090"), "", ""},
		{provider("http://10.1.2.3"), "", ""},
		{provider("http://127.0.0.1:9090"), "spec.prometheus.url", "must not connect to 127.0.0.1: it is a loopback address"},
		{provider("http://[::ffff:127.0.0.1]"), "spec.prometheus.url", "loopback"},
		{provider("http://a.corp"), "spec.prometheus.url", "--outbound-deny lists *.corp"},
		{&MetricsProvider{Spec: MetricsProviderSpec{Kafka: &KafkaSpec{URL: "http://a.corp"}}}, "spec.kafka.url", "deny"},
		{&MetricsProvider{Spec: MetricsProviderSpec{Influx: &InfluxSpec{URL: "http://a.corp"}}}, "spec.influx.url", "deny"},
		{&MetricsProvider{Spec: MetricsProviderSpec{HTTPJSON: &HTTPJSONSpec{URL: "http://a.corp/${region}?c=${cluster.name}"}}}, "spec.http_json.url", "deny"},
		{&Cluster{Spec: ClusterSpec{Health: &HealthSpec{URL: "http://a.corp"}}}, "spec.health.url", "deny"},
		{&Cloud{Spec: CloudSpec{OpenStack: &OpenStackSpec{AuthURL: "http://a.corp"}}}, "spec.openstack.auth_url", "deny"},
		{watched("https://kube:6443", ""), "", ""},
		{watched("https://hush.corp:6443", ""), "spec.kubernetes.kubeconfig", "names a host that the server must not connect to: --outbound-deny lists *.corp"},
		{watched("https://kube:6443", "http://hush.corp"), "spec.kubernetes.kubeconfig", "deny"},
		{watched("https://169.254.169.254", "socks5://127.0.0.1"), "spec.kubernetes.kubeconfig", "never allowed"},
	} {
		errs := CheckOutbound(c.object, policy)
		switch {
		case c.want == "" && len(errs) == 0:
		case len(errs) != 1 || errs[0].Field != c.field || !strings.Contains(errs[0].Message, c.want) || strings.Contains(errs[0].Message, "hush"):
			t.Errorf("%+v: got %v, want %s: %s", c.object.SpecPart(), errs, c.field, c.want)
		}
	}
}

// TestAddressesThatAreAlwaysRejected checks that these addresses are rejected without a server, and
// so in a plan.
func TestAddressesThatAreAlwaysRejected(t *testing.T) {
	for address, allowed := range map[string]bool{
		"http://169.254.169.254/latest/meta-data": false, "http://[fd00:ec2::254]/": false, "http://0.0.0.0:1": false, "http://[::ffff:a9fe:a9fe]": false,
		"http://2852039166/": false, "http://0xa9fea9fe": false, "http://169.254.169.254.": false, "http://:80": false,
		"http://127.0.0.1": true, "http://10.0.0.1": true, "http://prometheus": true, "http://[::1]:9090": true,
	} {
		if got := checkURL(address); (got == "") != allowed {
			t.Errorf("%s: got %q", address, got)
		}
	}
}
