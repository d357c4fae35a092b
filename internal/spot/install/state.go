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

// The reasons of a State.
const (
	// ReasonInstalled says that the API server calls the webhook.
	ReasonInstalled = "Installed"
	// ReasonInstalling says that the API server has not begun yet to call it.
	ReasonInstalling = "Installing"
	// ReasonUnauthorized says that the API server does not know the credentials.
	ReasonUnauthorized = api.ReasonUnauthorized
	// ReasonForbidden says that the credentials lack a permission.
	ReasonForbidden = api.ReasonForbidden
	// ReasonRejected says that the cluster refuses the configurations.
	ReasonRejected = "Rejected"
	// ReasonProbeRejected says that the cluster refuses the probe, so that nobody
	// knows whether the webhook is called.
	ReasonProbeRejected = "ProbeRejected"
	// ReasonContested says that somebody else keeps changing the configurations.
	ReasonContested = "Contested"
	// ReasonNotReached says that the API server does not get through to the webhook.
	ReasonNotReached = "NotReached"
	// ReasonUnreachable says that the API server gives no answer.
	ReasonUnreachable = api.ReasonUnreachable
	// ReasonRemoved says that the configurations were removed.
	ReasonRemoved = "Removed"
)

// State says whether new pods of a cluster pass through the webhook, and if not,
// why.
type State struct {
	Ready   bool
	Reason  string
	Message string
	// Detail is what the cluster says about it, in its own words.
	Detail string
}

// passing reports that the cause may be gone at the next try.
func (s State) passing() bool {
	return s.Reason == ReasonUnreachable || s.Reason == ReasonNotReached || s.Reason == ReasonInstalling
}

// callError is a request to the API server that failed.
type callError struct {
	verb, resource string
	err            error
}

// Error says what was not possible.
func (e *callError) Error() string { return fmt.Sprintf("%s %s: %v", e.verb, e.resource, e.err) }

// Unwrap is the cause.
func (e *callError) Unwrap() error { return e.err }

// groups are the API groups of the resources that installing takes.
var groups = map[string]string{
	"mutatingwebhookconfigurations":   "admissionregistration.k8s.io",
	"validatingwebhookconfigurations": "admissionregistration.k8s.io",
	"configmaps":                      "",
}

// denied recognises what the authorizer says, and not an admission plugin or
// another webhook, which answer with the same code.
func (e *callError) denied() bool {
	return apierrors.IsForbidden(e.err) && strings.Contains(e.err.Error(), "cannot "+e.verb+" resource")
}

// stateOf describes why a request failed, in words that stay the same while the
// cause does. rejected is the reason where the API server understood the request
// and refused it.
func (i *Installer) stateOf(err error, rejected string) State {
	call, ok := errors.AsType[*callError](err)
	if !ok {
		return State{Reason: ReasonUnreachable, Message: outbound.Describe(err)}
	}
	where := ""
	if call.resource == "configmaps" {
		where = " in namespace " + probeNamespace
	}
	what := "cannot " + call.verb + " " + call.resource + where
	status, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case apierrors.IsUnauthorized(err):
		return State{Reason: ReasonUnauthorized, Message: "the API server does not accept the credentials (401)"}
	case call.denied():
		return State{Reason: ReasonForbidden, Message: fmt.Sprintf("the credentials may not %s %s%s: they need the verb %q on resource %q of API group %q",
			call.verb, call.resource, where, call.verb, call.resource, groups[call.resource])}
	case apierrors.IsConflict(err), apierrors.IsAlreadyExists(err) && call.resource != "configmaps":
		return State{Reason: ReasonInstalling, Message: what + ": somebody else changed it at the same time"}
	case answered && (status.Status().Code >= http.StatusInternalServerError || status.Status().Code == http.StatusTooManyRequests):
		return State{Reason: ReasonUnreachable, Message: fmt.Sprintf("%s: the API server returned %d", what, status.Status().Code)}
	case answered:
		return State{Reason: rejected, Message: what + ": the API server rejects it", Detail: i.clean(call.err.Error())}
	}
	return State{Reason: ReasonUnreachable, Message: what + ": " + outbound.Describe(err)}
}

// stateOfAll describes why one or both configurations are not as they should be.
func (i *Installer) stateOfAll(errs []error) State {
	all := i.stateOf(errs[0], ReasonRejected)
	for _, err := range errs[1:] {
		if s := i.stateOf(err, ReasonRejected); s.Reason == all.Reason && s.Message != all.Message {
			all.Message += "; " + s.Message
			if s.Detail != all.Detail {
				all.Detail = strings.TrimPrefix(all.Detail+"; "+s.Detail, "; ")
			}
		}
	}
	return all
}

// maxMessage bounds what is repeated of others' words.
const maxMessage = 500

// What differs from try to try although the cause is the same.
var (
	ownPort     = regexp.MustCompile(`tcp \S+->`)
	currentTime = regexp.MustCompile(`current time \S+ is`)
)

// clean makes words of a cluster fit to be shown and logged: without the secret
// part of the webhook's address, and the same while the cause is.
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
