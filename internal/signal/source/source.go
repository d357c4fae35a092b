// Package source is the plug-in interface of metrics providers: a provider type is a package with a
// Type, and a line in the list of package signal.
package source

import (
	"context"
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/addresspolicy"
)

// Source reads one metrics provider. A Source belongs to one version of the provider's spec; a
// changed spec gets a new one.
type Source interface {
	// Read reads the current value of every query, with as few requests as the protocol allows,
	// within ctx. Without queries it only checks whether the provider responds. A query missing in
	// the map failed with the error or, if that is nil, has no value.
	Read(ctx context.Context, queries []string) (map[string]Reading, error)
	// Close releases connections. It may be called while Read is running.
	Close()
}

// Reading is the result of one query: a value, or an error.
type Reading struct {
	Value float64
	Err   error
}

// Type is one type of metrics provider.
type Type struct {
	// Name is the value of spec.type.
	Name api.ProviderType
	// Constant says that values change only with the spec, so that periodic reading is not needed.
	Constant bool
	// Query returns the query of a metric; cluster is the cluster that it is read for, nil unless
	// spec.PerCluster. The error says why there is none. If nil, metric is the query.
	Query func(spec *api.MetricsProviderSpec, metric string, cluster *api.Cluster) (string, error)
	// New creates the source of a provider, which connects to what the policy allows.
	New func(provider *api.MetricsProvider, network *addresspolicy.Policy) (Source, error)
}

// Error is a failed reading: the reason of the metric's condition, and a message for its reader.
// The message must be the same every time for the same problem, because a changed message is
// written to the store.
type Error struct {
	Reason  string
	Message string
	// Detail is the provider's message. Text from the provider must not be in the main message:
	// only those who may write the provider may see it.
	Detail string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Message
	}
	return e.Message + ": " + e.Detail
}

// Said adds the provider's message.
func (e *Error) Said(text string) *Error {
	e.Detail = OneLine(text)
	return e
}

// Invalid returns an error for a provider that responded, but not with a usable value.
func Invalid(format string, args ...any) *Error {
	return &Error{Reason: api.ReasonInvalidMetric, Message: fmt.Sprintf(format, args...)}
}

// Unreachable returns an error for a provider that did not answer the query at all.
func Unreachable(format string, args ...any) *Error {
	return &Error{Reason: api.ReasonUnreachableMetricsProvider, Message: fmt.Sprintf(format, args...)}
}
