package otlp

import (
	"bufio"
	"bytes"
	"cmp"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"net/url"
	"os"
	"strings"

	"golang.org/x/net/http/httpguts"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Protocol is how spans are sent.
type Protocol string

// Protocols.
const (
	HTTP Protocol = "http"
	GRPC Protocol = "grpc"
)

// Settings say where spans go. What is not set comes from the environment: the exporters of OpenTelemetry read
// the variables OTEL_EXPORTER_OTLP_….
type Settings struct {
	// Endpoint is the address of the collector: https://host:port, and for HTTP the path, if it is not
	// /v1/traces.
	Endpoint string
	Protocol Protocol
	// HeadersFile has headers for the collector, such as a token: one "Name: value" in each line.
	HeadersFile string
	// CAFile has PEM certificates that the collector's certificate must chain to.
	CAFile string
	// Plain allows an Endpoint with http:// on another machine.
	Plain bool
	// SampleRatio is the part of the traces to record that begin here: 0 to 1.
	SampleRatio float64
}

// exporterVariable turns tracing on if it is "otlp", as in other programs, Terraform among them.
const exporterVariable = "OTEL_TRACES_EXPORTER"

// on reports whether spans are exported at all.
func (s *Settings) on(getenv func(string) string) bool {
	return s.Endpoint != "" || getenv(exporterVariable) == "otlp"
}

// Check calls wrong for every rule that the settings break, with the name of the setting.
func (s *Settings) Check(wrong func(setting, format string, args ...any)) {
	if s.Protocol != "" && s.Protocol != HTTP && s.Protocol != GRPC {
		wrong("protocol", "%q is not one of http, grpc", string(s.Protocol))
	}
	if !(s.SampleRatio >= 0 && s.SampleRatio <= 1) {
		wrong("sample-ratio", "%v is not between 0 and 1", s.SampleRatio)
	}
	if s.HeadersFile != "" {
		if _, err := readHeaders(s.HeadersFile); err != nil {
			wrong("headers-file", "%w", err)
		}
	}
	if s.CAFile != "" {
		if _, err := readRoots(s.CAFile); err != nil {
			wrong("ca-file", "%w", err)
		}
	}
	s.checkEndpoint(wrong)
}

func (s *Settings) checkEndpoint(wrong func(setting, format string, args ...any)) {
	if s.Endpoint == "" {
		return
	}
	at, err := url.Parse(s.Endpoint)
	switch {
	case err != nil || at.Scheme != "http" && at.Scheme != "https" || at.Hostname() == "" || at.User != nil || at.RawQuery != "" || at.Fragment != "":
		wrong("endpoint", "it is not an address of the form https://host:port")
	case s.Protocol == GRPC && strings.Trim(at.Path, "/") != "":
		wrong("endpoint", "with gRPC, it has no path: write https://host:port")
	case at.Scheme == "http" && !isLoopback(at.Hostname()) && !s.Plain:
		wrong("endpoint", "http:// sends traces and headers unencrypted: write https://, or set tracing-insecure as well")
	case at.Scheme == "http" && s.CAFile != "":
		wrong("ca-file", "requires an endpoint with https://")
	}
}

func isLoopback(host string) bool {
	ip := net.ParseIP(host)
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// protocol returns the protocol of the settings or of the environment. The default is that of OpenTelemetry.
func (s *Settings) protocol(getenv func(string) string) (Protocol, error) {
	if s.Protocol != "" {
		return s.Protocol, nil
	}
	const variable = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	switch text := cmp.Or(getenv(variable), getenv("OTEL_EXPORTER_OTLP_PROTOCOL")); text {
	case "", "http/protobuf":
		return HTTP, nil
	case "grpc":
		return GRPC, nil
	default:
		return "", fmt.Errorf("%s (or OTEL_EXPORTER_OTLP_PROTOCOL): %q is not one of http/protobuf, grpc", variable, text)
	}
}

// address returns the endpoint with the path for traces, if it has none.
func (s *Settings) address(protocol Protocol) string {
	at, err := url.Parse(s.Endpoint)
	if err == nil && protocol == HTTP && strings.Trim(at.Path, "/") == "" {
		return at.JoinPath("v1", "traces").String()
	}
	return s.Endpoint
}

// tls returns the TLS settings, nil for those of the environment.
func (s *Settings) tls() (*tls.Config, error) {
	if s.CAFile == "" {
		return nil, nil
	}
	roots, err := readRoots(s.CAFile)
	if err != nil {
		return nil, err
	}
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: roots}, nil
}

func readRoots(file string) (*x509.CertPool, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return nil, fmt.Errorf("%s contains no PEM certificate", file)
	}
	return roots, nil
}

// readHeaders reads a file of headers. Its errors do not repeat what is in it.
func readHeaders(file string) (map[string]api.Secret, error) {
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	headers := map[string]api.Secret{}
	lines := bufio.NewScanner(bytes.NewReader(data))
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || strings.HasPrefix(line, "#") {
			continue
		}
		name, value, found := strings.Cut(line, ":")
		value = strings.TrimSpace(value)
		if !found || !httpguts.ValidHeaderFieldName(name) || !httpguts.ValidHeaderFieldValue(value) {
			return nil, fmt.Errorf("%s: line %d is not a header: write Name: value", file, n)
		}
		headers[textproto.CanonicalMIMEHeaderKey(name)] = api.NewSecret(value)
	}
	if lines.Err() != nil {
		return nil, fmt.Errorf("%s: %w", file, lines.Err())
	}
	if len(headers) == 0 {
		return nil, errors.New(file + " contains no header")
	}
	return headers, nil
}
