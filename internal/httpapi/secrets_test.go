package httpapi

import (
	"net/http"
	"strconv"
	"strings"
	"testing"
)

// Who writes back what was read must not lose a secret without a word.
func TestWritingBackWhatWasReadLosesNoSecret(t *testing.T) {
	s := startServer(t)
	for _, test := range []struct{ path, body, without, field string }{
		{"/v1/clusters/eu-1", `{"spec":{"kubernetes":{"kubeconfig":` + kubeconfig("text") + `}}}`, `{"spec":{"kubernetes":{}}}`, "spec.kubernetes.kubeconfig"},
		{"/v1/metrics-providers/prom", `{"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"},"bearer_token":"text"}}`,
			`{"spec":{"type":"prometheus","prometheus":{"url":"http://p:9090"}}}`, "spec.bearer_token"},
	} {
		s.mustPut(test.path+"?wait=0s", test.body)
		shown := s.do(http.MethodGet, test.path, "")
		before := decodeAs[anyObject](t, shown)
		back := s.do(http.MethodPut, test.path+"?wait=0s", string(shown.body))
		if p := back.problem(t); back.StatusCode != 422 || len(p.Errors) != 1 || p.Errors[0].Field != test.field {
			t.Errorf("%s: written back: %d %s, want 422 about %s", test.path, back.StatusCode, back.body, test.field)
		}
		if after := decodeAs[anyObject](t, s.do(http.MethodGet, test.path, "")); after.Metadata.Generation != before.Metadata.Generation {
			t.Errorf("%s: the refused write changed it", test.path)
		}
		// Leaving the field out removes the secret; then there is none to lose.
		for _, body := range []string{test.without, test.without, strings.Replace(test.body, `"text"`, "null", 1)} {
			if a := s.do(http.MethodPut, test.path+"?wait=0s", body); a.StatusCode != 200 {
				t.Errorf("%s: %s: %d %s", test.path, body, a.StatusCode, a.body)
			}
		}
	}
}

// kubeconfig is a kubeconfig with a token, as a JSON string.
func kubeconfig(token string) string {
	return strconv.Quote(`{"current-context":"c","contexts":[{"name":"c","context":{"cluster":"k","user":"u"}}],` +
		`"clusters":[{"name":"k","cluster":{"server":"https://127.0.0.1:1"}}],"users":[{"name":"u","user":{"token":"` + token + `"}}]}`)
}
