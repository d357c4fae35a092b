package outbound

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/textproto"
	"net/url"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
)

// Describe says why a request got no answer, in words that are the same every
// time: without local ports, times, addresses of name servers, and without what a
// server that speaks something else has sent. What is described ends up in a
// status, and a status is written when it changes.
func Describe(err error) string {
	var (
		dns     *net.DNSError
		invalid x509.CertificateInvalidError
		op      *net.OpError
		wrapped *url.Error
		timeout interface{ Timeout() bool }
		header  textproto.ProtocolError
		refusal *netpolicy.Refusal
	)
	switch {
	case errors.As(err, &refusal):
		return refusal.Error()
	case errors.Is(err, ErrTooLarge):
		return ErrTooLarge.Error()
	case errors.Is(err, ErrRedirects):
		return ErrRedirects.Error()
	case errors.Is(err, ErrRedirectedAway):
		return ErrRedirectedAway.Error()
	case errors.Is(err, context.DeadlineExceeded):
		return "no answer in time"
	case errors.As(err, &dns) && dns.IsNotFound:
		return fmt.Sprintf("no such host: %q", dns.Name)
	case errors.As(err, &dns):
		return fmt.Sprintf("the host %q cannot be looked up", dns.Name)
	case errors.As(err, &invalid) && invalid.Reason == x509.Expired:
		return "the certificate has expired or is not yet valid"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "no answer in time"
	case errors.As(err, &header), strings.Contains(err.Error(), "malformed HTTP"):
		return "the answer is not HTTP"
	case strings.Contains(err.Error(), "failed to parse Location header"):
		return "redirected to something that is not an address"
	case errors.As(err, &op) && op.Err != nil:
		return op.Op + ": " + op.Err.Error()
	case errors.As(err, &wrapped) && wrapped.Err != nil:
		return wrapped.Err.Error()
	}
	return err.Error()
}
