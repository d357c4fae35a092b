package provider_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/tracing/otlptest"
)

const (
	callerTrace = "0af7651916cd43dd8448eb211c80319c"
	callerSpan  = "b7ad6b7169203331"
	traceParent = "TRACEPARENT=00-" + callerTrace + "-" + callerSpan + "-01"
	putRoute    = "PUT /v1/namespaces/{namespace}/placements/{name}"
)

// One trace leads from the apply through the provider, the API and the store to the decision.
func TestAccTrace(t *testing.T) {
	collector := otlptest.NewHTTP(t)
	f := newFleet(t, "--tracing-endpoint", collector.Endpoint, "--tracing-sample-ratio", "0")
	f.cluster("berlin", "location", "DE")
	const kubeconfig = `{"apiVersion": "v1", "kind": "Config", "current-context": "c", "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
		"clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}], "users": [{"name": "u", "user": {"token": "s3cr3t-kubeconfig"}}]}`
	w := newWorkspace(t, f.config(web("DE"), fmt.Sprintf(`
		resource "scheduler_metrics_provider" "prices" {
		  name                    = "prices"
		  type                    = "http_json"
		  http_json               = { url = "http://127.0.0.1:1/s3cr3t", value = "/price" }
		  headers_wo              = { X-Key = "s3cr3t-header" }
		  headers_wo_version      = 1
		  bearer_token_wo         = "s3cr3t-bearer"
		  bearer_token_wo_version = 1
		}
		resource "scheduler_cluster" "paris" {
		  name       = "paris"
		  kubernetes = { kubeconfig_wo = %q, kubeconfig_wo_version = 1 }
		}`, kubeconfig)), "OTEL_TRACES_EXPORTER=otlp", "OTEL_EXPORTER_OTLP_ENDPOINT="+collector.Endpoint, traceParent)
	w.ok("apply", "-auto-approve")
	put := collector.Await("the write", func(s otlptest.Span) bool { return s.Name == putRoute })
	above := func(span otlptest.Span, name, service string) otlptest.Span {
		t.Helper()
		return collector.Await(name+" above "+span.Name, func(s otlptest.Span) bool {
			return s.SpanID == span.ParentID && s.TraceID == callerTrace && s.Name == name && s.Service == service
		})
	}
	const provider = "terraform-provider-scheduler"
	apply := above(above(put, "PUT", provider), "ApplyResourceChange", provider)
	if apply.Attributes["terraform.type"] != "scheduler_placement" {
		t.Errorf("got %+v", apply)
	}
	if run := above(apply, provider, provider); run.ParentID != callerSpan {
		t.Errorf("got %+v", run)
	}
	collector.Child(put, "store commit")
	collector.Child(put, "decide")
	decided := collector.Decided(put)
	collector.Child(decided, "plan")
	collector.Child(decided, "store derive")
	if strings.Contains(collector.Raw(), "s3cr3t") {
		t.Error("a secret is in a trace")
	}
}

// With TRACEPARENT alone, the provider passes the trace on to the server and records nothing. Without it, there is no
// trace.
func TestAccTraceOfSomebodyElse(t *testing.T) {
	collector := otlptest.NewHTTP(t)
	f := newFleet(t, "--tracing-endpoint", collector.Endpoint, "--tracing-sample-ratio", "0")
	f.cluster("berlin", "location", "DE")
	newWorkspace(t, f.config(web("DE"))).ok("apply", "-auto-approve")
	newWorkspace(t, f.config(strings.ReplaceAll(web("DE"), `"web"`, `"other"`)), traceParent).ok("apply", "-auto-approve")
	put := collector.Await("the write", func(s otlptest.Span) bool { return s.Name == putRoute })
	if put.TraceID != callerTrace || put.ParentID != callerSpan {
		t.Errorf("got %+v", put)
	}
	for _, span := range collector.Spans() {
		if span.Service != "scheduler-server" || span.Name == putRoute && span.SpanID != put.SpanID {
			t.Errorf("got %+v", span)
		}
	}
}
