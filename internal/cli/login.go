package cli

import (
	"cmp"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/oauth2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

const (
	// loginTime is how long a person may take to log in.
	loginTime = 5 * time.Minute
	// issuerTime is how long a request to an issuer may take, and issuerBytes how large its answer may be.
	issuerTime  = 30 * time.Second
	issuerBytes = 1 << 20
)

func (s *session) loginCommand() *cobra.Command {
	var issuer string
	var device bool
	cmd := &cobra.Command{
		Use: "login", Short: "Log in with an issuer that the server trusts", Args: cobra.NoArgs,
		Long: `Log in with an issuer that the server trusts (OpenID Connect), and keep the token in the
context, which only you can read, until it expires. The token is only sent to the servers of
the context.

A browser opens on this machine, and the issuer sends it back to this command, on a port of
127.0.0.1. On a machine without a browser, --device shows an address and a code to type on
another device.`,
		Example: "  PROGRAM login --context prod\n  PROGRAM login --device",
		RunE:    func(cmd *cobra.Command, _ []string) error { return s.login(cmd.Context(), issuer, device) },
	}
	cmd.Flags().StringVar(&issuer, "issuer", "", "name of the issuer, if the server trusts several")
	cmd.Flags().BoolVar(&device, "device", false, "log in with a code on another device")
	return cmd
}

func (s *session) logoutCommand() *cobra.Command {
	return &cobra.Command{
		Use: "logout", Short: "Forget the token of a login", Args: cobra.NoArgs,
		Long: `Remove the token from the context. It stays valid until it expires: end the session at the
issuer, too, if somebody else may have it.`,
		RunE: func(*cobra.Command, []string) error {
			if err := s.connection.load(s.Environment); err != nil {
				return err
			}
			if s.connection.contextName == "" {
				return usage("there is no context to log out of")
			}
			return s.changeContext(s.connection.contextName, func(config *configuration) {
				config.Contexts[s.connection.contextName].Token = ""
			})
		},
	}
}

func (s *session) login(ctx context.Context, name string, device bool) error {
	config, into, err := s.loginContext()
	if err != nil {
		return err
	}
	server, err := s.connection.connectWith(api.Secret{}, s.Environment)
	if err != nil {
		return err
	}
	defer server.Close()
	option, err := loginOption(ctx, server, name)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, loginTime)
	defer cancel()
	token, claims, err := s.tokenOf(ctx, option, device)
	if err != nil {
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			err = fmt.Errorf("nobody logged in within %s", loginTime)
		}
		return fmt.Errorf("login with %s: %w", option.Name, err)
	}
	into.Token, into.TokenFile = token, ""
	if err := s.connection.save(s.Environment, config); err != nil {
		return err
	}
	if s.Getenv(tokenVariable) != "" {
		fmt.Fprintf(s.Stderr, "%s is set: its token is used instead of this login, unless --context names the context\n", tokenVariable)
	}
	until := ""
	if claims.Expires != 0 {
		until = " until " + time.Unix(claims.Expires, 0).UTC().Format(time.RFC3339)
	}
	_, err = fmt.Fprintln(s.Stdout, termtext.Text("logged in as "+cmp.Or(claims.Email, claims.Subject)+until))
	return err
}

// loginContext returns the configuration, and the context in it that gets the token: the one in force, or a new one for
// the servers in force if there is none.
func (s *session) loginContext() (*configuration, *connectionSettings, error) {
	if err := s.connection.load(s.Environment); err != nil {
		return nil, nil, err
	}
	config, err := s.connection.configuration(s.Environment)
	if err != nil {
		return nil, nil, err
	}
	used := &s.connection.used
	if len(used.Endpoints) == 0 {
		used.Endpoints = []string{client.DefaultEndpoint}
	}
	if name := s.connection.contextName; name != "" {
		into, err := config.context(name)
		if err == nil && slices.ContainsFunc(used.Endpoints, func(e string) bool { return !slices.Contains(into.Endpoints, e) }) {
			err = usage("context %q is for %s, not for %s: create a context for it with context add", name, strings.Join(into.Endpoints, ", "), strings.Join(used.Endpoints, ", "))
		}
		return config, into, err
	}
	into := &connectionSettings{Endpoints: used.Endpoints, CACertFile: used.CACertFile, ClientCertFile: used.ClientCertFile, ClientKeyFile: used.ClientKeyFile}
	if config.Contexts == nil {
		config.Contexts = map[string]*connectionSettings{}
	}
	const name = "default"
	if config.Contexts[name] != nil {
		return nil, nil, usage("name the context to log in to with --context: there are %s", strings.Join(config.names(), ", "))
	}
	config.Contexts[name], config.Current = into, name
	return config, into, nil
}

