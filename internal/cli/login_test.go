package cli

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/openid"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/servertest"
)

// loginFleet is a server on which people log in with a provider, and one who has no token yet.
func loginFleet(t *testing.T, provider *openid.Provider) *fleet {
	t.Helper()
	f := (&fleet{endpoint: servertest.Start(t, "--config", provider.Configuration("editor"))}).in(t)
	f.env.OpenURL = visit
	return f
}

// visit is a browser that follows redirects.
func visit(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	go func() { // the address it comes back to answers at the end
		if response, err := http.DefaultClient.Do(request); err == nil {
			_, _ = io.Copy(io.Discard, response.Body)
			_ = response.Body.Close()
		}
	}()
	return nil
}

func TestLogin(t *testing.T) {
	provider := openid.Start(t, "people")
	f := loginFleet(t, provider)
	if code, _, stderr := f.run("get", "clusters"); code != exitRefused || !strings.Contains(stderr, "token") {
		t.Fatalf("without a login: exit code %d: %s", code, stderr)
	}
	out := f.must("login")
	if !strings.HasPrefix(out, "logged in as alice until ") {
		t.Errorf("%q", out)
	}
	if code, _, stderr := f.run("cordon", "none"); code != exitNotFound { // an editor may, if it existed
		t.Errorf("exit code %d: %s", code, stderr)
	}
}

func TestLoginIsKeptInTheContext(t *testing.T) {
	provider := openid.Start(t, "people")
	f := loginFleet(t, provider)
	delete(f.vars, endpointVariable)
	f.must("context", "add", "prod", "--endpoint", f.endpoint)
	f.must("login", "--context", "prod")
	if info, err := os.Stat(f.env.ConfigFile); err != nil || info.Mode().Perm() != 0o600 {
		t.Fatalf("%v, %v, want mode 0600", info, err)
	}
	f.must("get", "clusters")
	file, err := os.ReadFile(f.env.ConfigFile)
	if err != nil || !bytes.Contains(file, []byte(provider.Given()[0])) {
		t.Errorf("the context has no token: %v", err)
	}
	if out := f.must("login", "--context", "prod") + f.must("context", "list"); strings.Contains(out, "eyJ") {
		t.Errorf("the token was shown: %s", out)
	}
	// Another server does not get it.
	if code, _, stderr := f.run("login", "--endpoint", "http://127.0.0.1:1"); code != ExitUsage || !strings.Contains(stderr, "context") {
		t.Errorf("exit code %d: %s", code, stderr)
	}
	f.must("logout")
	if code, _, _ := f.run("get", "clusters"); code != exitRefused {
		t.Errorf("after the logout: exit code %d", code)
	}
}

func TestLoginOnAnotherDevice(t *testing.T) {
	provider := openid.Start(t, "people")
	f := loginFleet(t, provider)
	ended := make(chan int, 1)
	go func() {
		ended <- execute(t.Context(), f.env, []string{"login", "--device"})
	}()
	eventually.True(t, "the code is shown", func() bool { return strings.Contains(f.stderr.String(), "ABCD-EFGH") })
	provider.Approve()
	if code := <-ended; code != exitOK {
		t.Fatalf("exit code %d: %s", code, f.stderr)
	}
	f.must("get", "clusters")
}

// What is not from the issuer that was asked is refused, and nothing is kept.
func TestLoginsThatFail(t *testing.T) {
	for name, c := range map[string]struct {
		prepare func(p *openid.Provider, f *fleet)
		args    []string
		code    int
		says    string
	}{
		"refused":           {prepare: func(p *openid.Provider, _ *fleet) { p.Refuse = "alice has left" }, code: exitRefused, says: "alice has left"},
		"refused, device":   {prepare: func(p *openid.Provider, _ *fleet) { p.Refuse = "alice has left" }, args: []string{"--device"}, code: exitRefused, says: "alice has left"},
		"another login":     {prepare: func(p *openid.Provider, _ *fleet) { p.Alter = func(c map[string]any) { c["nonce"] = "guessed" } }, code: exitRefused, says: "another login"},
		"no such issuer":    {args: []string{"--issuer", "none"}, code: ExitUsage, says: "corp"},
		"issuer is away":    {prepare: func(p *openid.Provider, _ *fleet) { p.Close() }, code: exitRefused, says: "corp"},
		"guessed by a page": {prepare: func(_ *openid.Provider, f *fleet) { f.env.OpenURL = guess(visit) }, code: exitOK, says: "logged in"},
	} {
		t.Run(name, func(t *testing.T) {
			provider := openid.Start(t, "people")
			f := loginFleet(t, provider)
			if c.prepare != nil {
				c.prepare(provider, f)
			}
			code, stdout, stderr := f.run(append([]string{"login"}, c.args...)...)
			if code != c.code || !strings.Contains(stdout+stderr, c.says) {
				t.Errorf("exit code %d: %s%s; want %d and %q", code, stdout, stderr, c.code, c.says)
			}
			if _, err := os.Stat(f.env.ConfigFile); (err == nil) != (c.code == exitOK) {
				t.Errorf("the file of contexts: %v", err)
			}
		})
	}
}

// guess is a browser in which another page first tries to pass a code of its own to the command.
func guess(then func(context.Context, string) error) func(context.Context, string) error {
	return func(ctx context.Context, address string) error {
		u, err := url.Parse(address)
		if err != nil {
			return err
		}
		for _, answer := range []string{"?code=stolen", "?code=stolen&state=guessed", "?error=access_denied&state=guessed", "other?state=" + u.Query().Get("state")} {
			request, err := http.NewRequestWithContext(ctx, http.MethodGet, u.Query().Get("redirect_uri")+answer, nil)
			if err != nil {
				return err
			}
			response, err := http.DefaultClient.Do(request)
			if err != nil {
				return err
			}
			if _ = response.Body.Close(); response.StatusCode != http.StatusNotFound {
				return fmt.Errorf("%s is answered with %s", answer, response.Status)
			}
		}
		return then(ctx, address)
	}
}
