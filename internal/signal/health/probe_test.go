package health

import (
	"context"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// TestAnswersOfRealServers uses the network.
func TestAnswersOfRealServers(t *testing.T) {
	m := New(Options{Network: addresspolicy.OnLoopback()})
	hanging, pass := faketime.Deadline(t)
	for _, c := range []struct {
		name    string
		handler http.HandlerFunc
		want    outcome
		message string
	}{
		{"200", func(http.ResponseWriter, *http.Request) {}, success, "succeeded"},
		{"299", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(299) }, success, "succeeded"},
		{"404", http.NotFound, refused, "404 Not Found"},
		{"599", func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(599) }, refused, "599"},
		{"one redirect", func(w http.ResponseWriter, r *http.Request) {
			if r.URL.Path == "/" {
				http.Redirect(w, r, "/ok", http.StatusFound)
			}
		}, success, "succeeded"},
		{"redirect loop", func(w http.ResponseWriter, r *http.Request) { http.Redirect(w, r, r.URL.Path, http.StatusFound) }, refused, "more than 3 times"},
		{"endless body", func(w http.ResponseWriter, r *http.Request) {
			for r.Context().Err() == nil {
				if _, err := w.Write(make([]byte, 1<<16)); err != nil {
					return
				}
			}
		}, success, "succeeded"},
		{"hangs", func(_ http.ResponseWriter, r *http.Request) { pass(); <-r.Context().Done() }, unreachable, "no response in time"},
		{"cuts the connection", func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }, unreachable, "EOF"},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := httptest.NewServer(c.handler)
			defer s.Close()
			ctx, cancel := context.WithTimeout(t.Context(), eventually.Limit)
			defer cancel()
			if c.name == "hangs" {
				ctx = hanging
			}
			got, message := m.ask(ctx, s.URL+"/")
			if got != c.want || !strings.Contains(message, c.message) {
				t.Errorf("got %v, %q; want %v, %q", got, message, c.want, c.message)
			}
		})
	}
	if got, message := m.ask(t.Context(), "http://"+proxytest.FreeAddress(t)); got != unreachable || !strings.Contains(message, "connection refused") {
		t.Errorf("closed port: %v, %q", got, message)
	}
}
