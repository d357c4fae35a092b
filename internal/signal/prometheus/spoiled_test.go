package prometheus

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// TestValueThatIsNoNumberCostsNoOtherMetric: what one expression gives is wrong with
// that expression alone.
func TestValueThatIsNoNumberCostsNoOtherMetric(t *testing.T) {
	for name, c := range map[string]struct {
		value string // as JSON; the whole "value" of the series
		want  string
	}{
		"a text":            {`[1,"abc"]`, `"abc"`},
		"an empty text":     {`[1,""]`, "number"},
		"out of range":      {`[1,"1e999"]`, "1e999"},
		"null":              {`[1,null]`, "null"},
		"a structure":       {`[1,{"a":1}]`, "number"},
		"no pair":           {`[1]`, "number"},
		"no value":          {`null`, "number"},
		"a time of no sort": {`["x",true]`, "true"},
	} {
		for _, beside := range []int{0, 20} {
			t.Run(fmt.Sprint(name, " beside ", beside), func(t *testing.T) {
				queries := []string{"bad"}
				for i := range beside {
					queries = append(queries, fmt.Sprintf("good%d", i))
				}
				src := openAt(t, provider(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					var samples []string
					for i, query := range queries {
						number := ""
						if len(queries) > 1 {
							number = fmt.Sprintf(`"%s":"%d"`, mark, i)
						}
						value := fmt.Sprintf(`[1,"%d"]`, i)
						if query == "bad" {
							value = c.value
						}
						samples = append(samples, fmt.Sprintf(`{"metric":{%s},"value":%s}`, number, value))
					}
					fmt.Fprintf(w, `{"status":"success","data":{"resultType":"vector","result":[%s]}}`, strings.Join(samples, ","))
				})).URL))
				readings, err := src.Read(t.Context(), queries)
				if err != nil {
					t.Fatal(err)
				}
				for i, query := range queries[1:] {
					if got := readings[query]; got.Err != nil || got.Value != float64(i+1) {
						t.Errorf("%s: got %+v", query, got)
					}
				}
				var e *source.Error
				if !errors.As(readings["bad"].Err, &e) || e.Reason != api.ReasonInvalidMetric || !strings.Contains(e.Error(), strings.Trim(c.want, `"`)) {
					t.Errorf("bad: got %#v", readings["bad"].Err)
				}
			})
		}
	}
}

func TestScalarThatIsNoNumber(t *testing.T) {
	f := &fake{raw: map[string]string{"scalar(x)": `{"status":"success","data":{"resultType":"scalar","result":[1,"abc"]}}`}}
	readings, err := f.open(t).Read(t.Context(), []string{"scalar(x)"})
	var e *source.Error
	if err != nil || !errors.As(readings["scalar(x)"].Err, &e) || e.Reason != api.ReasonInvalidMetric {
		t.Errorf("got %+v, %v", readings, err)
	}
}

// slowly responds with a fake server, but never to a slow request.
type slowly struct {
	*fake
	slow func(expression string) bool
}

// RoundTrip implements http.RoundTripper without a network, so that time is simulated.
func (s slowly) RoundTrip(r *http.Request) (*http.Response, error) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return nil, err
	}
	form, err := url.ParseQuery(string(body))
	if err != nil {
		return nil, err
	}
	if s.slow(form.Get("query")) {
		<-r.Context().Done()
		return nil, r.Context().Err()
	}
	r = r.Clone(r.Context())
	r.Body = io.NopCloser(strings.NewReader(string(body)))
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w.Result(), nil
}

// readWithin reads with the provider's timeout.
func readWithin(t *testing.T, src source.Source, queries []string) map[string]source.Reading {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	readings, err := src.Read(ctx, queries)
	if err != nil {
		t.Fatal(err)
	}
	return readings
}

