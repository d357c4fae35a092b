package api

import (
	"crypto/x509"
	"maps"
	"math"
	"net/textproto"
	"slices"
	"strings"
)

// MetricsProvider is a server, or a static table, that metrics are read from.
type MetricsProvider struct {
	Kind     Kind                  `json:"kind" enum:"metrics_provider"`
	Metadata Metadata              `json:"metadata"`
	Spec     MetricsProviderSpec   `json:"spec"`
	Status   MetricsProviderStatus `json:"status,omitzero"`
}

// ProviderType is the type of a metrics provider.
type ProviderType string

// Types of metrics providers.
const (
	ProviderPrometheus ProviderType = "prometheus"
	ProviderKafka      ProviderType = "kafka"
	ProviderInflux     ProviderType = "influx"
	ProviderStatic     ProviderType = "static"
	ProviderHTTPJSON   ProviderType = "http_json"
)

// MetricsProviderSpec has a type, and exactly the block of that name.
type MetricsProviderSpec struct {
	Type               ProviderType      `json:"type" enum:"prometheus,kafka,influx,static,http_json" doc:"Type of the provider; 'kafka' is ksqlDB. The block of the same name holds its settings."`
	Prometheus         *PrometheusSpec   `json:"prometheus,omitempty" doc:"A Prometheus server, or any server that supports its query API."`
	Kafka              *KafkaSpec        `json:"kafka,omitempty" doc:"A ksqlDB server, and a table on it that has a row for each metric."`
	Influx             *InfluxSpec       `json:"influx,omitempty" doc:"An InfluxDB server, version 1.x or 2.x."`
	Static             *StaticSpec       `json:"static,omitempty" doc:"A fixed table of values."`
	HTTPJSON           *HTTPJSONSpec     `json:"http_json,omitempty" doc:"JSON documents that are read over HTTP, such as prices, carbon intensity or an inventory: one document for all clusters, or one for each."`
	Interval           Duration          `json:"interval,omitempty" default:"15s" shortest:"100ms" doc:"Time between two readings."`
	Timeout            Duration          `json:"timeout,omitempty" defaultBy:"type influx=10s else=20s" shortest:"1ms" doc:"Time limit for one reading."`
	Headers            map[string]Secret `json:"headers,omitempty" doc:"HTTP headers sent with every request. They are kept only while the server's address and certificate checks stay the same." writeOnly:"true" nullable:"true"`
	BearerToken        Secret            `json:"bearer_token,omitzero" doc:"Token sent as 'Authorization: Bearer'. It is kept only while the server's address and certificate checks stay the same." writeOnly:"true" nullable:"true"`
	CACert             string            `json:"ca_cert,omitempty" doc:"PEM certificates that the server's certificate must chain to."`
	InsecureSkipVerify bool              `json:"insecure_skip_verify,omitempty" default:"false" doc:"If true, the server's certificate is not verified."`
}

// PrometheusSpec configures a Prometheus server or another server with its query API.
type PrometheusSpec struct {
	URL string `json:"url" doc:"Base URL, such as 'http://prometheus:9090'."`
}

// KafkaSpec configures a ksqlDB server, and the table that has a row for each metric.
type KafkaSpec struct {
	URL              string `json:"url" doc:"Base URL of the ksqlDB server, such as 'http://ksqldb:8088'."`
	Table            string `json:"table" doc:"Table, or materialized view, that has a row for each metric."`
	ComparisonColumn string `json:"comparison_column" doc:"Column that holds the names of the metrics."`
	ValueColumn      string `json:"value_column" doc:"Column that holds their values."`
}

// InfluxSpec configures an InfluxDB server. For 1.x, the bucket is a database or
// database/retention-policy, and the token is user:password.
type InfluxSpec struct {
	URL    string `json:"url" doc:"Base URL, such as 'http://influxdb:8086'."`
	Token  Secret `json:"token,omitzero" doc:"API token, or 'user:password' for InfluxDB 1.x. It is kept only while the server's address and certificate checks stay the same." writeOnly:"true" nullable:"true"`
	Org    string `json:"org,omitempty" doc:"Organization. InfluxDB 1.x has none."`
	Bucket string `json:"bucket" doc:"Bucket, or for InfluxDB 1.x a database or 'database/retention-policy'."`
}

