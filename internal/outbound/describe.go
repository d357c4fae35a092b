package outbound

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strings"
	"syscall"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
)

// Describe says why a request got no response, in text that is the same every time: without local
// ports, times, addresses of name servers, and without anything sent by the other side, be it in a
// certificate or in a response that is not HTTP. The text is stored in a status whenever it
// changes, and shown to users.
func Describe(err error) string {
	var (
		dns     *net.DNSError
		invalid x509.CertificateInvalidError
		op      *net.OpError
		timeout interface{ Timeout() bool }
		header  textproto.ProtocolError
		refusal *addresspolicy.Refusal

		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		number    syscall.Errno
		record    tls.RecordHeaderError
		alert     tls.AlertError
		own       Error
		failed    *recovery.Panic
	)
	switch {
	case errors.As(err, &failed):
		return failed.Error()
	case errors.As(err, &own):
		return own.Error()
	case errors.As(err, &refusal):
		return refusal.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no response in time"
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("no such host: %q", dns.Name)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host %q cannot be resolved", dns.Name)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not yet valid"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no response in time"
	case errors.As(err, &header), strings.Contains(err.Error(), "malformed HTTP"):
		return "the response is not HTTP"
	case strings.Contains(err.Error(), "failed to parse Location header"):
		return "redirected to something that is not an address"
	case errors.As(err, &authority):
		return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
	case errors.As(err, &host):
		return "tls: the certificate is valid for other hosts only"
	case errors.As(err, &invalid):
		return "the certificate is not valid for a server"
	case errors.As(err, &number) && errors.As(err, &op):
		return op.Op + ": " + op.Err.Error()
	case errors.As(err, &number):
		return number.Error()
	case errors.As(err, &record):
		return "the response is not TLS"
	case errors.As(err, &alert):
		return "tls: " + strings.TrimPrefix(alert.Error(), "tls: ")
	}
	for _, known := range []error{io.ErrUnexpectedEOF, io.EOF, net.ErrClosed, context.Canceled} {
		if errors.Is(err, known) {
			return known.Error()
		}
	}
	for _, known := range []string{"server gave HTTP response to HTTPS client", "unsupported protocol scheme", "connection reset"} {
		if strings.Contains(err.Error(), known) {
			return known
		}
	}
	return "the connection or the response broke off"
}
