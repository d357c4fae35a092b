package terraform

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// startedHere is advice for configurations that start the server themselves.
const startedHere = " If this configuration itself starts the server, have endpoint refer to the resource that does, or set check_connection = false (SCHEDULER_CHECK_CONNECTION)."

// Connect checks that the server can be used. An error returned here is reported once by Terraform,
// which then starts nothing that needs the provider.
func (s *Session) Connect(ctx context.Context, diags *diag.Diagnostics) {
	info, err := s.client.Connect(ctx)
	var refused *client.LoginError
	var unreachable *client.UnreachableError
	var identity interface {
		error
		Setting() string
	}
	endpoint, at := s.client.Endpoints(), path.Root("endpoint")
	if s.client.Several() {
		at = path.Root("endpoints")
	}
	switch {
	case err == nil:
		s.compareFields(ctx, info)
	case errors.As(err, &identity):
		diags.AddAttributeError(path.Root(identity.Setting()), "There is no token", Sentence(identity.Error())+fmt.Sprintf(" Correct %s (SCHEDULER_%s), or set token (SCHEDULER_TOKEN).", identity.Setting(), strings.ToUpper(identity.Setting())))
	case errors.As(err, &refused):
		diags.AddAttributeError(path.Root("token"), "The scheduling server rejects the token", fmt.Sprintf("The server at %s says: %s%s", endpoint, Sentence(refused.Error()), remedy(http.StatusUnauthorized)))
	case errors.As(err, &unreachable):
		diags.AddAttributeError(at, "Cannot reach the scheduling server", Sentence(err.Error())+whatWouldReach(err))
	case client.StatusOf(err) == http.StatusServiceUnavailable, client.StatusOf(err) == http.StatusTooManyRequests:
		diags.AddAttributeError(at, "The scheduling server is not ready", fmt.Sprintf("The server at %s says: %s%s", endpoint, Sentence(err.Error()), remedy(client.StatusOf(err))))
	default:
		diags.AddAttributeError(at, "This is not a scheduling server", fmt.Sprintf("The response from %s is not from a scheduling server: %s%s", endpoint, Sentence(err.Error()), whatWouldBeOne(err)))
	}
}

// whatWouldReach gives advice if the server does not respond.
func whatWouldReach(err error) string {
	var (
		name      *net.DNSError
		authority x509.UnknownAuthorityError
		host      x509.HostnameError
		invalid   x509.CertificateInvalidError
		record    tls.RecordHeaderError
		alert     tls.AlertError
	)
	switch {
	case errors.Is(err, syscall.ECONNREFUSED):
		return " Nothing listens there: start the server, or set endpoint (SCHEDULER_ENDPOINT) to its address." + startedHere
	case errors.As(err, &name):
		return " Set endpoint (SCHEDULER_ENDPOINT) to a name that this machine can resolve." + startedHere
	case errors.As(err, &authority):
		return " Set ca_cert_file (SCHEDULER_CA_CERT_FILE) to the certificate of the authority that signed the server's."
	case errors.As(err, &host):
		return " Set endpoint (SCHEDULER_ENDPOINT) to a name that the server's certificate is for."
	case errors.As(err, &invalid):
		return " The server needs a certificate that is valid now, for servers."
	case errors.As(err, &record), strings.Contains(err.Error(), "HTTP response to HTTPS client"):
		return " The server does not use TLS there: write http:// in endpoint (SCHEDULER_ENDPOINT)."
	case errors.As(err, &alert):
		return " The server requires another client certificate: set client_cert_file and client_key_file to one that it trusts."
	}
	return " Set endpoint (SCHEDULER_ENDPOINT) to the address of a running server." + startedHere
}

// whatWouldBeOne gives advice if the endpoint is not a scheduling server.
func whatWouldBeOne(err error) string {
	if client.StatusOf(err) == http.StatusBadRequest && strings.Contains(err.Error(), "HTTPS server") {
		return " It uses TLS: write https:// in endpoint (SCHEDULER_ENDPOINT)."
	}
	return " Set endpoint (SCHEDULER_ENDPOINT) to the server's own address, without a path of the API."
}

// Failed reports the error of an operation. If the server is lost, only the first error gives the
// reason, because there is a single problem to fix; the others only say that the operation failed.
func (s *Session) Failed(diags *diag.Diagnostics, what string, t tftypes.Type, err error) {
	var lost *client.LostError
	if !errors.As(err, &lost) {
		if !s.forbiddenBefore(diags, what, err) {
			diagnose(diags, what, t, s.withVersions(err))
		}
		return
	}
	if s.told.Swap(true) {
		diags.AddError("Cannot "+what+": the scheduling server is lost", "")
		return
	}
	text := Sentence(lost.Err.Error())
	var problem *api.Problem
	if errors.As(lost.Err, &problem) {
		text = fmt.Sprintf("The server at %s says: %s%s", s.client.Endpoints(), Sentence(problem.Error()), remedy(problem.Status))
	}
	diags.AddError("Cannot "+what, text+" Nothing else is attempted in this run.")
}

// failed reports the error of an operation on the resource.
func (r *Resource) failed(diags *diag.Diagnostics, what string, t tftypes.Type, err error) {
	r.session.Failed(diags, what, t, err)
	var lost *client.LostError
	if errors.As(err, &lost) {
		r.session.failing.Store(true)
	}
}

// lostBefore reports whether another resource reports this error. If so, a read may keep the state:
// the run fails anyway. Among several reads that fail at once, exactly one gets false and must
// report the error.
func (s *Session) lostBefore(err error) bool {
	var lost *client.LostError
	return errors.As(err, &lost) && s.failing.Swap(true)
}