// StaticSpec is a static table of values.
type StaticSpec struct {
	Metrics map[string]float64 `json:"metrics,omitempty" doc:"Value of each metric, by name."`
}

// MetricsProviderStatus is the result of the last read.
type MetricsProviderStatus struct {
	ObservedGeneration int64       `json:"observed_generation,omitempty" doc:"Generation that the status describes."`
	Conditions         []Condition `json:"conditions,omitempty" doc:"Conditions that the server observed."`
}

// ObjectKind implements Object.
func (p *MetricsProvider) ObjectKind() Kind { return KindMetricsProvider }

// Meta implements Object.
func (p *MetricsProvider) Meta() *Metadata { return &p.Metadata }

// SpecPart implements Object.
func (p *MetricsProvider) SpecPart() any { return &p.Spec }

// StatusPart implements Object.
func (p *MetricsProvider) StatusPart() any { return &p.Status }

// Copy implements Object.
func (p *MetricsProvider) Copy() Object { d := *p; return &d }

// Secrets implements Object.
func (p *MetricsProvider) Secrets() map[string]Secret {
	out := map[string]Secret{}
	if !p.Spec.BearerToken.IsZero() {
		out["spec.bearer_token"] = p.Spec.BearerToken
	}
	if i := p.Spec.Influx; i != nil && !i.Token.IsZero() {
		out["spec.influx.token"] = i.Token
	}
	for name, value := range p.Spec.Headers {
		out[headerField(name)] = value
	}
	return out
}

// SetSecret implements Object.
func (p *MetricsProvider) SetSecret(field string, secret Secret) {
	if field == "spec.bearer_token" {
		p.Spec.BearerToken = secret
		return
	}
	if field == "spec.influx.token" {
		influx := InfluxSpec{}
		if p.Spec.Influx != nil {
			influx = *p.Spec.Influx
		}
		influx.Token = secret
		p.Spec.Influx = &influx
		return
	}
	if steps := SplitField(field); len(steps) == 3 && steps[1] == "headers" {
		if name, ok := steps[2].(string); ok {
			headers := maps.Clone(p.Spec.Headers)
			if headers == nil {
				headers = map[string]Secret{}
			}
			headers[name] = secret
			if secret.IsZero() {
				delete(headers, name)
			}
			p.Spec.Headers = headers
		}
	}
}

// receiver implements secretReceiver: the server that is read. A static table has none.
func (p *MetricsProvider) receiver(string) receiver {
	s := &p.Spec
	to := receiver{trust: trustOf(s.CACert, s.InsecureSkipVerify)}
	if address := s.blocks()[s.Type]; address != "" {
		to.address = origin(address)
	}
	return to
}

// blocks returns the blocks that are set, each with its address, or "" if the block has no address.
func (s *MetricsProviderSpec) blocks() map[ProviderType]string {
	blocks := map[ProviderType]string{}
	if s.Prometheus != nil {
		blocks[ProviderPrometheus] = s.Prometheus.URL
	}
	if s.Kafka != nil {
		blocks[ProviderKafka] = s.Kafka.URL
	}
	if s.Influx != nil {
		blocks[ProviderInflux] = s.Influx.URL
	}
	if s.Static != nil {
		blocks[ProviderStatic] = ""
	}
	if s.HTTPJSON != nil {
		blocks[ProviderHTTPJSON] = s.HTTPJSON.URL
	}
	return blocks
}

func headerField(name string) string { return "spec.headers[" + quote(name) + "]" }

// DefaultProviderInterval is the default interval of a metrics provider, also assumed if the
// provider does not exist.
const DefaultProviderInterval Duration = "15s"

