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

	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
)

// Describe says why a request got no response, in text that is the same every time: without local
// ports, times, addresses of name servers, and without anything sent by the other side, be it in a
// certificate or in a response that is not HTTP. The text is stored in a status whenever it
// changes, and shown to users.
func Describe(err error) string {
	for _, describe := range []func(error) string{describeOwn, describeTimeout, describeLookup, describeCertificate, describeAnswer, describeConnection} {
		if text := describe(err); text != "" {
			return text
		}
	}
	return "the connection or the response broke off"
}

// describeOwn describes errors of this program.
func describeOwn(err error) string {
	var (
		failed  *fault.Panic
		own     Error
		refusal *netpolicy.Refusal
	)
	switch {
	case errors.As(err, &failed):
		return failed.Error()
	case errors.As(err, &own):
		return own.Error()
	case errors.As(err, &refusal):
		return refusal.Error()
	}
	return ""
}

func describeTimeout(err error) string {
	var timeout interface{ Timeout() bool }
	// A name server that does not answer is not the server that was asked.
	if _, lookup := errors.AsType[*net.DNSError](err); errors.Is(err, context.DeadlineExceeded) || !lookup && errors.As(err, &timeout) && timeout.Timeout() {
		return "no response in time"
	}
	return ""
}

// describeLookup describes why a name has no address.
func describeLookup(err error) string {
	dns, ok := errors.AsType[*net.DNSError](err)
	switch {
	case !ok:
		return ""
	case dns.IsNotFound:
		return fmt.Sprintf("no such host: %q", dns.Name)
	}
	return fmt.Sprintf("the host %q cannot be resolved", dns.Name)
}

// describeCertificate describes why the certificate of a server is not accepted.
func describeCertificate(err error) string {
	var (
		invalid   x509.CertificateInvalidError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
	)
	switch {
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not yet valid"
	case errors.As(err, &authority):
		return "tls: failed to verify certificate: x509: certificate signed by unknown authority"
	case errors.As(err, &host):
		return "tls: the certificate is valid for other hosts only"
	case errors.As(err, &invalid):
		return "the certificate is not valid for a server"
	}
	return ""
}

// describeAnswer describes answers that are not of the protocol.
func describeAnswer(err error) string {
	var header textproto.ProtocolError
	switch {
	case errors.As(err, &header), strings.Contains(err.Error(), "malformed HTTP"):
		return "the response is not HTTP"
	case strings.Contains(err.Error(), "failed to parse Location header"):
		return "redirected to something that is not an address"
	}
	return ""
}

// describeConnection describes why a connection could not be made, or broke.
func describeConnection(err error) string {
	var (
		op     *net.OpError
		number syscall.Errno
		record tls.RecordHeaderError
		alert  tls.AlertError
	)
	switch {
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
	return ""
}
