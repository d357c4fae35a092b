package httpapi

import (
	"net/http"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Nobody is logged in yet when a client asks how people can log in.
func TestLoginsNeedNoToken(t *testing.T) {
	s := startServer(t, authenticated, func(o *Options) {
		o.Logins = []api.LoginOption{{Name: "people", Issuer: "https://login.example.com", ClientID: "page", Scopes: []string{"openid"}}}
	})
	a := s.expect(http.StatusOK, http.MethodGet, loginsPath, "")
	const want = `{"items":[{"name":"people","issuer":"https://login.example.com","client_id":"page","scopes":["openid"]}]}`
	if got := string(a.body); got != want && got != want+"\n" {
		t.Errorf("got %s, want %s", got, want)
	}
}
