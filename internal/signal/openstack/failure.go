package openstack

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/gophercloud/gophercloud/v2"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
)

// Failure says why OpenStack could not be queried: the reason of the Collected condition, and a
// message for its reader. The message must be the same every time for the same problem, because a
// changed message is written to the store; so it contains no text from OpenStack, whose errors
// often contain IDs.
type Failure struct {
	Reason  string
	Message string
	status  int // of the response; 0 = none
}

// Error implements error.
func (f *Failure) Error() string { return f.Message }

func failed(format string, args ...any) *Failure {
	return &Failure{Reason: api.ReasonRegionFailed, Message: api.Redact(fmt.Sprintf(format, args...))}
}

// failureOf describes an error of an operation.
func failureOf(doing string, err error) *Failure {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f
	}
	if again, ok := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err); ok {
		return failureOf(doing, again.ErrReauth)
	}
	if answer, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		f := failed("%s: the response is %d %s", doing, answer.Actual, http.StatusText(answer.Actual))
		f.status = answer.Actual
		return f
	}
	_, syntax := errors.AsType[*json.SyntaxError](err)
	_, shape := errors.AsType[*json.UnmarshalTypeError](err)
	if syntax || shape || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, io.EOF) {
		return failed("%s: the response is not from an OpenStack service", doing)
	}
	return failed("%s: %s", doing, outbound.Describe(err))
}

// statusOf returns the status of an error response, or 0 if there was none.
func statusOf(err error) int {
	if f, ok := errors.AsType[*Failure](err); ok {
		return f.status
	}
	if again, ok := errors.AsType[*gophercloud.ErrUnableToReauthenticate](err); ok {
		return statusOf(again.ErrReauth)
	}
	if answer, ok := errors.AsType[gophercloud.ErrUnexpectedResponseCode](err); ok {
		return answer.Actual
	}
	return 0
}

// interrupted reports whether the operation was canceled.
func interrupted(ctx context.Context) bool { return errors.Is(ctx.Err(), context.Canceled) }
