package signal

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// providerAt returns a provider of each type that is read over the network.
func providerAt(kind api.ProviderType, name, url string) *api.MetricsProvider {
	p := &api.MetricsProvider{Metadata: api.Metadata{Name: name}, Spec: api.MetricsProviderSpec{Type: kind, Interval: "100ms", Timeout: "10m"}}
	switch kind {
	case api.ProviderInflux:
		p.Spec.Influx = &api.InfluxSpec{URL: url, Bucket: "b"}
	case api.ProviderKafka:
		p.Spec.Kafka = &api.KafkaSpec{URL: url, Table: "t", ComparisonColumn: "k", ValueColumn: "v"}
	default:
		p.Spec.Prometheus = &api.PrometheusSpec{URL: url}
	}
	return p
}

// TestBrokenProvidersDelayNoOther: for each type of provider there is one that
// answers garbage, one that sends a byte and keeps the rest, one that sends
// without end, and one that says nothing. While all of them are held in their
// answers, the values of the others arrive and change. Order shows it, not time:
// what is held is let go only after everything else has been seen.
func TestBrokenProvidersDelayNoOther(t *testing.T) {
	kinds := []api.ProviderType{api.ProviderPrometheus, api.ProviderInflux, api.ProviderKafka}
	held := make(chan string, 1000)
	release := make(chan struct{})
	hold := func(name string, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // otherwise the end of the connection is not noticed
		held <- name
		select {
		case <-release:
		case <-r.Context().Done():
		}
	}
	var figure atomic.Value // the value that healthy providers return
	figure.Store("12.5")
	begin := map[api.ProviderType]string{
		api.ProviderPrometheus: `{`, api.ProviderInflux: `#`, api.ProviderKafka: `[`,
	}
	broken := map[string]func(kind api.ProviderType, name string, w http.ResponseWriter, r *http.Request){
		"garbage": func(_ api.ProviderType, _ string, w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, "\x00\xff<html>{[")
		},
		"slow": func(kind api.ProviderType, name string, w http.ResponseWriter, r *http.Request) {
			_, _ = io.WriteString(w, begin[kind])
			_ = http.NewResponseController(w).Flush()
			hold(name, r)
		},
		"endless": func(kind api.ProviderType, _ string, w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, begin[kind])
			text := strings.Repeat(" ", 1<<16)
			for range 1 << 9 { // twice the size limit
				if _, err := io.WriteString(w, text); err != nil {
					return
				}
			}
		},
		"silent": func(_ api.ProviderType, name string, _ http.ResponseWriter, r *http.Request) { hold(name, r) },
	}
	servers := map[string]*httptest.Server{}
	for _, kind := range kinds {
		for how, answer := range broken {
			name := string(kind) + "-" + how
			servers[name] = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answer(kind, name, w, r) }))
			defer servers[name].Close()
		}
		good := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { answerWell(kind, figure.Load(), w, r) }))
		defer good.Close()
		servers[string(kind)+"-good"] = good
	}
	defer close(release)

	s, codec := openStore(t)
	b := start(t, s, codec)
	// Written without waiting for the signals, which would wait for the broken providers.
	for _, kind := range kinds {
		for _, how := range []string{"silent", "slow", "endless", "garbage", "good"} {
			name := string(kind) + "-" + how
			b.write(t.Context(), providerAt(kind, name, servers[name].URL))
			b.write(t.Context(), metricOf(name, name, "m"))
		}
	}
	waiting := map[string]bool{}
	for len(waiting) < 2*len(kinds) { // the silent and the stalled ones hold their requests
		waiting[<-held] = true
	}
	for _, want := range []float64{12.5, 13.5} {
		figure.Store(fmt.Sprint(want))
		for _, kind := range kinds {
			name := string(kind) + "-good"
			b.until(func() string { return b.differs(name, want, api.ReasonAvailable) })
		}
	}
	for _, kind := range kinds {
		b.until(func() string { return b.differs(string(kind)+"-garbage", nil, api.ReasonUnreachableMetricsProvider) })
		for _, how := range []string{"silent", "slow"} {
			name := string(kind) + "-" + how
			entry := b.fleet.Snapshot().Get(api.Key{Kind: api.KindMetric, Name: name})
			if c := api.FindCondition(entry.Object.(*api.Metric).Status.Conditions, api.ConditionAvailable); c != nil {
				t.Errorf("%s was written: %+v", name, c)
			}
		}
	}
}

// answerWell returns the same value for every query.
func answerWell(kind api.ProviderType, value any, w http.ResponseWriter, r *http.Request) {
	switch kind {
	case api.ProviderInflux:
		_, _ = fmt.Fprintf(w, "#datatype,string,long,double,string,string\r\n#group,false,false,false,true,true\r\n#default,_result,,,,\r\n"+
			",result,table,_value,_field,_measurement\r\n,,0,%s,value,m\r\n", value)
	case api.ProviderKafka:
		_, _ = fmt.Fprintf(w, `[{"header":{}},{"row":{"columns":[%s]}}]`, value)
	default:
		w.Header().Set("Content-Type", "application/json")
		_, _ = fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[{"metric":{},"value":[1,"%s"]}]}}`, value)
	}
	_, _ = io.Copy(io.Discard, r.Body)
}

// until waits for a stored state, change by change.
func (b *bench) until(differs func() string) {
	b.t.Helper()
	ctx, cancel := context.WithTimeout(b.t.Context(), eventually.Limit)
	defer cancel()
	for {
		revision := b.fleet.Snapshot().Revision()
		message := differs()
		if message == "" {
			return
		}
		if _, err := b.fleet.WaitRevision(ctx, revision+1); err != nil {
			b.t.Fatal(message)
		}
	}
}