// SetDefaults implements Object.
func (p *MetricsProvider) SetDefaults() {
	p.Kind = KindMetricsProvider
	p.Metadata.setDefaults(GlobalOrNamespaced)
	setDefaults(&p.Spec)
}

// Validate implements Object.
func (p *MetricsProvider) Validate() FieldErrors {
	var errs FieldErrors
	errs.checkObject(p, GlobalOrNamespaced)
	s := &p.Spec
	s.validateBlocks(&errs)
	if s.Prometheus != nil {
		errs.check("spec.prometheus.url", checkURL(s.Prometheus.URL))
	}
	if k := s.Kafka; k != nil {
		errs.check("spec.kafka.url", checkURL(k.URL))
		errs.check("spec.kafka.table", checkText(k.Table))
		errs.check("spec.kafka.comparison_column", checkText(k.ComparisonColumn))
		errs.check("spec.kafka.value_column", checkText(k.ValueColumn))
	}
	if i := s.Influx; i != nil {
		errs.check("spec.influx.url", checkURL(i.URL))
		errs.check("spec.influx.bucket", checkText(i.Bucket))
		errs.check("spec.influx.token", checkHeaderValue(i.Token))
	}
	if s.Static != nil {
		for _, name := range slices.Sorted(maps.Keys(s.Static.Metrics)) {
			if v := s.Static.Metrics[name]; math.IsNaN(v) || math.IsInf(v, 0) {
				errs.Add("spec.static.metrics["+quote(name)+"]", "%v must be a finite number", v)
			}
		}
	}
	if s.HTTPJSON != nil {
		s.HTTPJSON.validate(&errs)
	}
	s.validateHeaders(&errs)
	errs.check("spec.bearer_token", checkHeaderValue(s.BearerToken))
	if s.CACert != "" && !x509.NewCertPool().AppendCertsFromPEM([]byte(s.CACert)) {
		errs.Add("spec.ca_cert", "contains no PEM certificate: it must have a block that begins with -----BEGIN CERTIFICATE-----")
	}
	return errs.inOrder(p)
}

// validateBlocks requires the block of the type, and no other.
func (s *MetricsProviderSpec) validateBlocks(errs *FieldErrors) {
	types := []ProviderType{ProviderHTTPJSON, ProviderInflux, ProviderKafka, ProviderPrometheus, ProviderStatic}
	blocks := s.blocks()
	for _, t := range types {
		switch _, there := blocks[t]; {
		case t == s.Type && !there:
			errs.Add("spec."+string(t), "is required because spec.type is %q", string(t))
		case slices.Contains(types, s.Type) && t != s.Type && there:
			errs.Add("spec."+string(t), "must be absent because spec.type is %q", string(s.Type))
		}
	}
}

func (s *MetricsProviderSpec) validateHeaders(errs *FieldErrors) {
	for i, name := range slices.Sorted(maps.Keys(s.Headers)) {
		if !isHeaderName(name) {
			// The name is not repeated: a secret value may have been entered as the name.
			errs.Add("spec.headers", "number %d of the %d names in alphabetical order is not an HTTP header name, such as \"X-Api-Key\"; it is not repeated here, as it may be a secret", i+1, len(s.Headers))
			continue
		}
		errs.check(headerField(name), checkHeaderValue(s.Headers[name]))
		if textproto.CanonicalMIMEHeaderKey(name) == "Authorization" && !s.BearerToken.IsZero() {
			errs.Add(headerField(name), "must be absent because spec.bearer_token is set")
		}
	}
}

// checkHeaderValue rejects characters that would end a header early.
func checkHeaderValue(value Secret) string {
	if strings.ContainsAny(value.Reveal(), "\r\n\x00") {
		return "must not contain line breaks"
	}
	return ""
}

// isHeaderName reports whether a name is a token as defined in RFC 9110, section 5.1.
func isHeaderName(name string) bool {
	for _, r := range name {
		if r > 0x7e || r <= ' ' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", r) {
			return false
		}
	}
	return name != ""
}
