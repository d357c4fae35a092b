package binding

import (
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Redate corrects the instants of a status that lie ahead. Another server, whose clock
// was ahead, has written them: they count as now, so that an eviction, a tolerated
// failure or a fail-back takes no longer than if it had begun now. It reports whether
// there were any. What the status shares with others is left alone.
func Redate(s *api.WorkloadStatus, now time.Time) (redated bool) {
	ahead := func(t *time.Time) bool { return t != nil && t.After(now) }
	correct := func(t **time.Time) {
		if ahead(*t) {
			at := now.UTC()
			*t, redated = &at, true
		}
	}
	correct(&s.ScheduledAt)
	if slices.ContainsFunc(s.Clusters, func(c api.WorkloadCluster) bool { return ahead(c.Since) }) {
		s.Clusters = slices.Clone(s.Clusters)
		for i := range s.Clusters {
			correct(&s.Clusters[i].Since)
		}
	}
	if slices.ContainsFunc(s.Evictions, func(e api.Eviction) bool { return ahead(e.Since) }) {
		s.Evictions = slices.Clone(s.Evictions)
		for i := range s.Evictions {
			e := &s.Evictions[i]
			if ahead(e.Since) && e.Until != nil {
				until := now.UTC().Add(e.Until.Sub(*e.Since))
				e.Until = &until
			}
			correct(&e.Since)
		}
	}
	if slices.ContainsFunc(s.Health, func(h api.ClusterHealth) bool { return ahead(h.Since) || ahead(h.ReportedAt) }) {
		s.Health = slices.Clone(s.Health)
		for i := range s.Health {
			correct(&s.Health[i].Since)
			correct(&s.Health[i].ReportedAt)
		}
	}
	if slices.ContainsFunc(s.EarlierAffinities, func(e api.EarlierAffinity) bool { return ahead(e.FeasibleSince) }) {
		s.EarlierAffinities = slices.Clone(s.EarlierAffinities)
		for i := range s.EarlierAffinities {
			correct(&s.EarlierAffinities[i].FeasibleSince)
		}
	}
	if slices.ContainsFunc(s.Moves, func(m api.Moves) bool { return m.At.After(now) }) {
		s.Moves, redated = slices.Clone(s.Moves), true
		for i := range s.Moves {
			if m := &s.Moves[i]; m.At.After(now) {
				m.At = now.UTC()
			}
		}
	}
	return redated
}
