package terraform

import (
	"errors"
	"net/http"
	"strings"
	"sync"

	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// causes are causes that a run has explained. Each is explained once, however many objects it
// concerns.
type causes struct{ told sync.Map }

// tell records that a cause is explained, and reports whether it already was.
func (c *causes) tell(cause string) (before bool) {
	_, before = c.told.LoadOrStore(cause, true)
	return before
}

// forbiddenBefore reports an operation that the token does not allow in one line, if an error has
// explained what it allows.
func (s *Session) forbiddenBefore(diags *diag.Diagnostics, what string, err error) bool {
	problem, ok := errors.AsType[*api.Problem](err)
	if !ok || problem.Status != http.StatusForbidden || len(problem.Errors) > 0 {
		return false
	}
	token, _, _ := strings.Cut(problem.Detail, " must not ")
	if !s.causes.tell("forbidden: " + token) {
		return false
	}
	diags.AddError("Cannot "+what+": the token does not allow it", "")
	return true
}

// warnedBefore reports whether the cause of a condition was explained in this run.
func (s *Session) warnedBefore(object api.Object, c *api.Condition) bool {
	key := api.KeyOf(object)
	switch o := object.(type) {
	case *api.MetricsProvider:
		return s.causes.tell("unreachable: " + key.String())
	case *api.Metric:
		provider, _, named := strings.Cut(c.Message, ": ")
		if c.Reason != api.ReasonUnreachableMetricsProvider || !named {
			return false
		}
		s.causes.tell(unreachableMetric(o.Metadata.Namespace, o.Metadata.Name))
		return s.causes.tell("unreachable: " + provider)
	case *api.Cluster:
		if c.Type == api.ConditionMetricsAvailable {
			return s.metricsUnreachableBefore(o)
		}
	}
	return c.Detail != "" && s.causes.tell(c.Type+": "+c.Reason+": "+c.Detail)
}

// metricsUnreachableBefore reports whether all that a cluster's metrics lack is a response of
// providers, and each of these metrics was mentioned before.
func (s *Session) metricsUnreachableBefore(cluster *api.Cluster) bool {
	before := true
	for _, m := range cluster.Status.Metrics {
		switch m.Reason {
		case "", api.ReasonPending:
		case api.ReasonUnreachableMetricsProvider:
			before = s.causes.tell(unreachableMetric(m.Namespace, m.Name)) && before
		default:
			before = false
		}
	}
	return before
}

func unreachableMetric(namespace, name string) string {
	return "unreachable metric: " + namespace + "/" + name
}
