package httpapi

import (
	"net/http"
	"strings"
	"testing"
)

// A secret in the wrong field of a request appears neither in the response nor in the log.
func TestMisplacedSecretIsNotRepeated(t *testing.T) {
	const marker = "s3cr3tmarker"
	s := startServer(t)
	for _, r := range [][3]string{
		{http.MethodPut, "/v1/metrics-providers/p", `{"spec":{"type":"prometheus","prometheus":{"url":"https://user:` + marker + `@host"}}}`},
		{http.MethodPut, "/v1/metrics-providers/p", `{"spec":{"type":"prometheus","prometheus":{"url":"` + marker + `"}}}`},
		{http.MethodPut, "/v1/metrics-providers/p", `{"spec":{"type":"prometheus","prometheus":{"url":"http://h"},"headers":{"Bearer ` + marker + `":"x"}}}`},
		{http.MethodPut, "/v1/metrics-providers/p", `{"spec":{"type":"prometheus","prometheus":{"url":"http://h"},"headers":{"Authorization: ` + marker + `":7}}}`},
		{http.MethodPut, "/v1/metrics-providers/p", `{"spec":{"type":"prometheus","interval":"https://user:` + marker + `@host"}}`},
		{http.MethodPut, "/v1/clusters/c", `{"spec":{"kubernetes":{"kubeconfig":"` + marker + `"}}}`},
		{http.MethodPut, "/v1/clusters/c", `{"spec":{"health":{"url":"https://host/%zz?token=` + marker + `"}}}`},
		{http.MethodPut, "/v1/clouds/c", `{"spec":{"openstack":{"auth_url":"https://user:` + marker + `@host"}}}`},
		{http.MethodGet, "/v1/clusters/x?wait=https://user:" + marker + "@host&resource_version=1", ""},
		{http.MethodGet, "/v1/clusters?limit=Bearer%20" + marker, ""},
		{http.MethodGet, "/v1/clusters?label_selector=https://user:" + marker + "@host", ""},
		{http.MethodGet, "/v1/clusters?field_selector=https://user:" + marker + "@host", ""},
		{http.MethodDelete, "/v1/tokens/0123456789abcdef." + marker, ""},
	} {
		a := s.do(r[0], r[1], r[2])
		if a.StatusCode < 400 || strings.Contains(string(a.body), marker) {
			t.Errorf("%s %s %s: %d %s", r[0], r[1], r[2], a.StatusCode, a.body)
		}
	}
	if logs := s.logs.String(); strings.Contains(logs, marker) {
		t.Errorf("the log contains it: %s", logs[max(strings.Index(logs, marker)-200, 0):])
	}
}
