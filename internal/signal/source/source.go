// Package source is the plug-in interface of metrics providers: one type of
// provider is one package that has a Type, and one line in the list of package
// signal.
package source

import (
	"context"
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
)

// Source reads one metrics provider. A Source belongs to one version of the
// provider's spec; a changed spec gets a new one.
type Source interface {
	// Read asks for the present value of every query, in as few requests as
	// the protocol allows, and within ctx. Without queries it only finds out
	// whether the provider answers. A query that the map lacks failed with the
	// error, or, without one, has no value.
	Read(ctx context.Context, queries []string) (map[string]Reading, error)
	// Close gives back connections. It may be called while Read runs.
	Close()
}

// Reading is the answer to one query: a value, or what is wrong.
type Reading struct {
	Value float64
	Err   error
}

// Type is one type of metrics provider.
type Type struct {
	// Name is what spec.type says.
	Name api.ProviderType
	// Constant says that values change only with the spec, so that there is
	// nothing to ask for at intervals.
	Constant bool
	// Query is what a metric asks for; cluster is the one that it is read for, nil
	// unless spec.PerCluster. The error says why nobody is to be asked. Nil: metric is
	// the query.
	Query func(spec *api.MetricsProviderSpec, metric string, cluster *api.Cluster) (string, error)
	// New makes the source of a provider, which connects to what the policy allows.
	New func(provider *api.MetricsProvider, network *netpolicy.Policy) (Source, error)
}

// Error is a failed reading: the reason that the metric's condition gives, and
// what the person reading it should know. The message is the same every time
// the same thing is wrong, because a changed message is written to the store.
type Error struct {
	Reason  string
	Message string
	// Detail is what the provider says about it. Nothing that comes from there belongs
	// into the message: only those who may write the provider see its words.
	Detail string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Detail == "" {
		return e.Message
	}
	return e.Message + ": " + e.Detail
}

// Said adds what the provider says about it.
func (e *Error) Said(text string) *Error {
	e.Detail = OneLine(text)
	return e
}

// Invalid says that the provider answered, but not with a usable value.
func Invalid(format string, args ...any) *Error {
	return &Error{Reason: api.ReasonInvalidMetric, Message: fmt.Sprintf(format, args...)}
}

// Unreachable says that the provider did not answer the question at all.
func Unreachable(format string, args ...any) *Error {
	return &Error{Reason: api.ReasonUnreachableMetricsProvider, Message: fmt.Sprintf(format, args...)}
}
