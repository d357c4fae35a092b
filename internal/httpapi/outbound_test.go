package httpapi

import (
	"net/http"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// TestRefusedAddresses checks that an address that the server may not connect to is rejected in writes, with its field,
// and that only users who may write there get this error.
func TestRefusedAddresses(t *testing.T) {
	s := startServer(t, authenticated, func(o *Options) {
		var err error
		if o.Network, err = addresspolicy.New(addresspolicy.Options{Deny: []string{"*.corp"}}); err != nil {
			t.Fatal(err)
		}
	})
	editor, viewer := s.addToken(auth.RoleEditor, "shop"), s.addToken(auth.RoleViewer, "shop")
	for address, want := range map[string]string{
		"http://127.0.0.1:9090": "loopback", "http://a.corp": "--outbound-deny lists *.corp", "http://169.254.169.254": "never allowed",
		"http://localhost": "", "http://prometheus:9090": "",
	} {
		const path = "/v1/namespaces/shop/metrics-providers/p"
		body := `{"spec":{"type":"prometheus","prometheus":{"url":"` + address + `"}}}`
		a := s.do(http.MethodPut, path, body, "Authorization", "Bearer "+editor)
		if want == "" {
			if a.StatusCode/100 != 2 {
				t.Errorf("%s: rejected with %s", address, a.body)
			}
			continue
		}
		p := a.problem(t)
		if a.StatusCode != http.StatusUnprocessableEntity || len(p.Errors) != 1 || p.Errors[0].Field != "spec.prometheus.url" || !strings.Contains(p.Errors[0].Message, want) {
			t.Errorf("%s: unexpected answer %d %s", address, a.StatusCode, a.body)
		}
		if want == "never allowed" {
			continue // rejected without asking the server, for everyone
		}
		if a := s.do(http.MethodPut, path, body, "Authorization", "Bearer "+viewer); a.StatusCode != http.StatusForbidden {
			t.Errorf("viewer: got %d %s, want 403", a.StatusCode, a.body)
		}
	}
}
