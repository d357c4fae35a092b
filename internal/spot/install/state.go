package install

import (
	"errors"
	"fmt"
	"net/http"
	"regexp"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
)

// Reasons of a State.
const (
	// reasonInstalled: the API server calls the webhook.
	reasonInstalled = "Installed"
	// reasonInstalling: the API server does not call it yet.
	reasonInstalling = "Installing"
	// reasonUnauthorized: the API server rejects the credentials.
	reasonUnauthorized = api.ReasonUnauthorized
	// reasonForbidden: the credentials lack a permission.
	reasonForbidden = api.ReasonForbidden
	// reasonRejected: the cluster rejects the configurations.
	reasonRejected = "Rejected"
	// reasonProbeRejected: the cluster rejects the probe, so it is unknown whether the webhook is
	// called.
	reasonProbeRejected = "ProbeRejected"
	// reasonContested: another party keeps changing the configurations.
	reasonContested = "Contested"
	// reasonNotReached: the API server does not reach the webhook.
	reasonNotReached = "NotReached"
	// reasonUnreachable: the API server does not respond.
	reasonUnreachable = api.ReasonUnreachable
	// reasonRemoved: the configurations were removed.
	reasonRemoved = "Removed"
)

// State says whether new pods of a cluster pass through the webhook and, if not, why.
type State struct {
	Ready   bool
	Reason  string
	Message string
	// Detail is the cluster's message.
	Detail string
}

// passing reports whether the cause may be temporary.
func (s State) passing() bool {
	return s.Reason == reasonUnreachable || s.Reason == reasonNotReached || s.Reason == reasonInstalling
}

// callError is a failed request to the API server.
type callError struct {
	verb, resource string
	err            error
}

// Error says what failed.
func (e *callError) Error() string { return fmt.Sprintf("%s %s: %v", e.verb, e.resource, e.err) }

// Unwrap returns the cause.
func (e *callError) Unwrap() error { return e.err }

// groups are the API groups of the resources needed for installation.
var groups = map[string]string{
	"mutatingwebhookconfigurations":   "admissionregistration.k8s.io",
	"validatingwebhookconfigurations": "admissionregistration.k8s.io",
	"configmaps":                      "",
}

// denied recognizes errors of the authorizer, as opposed to those of an admission plugin or another
// webhook with the same code.
func (e *callError) denied() bool {
	return apierrors.IsForbidden(e.err) && strings.Contains(e.err.Error(), "cannot "+e.verb+" resource")
}

// stateOf describes why a request failed, in text that is stable while the cause is. rejected is
// the reason if the API server understood the request and rejected it.
func (i *Installer) stateOf(err error, rejected string) State {
	call, ok := errors.AsType[*callError](err)
	if !ok {
		return State{Reason: reasonUnreachable, Message: outbound.Describe(err)}
	}
	where := ""
	if call.resource == "configmaps" {
		where = " in namespace " + probeNamespace
	}
	what := "cannot " + call.verb + " " + call.resource + where
	status, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case apierrors.IsUnauthorized(err):
		return State{Reason: reasonUnauthorized, Message: "the API server does not accept the credentials (401)"}
	case call.denied():
		return State{Reason: reasonForbidden, Message: fmt.Sprintf("the credentials may not %s %s%s: they need the verb %q on resource %q of API group %q",
			call.verb, call.resource, where, call.verb, call.resource, groups[call.resource])}
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err) && call.resource != "configmaps":
		return State{Reason: reasonInstalling, Message: what + ": somebody else changed it at the same time"}
	case answered && (status.Status().Code >= http.StatusInternalServerError || status.Status().Code == http.StatusTooManyRequests):
		return State{Reason: reasonUnreachable, Message: fmt.Sprintf("%s: the API server returned %d", what, status.Status().Code)}
	case answered:
		return State{Reason: rejected, Message: what + ": the API server rejects it", Detail: i.clean(call.err.Error())}
	}
	return State{Reason: reasonUnreachable, Message: what + ": " + outbound.Describe(err)}
}

// stateOfAll describes why one or both configurations are not as wanted.
func (i *Installer) stateOfAll(errs []error) State {
	all := i.stateOf(errs[0], reasonRejected)
	for _, err := range errs[1:] {
		if s := i.stateOf(err, reasonRejected); s.Reason == all.Reason && s.Message != all.Message {
			all.Message += "; " + s.Message
			if s.Detail != all.Detail {
				all.Detail = strings.TrimPrefix(all.Detail+"; "+s.Detail, "; ")
			}
		}
	}
	return all
}

// maxMessage limits how much of a foreign message is repeated.
const maxMessage = 500

// Parts that differ between attempts although the cause is the same.
var (
	ownPort     = regexp.MustCompile(`tcp \S+->`)
	currentTime = regexp.MustCompile(`current time \S+ is`)
)

// clean makes a cluster's message suitable for display and logs: without the secret part of the
// webhook's address, and stable while the cause is.
func (i *Installer) clean(text string) string {
	text = strings.ReplaceAll(text, i.secret, "...")
	text = ownPort.ReplaceAllString(text, "tcp ")
	text = currentTime.ReplaceAllString(text, "the current time is")
	text = strings.ToValidUTF8(strings.Join(strings.Fields(text), " "), "?")
	if runes := []rune(text); len(runes) > maxMessage {
		text = string(runes[:maxMessage]) + "..."
	}
	return text
}
