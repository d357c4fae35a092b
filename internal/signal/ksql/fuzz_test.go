package ksql

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// FuzzAnswer checks that, for any response, every metric gets a value or an error with a reason, without a panic.
func FuzzAnswer(f *testing.F) {
	for _, body := range []string{
		"[{\"header\":{\"schema\":\"`V` DOUBLE\"}},\n{\"row\":{\"columns\":[1,\"a\"]}}]", `[{"row":{"columns":["2"],"tombstone":true}}]`,
		`{"queryId":null,"columnNames":["V"],"columnTypes":["DOUBLE"]}` + "\n[1,\"a\"]\n[2,\"b\"]\n", `[{"columnNames":["V"]},[1,"a"]]`,
		`[{"errorMessage":{"error_code":40001,"message":"x"}}]`, `{"@type":"generic_error","error_code":50000,"message":"x"}`, `[null,{}]`, `[[]]`, `0`,
	} {
		f.Add(200, []byte(body))
		f.Add(400, []byte(body))
	}
	metrics := []string{"a", "b", "it's"}
	f.Fuzz(func(t *testing.T, status int, body []byte) {
		if status < 100 || status > 999 {
			return // not an HTTP status
		}
		src, err := open(provider("http://ksql.test"), addresspolicy.OnLoopback(), roundTrip(func(r *http.Request) (*http.Response, error) {
			if r.Body != nil { // the request for /info has no body
				_ = r.Body.Close()
			}
			recorder := httptest.NewRecorder()
			recorder.Code = status
			_, _ = recorder.Body.Write(body)
			return recorder.Result(), nil
		}))
		if err != nil {
			t.Fatal(err)
		}
		for range 2 {
			readings, _ := src.Read(t.Context(), metrics)
			for _, metric := range metrics {
				got, ok := readings[metric]
				if !ok {
					t.Fatalf("no reading for %q", metric)
				}
				var e *source.Error
				if got.Err != nil && (!errors.As(got.Err, &e) || e.Message == "" || !slices.Contains([]string{api.ReasonInvalidMetric, api.ReasonUnreachableMetricsProvider}, e.Reason)) {
					t.Fatalf("%q: got %#v", metric, got.Err)
				}
			}
		}
	})
}

// TestLiteralsHoldTheirText reads literals and identifiers back as SQL reads
// them: nothing ends them early, and nothing is lost.
func TestLiteralsHoldTheirText(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		value := rapid.StringOf(rapid.RuneFrom([]rune("'\"`\\;$ ax\n"))).Draw(t, "value")
		if got, ok := unquote(text(value), '\''); !ok || got != value {
			t.Errorf("text(%q) = %s", value, text(value))
		}
		written := identifier(value)
		got, ok := unquote(written, '`')
		// Names that are plain or already quoted are not changed.
		if written != value && (!ok || got != value) || written == value && !ok && !plainName.MatchString(value) {
			t.Errorf("name(%q) = %s", value, written)
		}
	})
}

func unquote(written string, quote byte) (string, bool) {
	if len(written) < 2 || written[0] != quote || written[len(written)-1] != quote {
		return "", false
	}
	inside, double := written[1:len(written)-1], string([]byte{quote, quote})
	return strings.ReplaceAll(inside, double, string(quote)), !strings.ContainsRune(strings.ReplaceAll(inside, double, ""), rune(quote))
}
