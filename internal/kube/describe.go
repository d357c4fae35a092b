package kube

import (
	"errors"
	"fmt"
	"net/http"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
)

// TornWatch is the cause that client-go gives if it cannot continue reading a watch, usually
// because the connection broke.
const TornWatch metav1.CauseType = "ClientWatchDecoding"

// Describe says why something about a cluster is not current, in text that is stable while the
// cause is.
func Describe(what string, err error) (reason, message string) {
	status, answered := errors.AsType[*apierrors.StatusError](err)
	switch {
	case apierrors.IsUnauthorized(err):
		return api.ReasonUnauthorized, what + ": the API server does not accept the credentials (401)"
	case apierrors.IsForbidden(err):
		return api.ReasonForbidden, what + ": the credentials may not list and watch them (403)"
	case apierrors.HasStatusCause(err, TornWatch):
		return api.ReasonIncomplete, what + ": the watch broke off"
	case answered && status.Status().Code >= http.StatusBadRequest:
		return api.ReasonIncomplete, fmt.Sprintf("%s: the API server returned %d", what, status.Status().Code)
	case answered, runtime.IsMissingKind(err), runtime.IsMissingVersion(err), runtime.IsNotRegisteredError(err):
		// These errors contain the whole response.
		return api.ReasonIncomplete, what + ": the response cannot be read"
	}
	return api.ReasonIncomplete, what + ": " + outbound.Describe(err)
}