// loginOption returns the issuer with a name, or the only one.
func loginOption(ctx context.Context, server *client.Client, name string) (api.LoginOption, error) {
	var offered struct {
		Items []api.LoginOption `json:"items"`
	}
	if err := server.Call(ctx, http.MethodGet, "/v1/logins", nil, &offered); err != nil {
		return api.LoginOption{}, err
	}
	var names []string
	for _, option := range offered.Items {
		if name == option.Name || name == "" && len(offered.Items) == 1 {
			return option, nil
		}
		names = append(names, option.Name)
	}
	switch {
	case len(names) == 0:
		return api.LoginOption{}, errors.New("people cannot log in to this server: no issuer in its configuration has a login")
	case name == "":
		return api.LoginOption{}, usage("--issuer: the server trusts several issuers: name one of %s", strings.Join(names, ", "))
	}
	return api.LoginOption{}, usage("--issuer: there is no login with %q: name one of %s", name, strings.Join(names, ", "))
}

// tokenOf returns the ID token that an issuer gives a person, and its claims.
func (s *session) tokenOf(ctx context.Context, option api.LoginOption, device bool) (text string, claims loginClaims, err error) {
	web := &http.Client{Timeout: issuerTime, Transport: limited{}, CheckRedirect: func(*http.Request, []*http.Request) error {
		return http.ErrUseLastResponse
	}}
	ctx = context.WithValue(ctx, oauth2.HTTPClient, web)
	endpoint, err := discover(ctx, web, option.Issuer)
	if err != nil {
		return "", claims, err
	}
	flow := &oauth2.Config{ClientID: option.ClientID, Scopes: option.Scopes, Endpoint: endpoint}
	var token *oauth2.Token
	nonce := oauth2.GenerateVerifier()
	if device {
		nonce = ""
		token, err = s.askDevice(ctx, flow)
	} else {
		token, err = s.askBrowser(ctx, flow, nonce)
	}
	if refused, ok := errors.AsType[*oauth2.RetrieveError](err); ok && refused.ErrorCode != "" {
		err = errors.New(cmp.Or(refused.ErrorDescription, refused.ErrorCode))
	}
	if err != nil {
		return "", claims, err
	}
	text, _ = token.Extra("id_token").(string)
	if text == "" {
		return "", claims, errors.New("the issuer returned no ID token")
	}
	claims, err = claimsOf(text)
	if err == nil && nonce != "" && claims.Nonce != nonce {
		err = errors.New("the issuer returned the token of another login")
	}
	return text, claims, err
}

