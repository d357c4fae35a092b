package reconcile

import (
	"fmt"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// completeMetrics completes the status of the request's metrics as a collector would have, so that
// a bare value is an observation like any other. It returns stand-ins for providers that such
// metrics name and the request omits.
func (s *simulation) completeMetrics(request api.Simulation, now time.Time) []*api.MetricsProvider {
	deleted := map[api.Key]bool{}
	for _, key := range request.Delete {
		deleted[key] = true
	}
	var standIns []*api.MetricsProvider
	standsIn := map[api.Key]bool{}
	for _, key := range s.order {
		m, ok := s.over[key].(*api.Metric)
		if !ok {
			continue
		}
		if available := api.FindCondition(m.Status.Conditions, api.ConditionAvailable); available != nil && available.Status == api.ConditionFalse {
			continue
		}
		provider := m.ProviderKey()
		exists := s.object(provider) != nil
		if m.Status.Value == nil || deleted[provider] {
			if !exists {
				s.over[key] = unavailable(m, api.ReasonUnknownMetricsProvider, fmt.Sprintf("%s does not exist", provider), now)
			}
			continue
		}
		s.over[key] = observed(m, now)
		if !exists && !standsIn[provider] {
			standsIn[provider] = true
			standIn := &api.MetricsProvider{Metadata: api.Metadata{Name: provider.Name, Namespace: provider.Namespace}}
			standIn.SetDefaults()
			standIns = append(standIns, standIn)
		}
	}
	return standIns
}

// observed returns the metric after its value was read and evaluated.
func observed(m *api.Metric, now time.Time) *api.Metric {
	normalized, err := columns.Normalize(m.Spec, *m.Status.Value)
	if err != nil {
		return unavailable(m, api.ReasonInvalidMetric, err.Error(), now)
	}
	available := api.Condition{Type: api.ConditionAvailable, Status: api.ConditionTrue, Reason: api.ReasonAvailable}
	copied := *m
	copied.Status.Normalized = &normalized
	api.SetCondition(&copied.Status.Conditions, available, now)
	return &copied
}

func unavailable(m *api.Metric, reason, message string, now time.Time) *api.Metric {
	condition := api.Condition{Type: api.ConditionAvailable, Status: api.ConditionFalse, Reason: reason, Message: message}
	copied := *m
	copied.Status.Normalized = nil
	api.SetCondition(&copied.Status.Conditions, condition, now)
	return &copied
}