// TestSlowExpressionStandsAlone: an expression that takes longer than there is time
// costs no other its value, within the time of one reading; it is then asked apart,
// and more and more rarely.
func TestSlowExpressionStandsAlone(t *testing.T) {
	for _, c := range []struct{ count, slow int }{{2, 1}, {3, 1}, {500, 1}, {700, 1}, {500, 4}, {1000, 7}} {
		t.Run(fmt.Sprint(c.slow, " of ", c.count), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &fake{vectors: map[string][]string{}}
				var queries []string
				slow := map[string]bool{}
				for i := range c.count {
					query := fmt.Sprintf("m%d_end", i)
					queries = append(queries, query)
					f.vectors[query] = []string{fmt.Sprintf("|%d", i)}
					if i%(c.count/c.slow) == 1 && len(slow) < c.slow {
						slow[query] = true
					}
				}
				isSlow := func(expression string) bool {
					for query := range slow {
						if strings.Contains(expression, query) {
							return true
						}
					}
					return false
				}
				src, err := open(provider("http://prometheus.test"), addresspolicy.OnLoopback(), slowly{f, isSlow})
				if err != nil {
					t.Fatal(err)
				}
				for round := range 4 {
					before, began := f.count(), time.Now()
					readings := readWithin(t, src, queries)
					if took := time.Since(began); took > 20*time.Second || round == 2 && took > 0 {
						t.Errorf("round %d took %s", round, took)
					}
					for i, query := range queries {
						got := readings[query]
						if !slow[query] {
							if got.Err != nil || got.Value != float64(i) {
								t.Fatalf("round %d: %s: got %+v", round, query, got)
							}
							continue
						}
						var e *source.Error
						if !errors.As(got.Err, &e) || e.Reason != api.ReasonUnreachableMetricsProvider || !strings.Contains(e.Error(), "although the provider responds to others") {
							t.Fatalf("round %d: %s: got %#v", round, query, got.Err)
						}
					}
					if sent := f.count() - before; round > 0 && sent > 2 {
						t.Errorf("round %d took %d requests for the others", round, sent)
					}
				}
			})
		})
	}
}

// TestSlowExpressionThatGetsQuick is read again.
func TestSlowExpressionThatGetsQuick(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		quick := false
		f := &fake{vectors: map[string][]string{"a": {"|1"}, "b": {"|2"}}}
		src, err := open(provider("http://prometheus.test"), addresspolicy.OnLoopback(), slowly{f, func(e string) bool { return !quick && strings.Contains(e, "b\n") || !quick && e == "b" }})
		if err != nil {
			t.Fatal(err)
		}
		for range 5 {
			if got := readWithin(t, src, []string{"a", "b"}); got["a"].Err != nil || got["b"].Err == nil {
				t.Fatalf("got %+v", got)
			}
			faketime.Sleep(15 * time.Second)
		}
		quick = true
		for range 2 {
			faketime.Sleep(5 * time.Minute)
			if got := readWithin(t, src, []string{"a", "b"}); got["b"].Err != nil || got["b"].Value != 2 {
				t.Fatalf("got %+v", got)
			}
		}
	})
}

// TestPrometheusThatHangs checks that it is reported as unreachable in time, after few requests.
func TestPrometheusThatHangs(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		var mu sync.Mutex
		src, err := open(provider("http://prometheus.test"), addresspolicy.OnLoopback(), slowly{&fake{}, func(string) bool {
			mu.Lock()
			defer mu.Unlock()
			asked++
			return true
		}})
		if err != nil {
			t.Fatal(err)
		}
		var queries []string
		for i := range 400 {
			queries = append(queries, fmt.Sprint("m", i))
		}
		for range 2 {
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			began := time.Now()
			readings, err := src.Read(ctx, queries)
			cancel()
			check(t, err, "no response within 20s")
			for _, query := range queries {
				check(t, readings[query].Err, "no response within 20s")
			}
			if took := time.Since(began); took > 20*time.Second {
				t.Errorf("took %s", took)
			}
		}
		if asked > 150 {
			t.Errorf("%d requests to a server that does not respond", asked)
		}
	})
}

// TestPrometheusThatSaysTooSlow: a timeout of the server's own, or of a gateway's, is
// one of the batch as well.
func TestPrometheusThatSaysTooSlow(t *testing.T) {
	f := &fake{vectors: map[string][]string{"a": {"|1"}, "b": {"|2"}, "c": {"|3"}}}
	for _, status := range []int{http.StatusServiceUnavailable, http.StatusGatewayTimeout} {
		src := openAt(t, provider(serve(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.Contains(r.FormValue("query"), "(b") {
				f.refuse(w, status, "timeout", "query timed out in expression evaluation")
				return
			}
			if r.FormValue("query") == "b" {
				f.refuse(w, status, "timeout", "query timed out in expression evaluation")
				return
			}
			f.ServeHTTP(w, r)
		})).URL))
		readings, err := src.Read(t.Context(), []string{"a", "b", "c"})
		if err != nil || readings["a"].Value != 1 || readings["c"].Value != 3 || readings["a"].Err != nil || readings["c"].Err != nil {
			t.Fatalf("%d: got %+v, %v", status, readings, err)
		}
		var e *source.Error
		if !errors.As(readings["b"].Err, &e) || e.Reason != api.ReasonUnreachableMetricsProvider {
			t.Errorf("%d: got %#v", status, readings["b"].Err)
		}
	}
}