// discover returns the endpoints of an issuer (OpenID Connect Discovery 1.0), which must be as trustworthy as its own
// address.
func discover(ctx context.Context, web *http.Client, issuer string) (oauth2.Endpoint, error) {
	var document struct {
		Issuer string `json:"issuer"`
		Auth   string `json:"authorization_endpoint"`
		Token  string `json:"token_endpoint"`
		Device string `json:"device_authorization_endpoint"`
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, strings.TrimSuffix(issuer, "/")+"/.well-known/openid-configuration", nil)
	if err != nil {
		return oauth2.Endpoint{}, err
	}
	response, err := web.Do(request)
	if err != nil {
		return oauth2.Endpoint{}, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return oauth2.Endpoint{}, fmt.Errorf("%s answered %s", request.URL, response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		return oauth2.Endpoint{}, fmt.Errorf("%s: %w", request.URL, err)
	}
	if document.Issuer != issuer {
		return oauth2.Endpoint{}, fmt.Errorf("the discovery document is that of %q, not of %q", document.Issuer, issuer)
	}
	for name, address := range map[string]string{"authorization_endpoint": document.Auth, "token_endpoint": document.Token, "device_authorization_endpoint": document.Device} {
		u, err := url.Parse(address)
		if err != nil || address != "" && u.Scheme != request.URL.Scheme {
			return oauth2.Endpoint{}, fmt.Errorf("%s of %q is %q, which is not an address with %s", name, issuer, address, request.URL.Scheme)
		}
	}
	return oauth2.Endpoint{AuthURL: document.Auth, TokenURL: document.Token, DeviceAuthURL: document.Device, AuthStyle: oauth2.AuthStyleInParams}, nil
}

// askBrowser sends a browser to the issuer and waits until it comes back (RFC 8252, section 7.3: a loopback address), with
// PKCE (RFC 7636).
func (s *session) askBrowser(ctx context.Context, flow *oauth2.Config, nonce string) (*oauth2.Token, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	flow.RedirectURL = "http://" + listener.Addr().String() + "/"
	state, verifier := oauth2.GenerateVerifier(), oauth2.GenerateVerifier()
	answers := make(chan url.Values, 1)
	page := &http.Server{ReadHeaderTimeout: issuerTime, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer := r.URL.Query()
		if r.URL.Path != "/" || r.Method != http.MethodGet || answer.Get("state") != state {
			http.NotFound(w, r) // nobody asked for it
			return
		}
		w.Header().Set("Content-Type", "text/plain; charset=utf-8")
		fmt.Fprintln(w, "Close this window and return to the terminal.")
		select {
		case answers <- answer:
		default: // it came back twice
		}
	})}
	served := make(chan struct{})
	go func() {
		defer close(served)
		_ = page.Serve(listener) // ends with Close
	}()
	defer func() { <-served }()
	defer page.Close()
	address := flow.AuthCodeURL(state, oauth2.S256ChallengeOption(verifier), oauth2.SetAuthURLParam("nonce", nonce))
	if err := s.OpenURL(ctx, address); err != nil {
		fmt.Fprintf(s.Stderr, "Open this address in a browser on this machine:\n\n  %s\n\n", address)
	}
	select {
	case answer := <-answers:
		if refused := answer.Get("error"); refused != "" {
			return nil, errors.New(cmp.Or(answer.Get("error_description"), refused))
		}
		return flow.Exchange(ctx, answer.Get("code"), oauth2.VerifierOption(verifier))
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// askDevice waits until a person has typed a code on another device (RFC 8628).
func (s *session) askDevice(ctx context.Context, flow *oauth2.Config) (*oauth2.Token, error) {
	if flow.Endpoint.DeviceAuthURL == "" {
		return nil, errors.New("the issuer has no logins on other devices: leave --device out")
	}
	asked, err := flow.DeviceAuth(ctx)
	if err != nil {
		return nil, err
	}
	fmt.Fprint(s.Stderr, termtext.Lines(fmt.Sprintf("Open %s on any device and type the code %s\n", asked.VerificationURI, asked.UserCode)))
	return flow.DeviceAccessToken(ctx, asked)
}

// loginClaims are the claims of an ID token that are shown or compared. The server verifies it.
type loginClaims struct {
	Subject string `json:"sub"`
	Email   string `json:"email"`
	Nonce   string `json:"nonce"`
	Expires int64  `json:"exp"`
}

func claimsOf(token string) (claims loginClaims, err error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return claims, errors.New("the issuer returned a token that is not a JWT")
	}
	data, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err == nil {
		err = json.Unmarshal(data, &claims)
	}
	if err != nil {
		return claims, fmt.Errorf("the issuer returned a token that is not a JWT: %w", err)
	}
	return claims, nil
}

// limited is a transport whose answers have a largest size.
type limited struct{}

// RoundTrip implements http.RoundTripper.
func (limited) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := http.DefaultTransport.RoundTrip(request)
	if err == nil {
		response.Body = struct {
			io.Reader
			io.Closer
		}{io.LimitReader(response.Body, issuerBytes), response.Body}
	}
	return response, err
}
