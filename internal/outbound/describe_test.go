package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strings"
	"syscall"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// TestDescribe checks that the text contains nothing that differs between requests, such as local ports and times.
func TestDescribe(t *testing.T) {
	from, to := &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 40123}, &net.TCPAddr{IP: net.IPv4(127, 0, 0, 1), Port: 9090}
	for _, c := range []struct {
		err  error
		want string
	}{
		{context.DeadlineExceeded, "no response in time"},
		{&net.OpError{Op: "read", Net: "tcp", Source: from, Addr: to, Err: syscall.ECONNRESET}, "read: connection reset by peer"},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: syscall.ECONNREFUSED}, "dial: connection refused"},
		{&net.OpError{Op: "dial", Net: "tcp", Addr: to, Err: &timeoutError{}}, "no response in time"},
		{&net.DNSError{Name: "prom", Err: "no such host", IsNotFound: true, Server: "10.0.0.1:53"}, `no such host: "prom"`},
		{&net.DNSError{Name: "prom", Err: "read udp 127.0.0.1:5511->127.0.0.11:53: i/o timeout", IsTimeout: true}, `the host "prom" cannot be resolved`},
		{&tls.CertificateVerificationError{Err: x509.CertificateInvalidError{Reason: x509.Expired, Detail: "current time 2026-01-01T00:00:00Z is after 2025"}}, "the certificate has expired or is not yet valid"},
		{fmt.Errorf("x: %w", ErrTooLarge), "the response is too large"},
		{ErrRedirects, "redirected more than 3 times"},
		{io.ErrUnexpectedEOF, "unexpected EOF"},
		// None of these contains what the other side sends.
		{&tls.CertificateVerificationError{Err: x509.HostnameError{Certificate: &x509.Certificate{DNSNames: []string{"hush-name"}}, Host: "prom"}}, "tls: the certificate is valid for other hosts only"},
		{x509.UnknownAuthorityError{Cert: &x509.Certificate{}}, "tls: failed to verify certificate: x509: certificate signed by unknown authority"},
		{x509.CertificateInvalidError{Reason: x509.NameConstraintsWithoutSANs, Detail: "hush"}, "the certificate is not valid for a server"},
		{tls.RecordHeaderError{Msg: "first record does not look like a TLS handshake", RecordHeader: [5]byte{'h', 'u', 's', 'h'}}, "the response is not TLS"},
		{errors.New(`http2: server sent GOAWAY and closed the connection; LastStreamID=1, ErrCode=NO_ERROR, debug="hush"`), "the connection or the response broke off"},
		{errors.New(`bad Content-Length "hush"`), "the connection or the response broke off"},
		{&addresspolicy.Refusal{Host: "prom"}, "the server must not connect to prom: "},
	} {
		for _, err := range []error{c.err, &url.Error{Op: "Get", URL: "http://user:hush@prom/", Err: c.err}} {
			if got := Describe(err); got != c.want {
				t.Errorf("%v: got %q, want %q", err, got, c.want)
			}
		}
	}
}

// TestDescribeForeignProtocol checks that the text contains nothing of what a server of another protocol sends, which
// could be different every time.
func TestDescribeForeignProtocol(t *testing.T) {
	const secret = "hush-4711"
	for name, c := range map[string]struct{ answer, want string }{
		"no HTTP":           {"\xca\x06" + secret + "\r\n\r\n", "the response is not HTTP"},
		"another protocol":  {"SSH-2.0-" + secret + "\r\n", "the response is not HTTP"},
		"broken status":     {"HTTP/1.1 " + secret + "\r\n\r\n", "the response is not HTTP"},
		"broken version":    {"HTTP/x" + secret + " 200 OK\r\n\r\n", "the response is not HTTP"},
		"broken header":     {"HTTP/1.1 200 OK\r\n" + secret + "\r\n\r\n", "the response is not HTTP"},
		"redirect anywhere": {"HTTP/1.1 302 Found\r\nLocation: http://[" + secret + "\r\nContent-Length: 0\r\n\r\n", "redirected to something that is not an address"},
	} {
		t.Run(name, func(t *testing.T) {
			listener, err := net.Listen("tcp", "127.0.0.1:0")
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = listener.Close() }()
			go func() {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				_, _ = conn.Read(make([]byte, 4096))
				_, _ = io.WriteString(conn, c.answer)
				_ = conn.Close()
			}()
			resp, err := New(addresspolicy.OnLoopback(), Options{DisableKeepAlives: true}).Get("http://" + listener.Addr().String())
			if err == nil {
				_ = resp.Body.Close()
				t.Fatalf("the answer was accepted: %s", resp.Status)
			}
			if got := Describe(err); got != c.want {
				t.Errorf("%v: got %q, want %q", err, got, c.want)
			}
		})
	}
}

type timeoutError struct{}

func (timeoutError) Error() string { return "i/o timeout" }
func (timeoutError) Timeout() bool { return true }

type body struct{ text string }

func (b body) RoundTrip(r *http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: 200, Body: io.NopCloser(strings.NewReader(b.text)), Request: r}, nil
}

func TestBodyLimit(t *testing.T) {
	for _, c := range []struct {
		length int
		err    error
	}{{0, nil}, {9, nil}, {10, nil}, {11, ErrTooLarge}, {10000, ErrTooLarge}} {
		client := New(addresspolicy.OnLoopback(), Options{MaxBody: 10, RoundTripper: body{strings.Repeat("x", c.length)}})
		resp, err := client.Get("http://host/")
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(resp.Body)
		if !errors.Is(err, c.err) || len(got) != min(c.length, 10) {
			t.Errorf("read %[2]d of %[1]d bytes, %[3]v, want %[4]v", c.length, len(got), err, c.err)
		}
		_ = resp.Body.Close()
	}
}
