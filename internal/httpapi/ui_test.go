package httpapi

import (
	"bytes"
	"compress/gzip"
	"io"
	"net/http"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The page is there for everybody, because it contains no data; and it may load nothing but its own files.
func TestPageNeedsNoToken(t *testing.T) {
	program := strings.Repeat("let a = 1;\n", 1000)
	s := startServer(t, func(o *Options) {
		o.Authenticate = true
		o.UI = fstest.MapFS{
			"index.html": {Data: []byte("<!doctype html><title>Scheduler</title>")}, "app-ABC.js": {Data: []byte(program)},
			"style-ABC.css": {Data: []byte("a{}")}, "icon-ABC.svg": {Data: []byte("<svg/>")}, ".gitignore": {Data: []byte("*")},
		}
	})
	for _, test := range []struct {
		path, mediaType, cache string
		status                 int
	}{
		{"/ui", "text/html; charset=utf-8", "no-cache", http.StatusOK},
		{"/ui/app-ABC.js", "text/javascript; charset=utf-8", "public, max-age=31536000, immutable", http.StatusOK},
		{"/ui/style-ABC.css", "text/css; charset=utf-8", "public, max-age=31536000, immutable", http.StatusOK},
		{"/ui/icon-ABC.svg", "image/svg+xml", "public, max-age=31536000, immutable", http.StatusOK},
		{"/ui/index.html", "application/problem+json", "", http.StatusNotFound},
		{"/ui/.gitignore", "application/problem+json", "", http.StatusNotFound},
		{"/ui/app-OLD.js", "application/problem+json", "", http.StatusNotFound},
		{"/ui/../v1/clusters", "application/problem+json", "", http.StatusUnauthorized},
	} {
		a := s.do(http.MethodGet, test.path, "")
		if a.StatusCode != test.status || a.Header.Get("Content-Type") != test.mediaType {
			t.Errorf("%s: %d %q, want %d %q", test.path, a.StatusCode, a.Header.Get("Content-Type"), test.status, test.mediaType)
		}
		if test.status != http.StatusOK {
			continue
		}
		for name, want := range map[string]string{
			"Cache-Control": test.cache, "Content-Security-Policy": uiPolicy(nil), "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer",
		} {
			if got := a.Header.Get(name); got != want {
				t.Errorf("%s: %s %q, want %q", test.path, name, got, want)
			}
		}
		if again := s.do(http.MethodGet, test.path, "", "If-None-Match", a.Header.Get("ETag")); again.StatusCode != http.StatusNotModified || len(again.body) > 0 {
			t.Errorf("%s: %d with %d bytes for what the browser has, want 304", test.path, again.StatusCode, len(again.body))
		}
	}
	for _, forbidden := range []string{"unsafe", "*", "http", "data:"} {
		if strings.Contains(uiPolicy(nil), forbidden) {
			t.Errorf("the policy of the page allows %q", forbidden)
		}
	}
	compressed := s.do(http.MethodGet, "/ui/app-ABC.js", "", "Accept-Encoding", "gzip")
	reader, err := gzip.NewReader(bytes.NewReader(compressed.body))
	if err != nil || compressed.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("the program is not compressed: %v", err)
	}
	if text, err := io.ReadAll(reader); err != nil || string(text) != program {
		t.Errorf("the compressed program differs (%v)", err)
	}
	if a := s.do(http.MethodPost, "/ui", ""); a.StatusCode != http.StatusMethodNotAllowed {
		t.Errorf("POST: %d, want 405", a.StatusCode)
	}
}

func TestPageThatWasNotBuiltSaysHowToGetIt(t *testing.T) {
	for name, files := range map[string]fstest.MapFS{"no files": nil, "no bundle": {".gitignore": {}}} {
		t.Run(name, func(t *testing.T) {
			s := startServer(t, func(o *Options) {
				if files != nil {
					o.UI = files
				}
			})
			a := s.do(http.MethodGet, "/ui", "")
			if a.StatusCode != http.StatusOK || !strings.Contains(string(a.body), "make build") || a.Header.Get("Content-Security-Policy") != uiPolicy(nil) {
				t.Errorf("%d %q", a.StatusCode, a.body)
			}
		})
	}
}

// A link with a slash at its end leads to the page, also behind a proxy that adds a path.
func TestPageWithASlash(t *testing.T) {
	s := startServer(t)
	s.client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	if a := s.do(http.MethodGet, "/ui/", ""); a.StatusCode != http.StatusMovedPermanently || a.Header.Get("Location") != "../ui" {
		t.Errorf("%d %q", a.StatusCode, a.Header.Get("Location"))
	}
}

func TestOpenPathsAreFew(t *testing.T) {
	for path, want := range map[string]bool{"/ui": true, "/ui/": true, "/ui/app.js": true, "/uix": false, "/v1/server": false, "/": false, "/ui2/x": false, "/ui/../v1/server": false, "/ui//v1": false} {
		if isOpen(path) != want {
			t.Errorf("%s needs no token: %v, want %v", path, !want, want)
		}
	}
}

// With logins, the page may also call the issuers, and only them.
func TestPageMayCallTheIssuersOfLogins(t *testing.T) {
	s := startServer(t, func(o *Options) {
		o.Logins = []api.LoginOption{{Name: "corp", Issuer: "https://login.example.com/realms/corp"}, {Name: "test", Issuer: "http://127.0.0.1:5556"}}
	})
	policy := s.do(http.MethodGet, "/ui", "").Header.Get("Content-Security-Policy")
	if want := "connect-src 'self' https://login.example.com http://127.0.0.1:5556;"; !strings.Contains(policy, want) {
		t.Errorf("policy %q, want %q in it", policy, want)
	}
}
