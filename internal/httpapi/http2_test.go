package httpapi

import (
	"crypto/tls"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHTTP2(t *testing.T) {
	example := httptest.NewTLSServer(http.NotFoundHandler()) // for its certificate
	defer example.Close()
	s := startServer(t, func(o *Options) {
		o.TLS = &tls.Config{Certificates: example.TLS.Certificates, NextProtos: []string{"h2", "http/1.1"}}
	})
	s.url = strings.Replace(s.url, "http:", "https:", 1)
	trusting := example.Client().Transport.(*http.Transport).TLSClientConfig
	s.client = &http.Client{Transport: &http.Transport{TLSClientConfig: trusting, ForceAttemptHTTP2: true}}
	t.Cleanup(s.client.CloseIdleConnections)
	a := s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`)
	if a.ProtoMajor != 2 {
		t.Errorf("protocol %s, want HTTP/2", a.Proto)
	}
	watch := s.watch("/v1/watch").started()
	s.mustPut("/v1/clusters/eu-2", `{"spec":{}}`)
	watch.expect("put eu-2")
	if a := s.do(http.MethodPut, "/v1/clusters/eu-1", strings.Repeat("x", 2<<20)); a.StatusCode != 413 {
		t.Errorf("oversized body: got %d, want 413", a.StatusCode)
	}
}
