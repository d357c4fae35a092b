package webhook

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"

	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// A request of a known cluster has a span; one of anybody else has none. Its address, which contains a secret, is in
// none.
func TestTraces(t *testing.T) {
	recorder := tracetest.NewSpanRecorder()
	s := serverOf(t, toSpot())
	s.options.Tracer = tracing.New(sdk.NewTracerProvider(sdk.WithSpanProcessor(recorder)))
	admit(t, s, podOf(nil))
	post(s, "pods", "{")
	s.handler.ServeHTTP(httptest.NewRecorder(), httptest.NewRequest(http.MethodPost, "/clusters/a/other/pods", http.NoBody))
	var got []string
	for _, span := range recorder.Ended() {
		attributes := map[string]string{}
		for _, a := range span.Attributes() {
			attributes[string(a.Key)] = a.Value.String()
		}
		got = append(got, span.Name()+" of "+attributes["scheduler.object.name"]+": "+attributes[resultKey])
		if text := fmt.Sprint(span.Name(), attributes); strings.Contains(text, testSecret) {
			t.Errorf("the span %s contains the secret", text)
		}
	}
	const route = "POST /clusters/{cluster}/{secret}/pods of a: "
	if want := []string{route + string(resultPatched), route + string(resultBadRequest)}; fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("got %q, want %q", got, want)
	}
}
