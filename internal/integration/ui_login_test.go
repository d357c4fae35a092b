//go:build integration

package integration

import (
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/openid"
)

// People log in to the page with their issuer, until the token that it gave them expires.
func TestPageLogin(t *testing.T) {
	t.Parallel()
	provider := openid.Start(t, "scheduler-page")
	p := startServer(t, t.TempDir(), "--config", provider.Configuration("viewer"), "--log-level", "debug")
	p.browse("login.js", "UI_ISSUER="+provider.URL)
	given := provider.Given()
	if len(given) == 0 {
		t.Fatal("nobody logged in")
	}
	for _, token := range given {
		if strings.Contains(p.stderr.String(), token) {
			t.Error("a token is in the log of the server")
		}
	}
}
