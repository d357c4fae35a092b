package reconcile

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/placement"
)

// placements is how placements are decided: the planner chooses their clusters.
var placements = row[*api.Placement, *placementDecision]{
	kind: api.KindPlacement,
	find: func(p *planner, key api.Key) (*placementDecision, bool) {
		placed, ok := p.placer.placements[key]
		return placed, ok
	},
	put: func(p *planner, placed *placementDecision, object *api.Placement, specRevision int64) {
		p.placer.put(placed, object, specRevision)
	},
	seen: func(p *planner, placed *placementDecision, object *api.Placement) { p.placer.see(placed, object) },
	agrees: func(placed *placementDecision, stored *api.Placement) bool {
		return placed.status.Agrees(&stored.Status)
	},
	remove: func(p *planner, key api.Key) {
		if placed, ok := p.placer.placements[key]; ok {
			p.placer.remove(placed)
		}
	},
	adopt: func(p *planner, object *api.Placement, r *record) { p.placer.adopt(object, r) },
	holds: holdsOfPlacement,
	// Placements that compete for resources are decided by name.
	order: func(a, b *placementDecision) int {
		return a.query.Key.Compare(b.query.Key)
	},
	decide: func(p *planner, placed *placementDecision, now time.Time) (changed, moved bool) {
		return p.placer.decide(placed, now)
	},
	rests:   func(p *planner, placed *placementDecision) api.Key { return p.lost.underPlacement(placed) },
	explain: (*snapshot).explainPlacement,
	preview: (*snapshot).previewPlacement,
	where:   func(placement *api.Placement) where { return where{clusters: placement.Status.Clusters} },
	observe: func(_ *snapshot, placement *api.Placement) api.Object { return placement },
	simulate: simulated[*api.Placement, *placementDecision]{
		startsOver: func(_, _ *api.Placement) bool { return true },
		complete: func(s *simulation, placement, _ *api.Placement, given given, _ time.Time) {
			if given.status != nil {
				completeDecision(placement, given.answers())
				s.unscored[api.KeyOf(placement)] = unscored(placement, *given.status)
			}
		},
		explainBefore: func(p *planner, placed *placementDecision, now time.Time) *api.Explanation {
			if late := untold(p.fleet, placed.query, &p.placer.late.told, now); late != nil {
				return late
			}
			return p.placer.explain(placed, now).Render()
		},
		explainAfter: func(p *planner, placed *placementDecision, foreseen *api.Explanation, written bool, now time.Time) *api.Explanation {
			return p.placer.explainAfter(placed, foreseen, written, now)
		},
		shown: (*simulation).score,
	},
}

// explainPlacement explains the decision of a placement.
func (s *snapshot) explainPlacement(asked *api.Placement, r *record, now time.Time) *api.Explanation {
	if late := untold(s.fleet, r.placed.query, new(readBudget), now); late != nil {
		return late
	}
	return placement.Explain(s.fleet, r.placed.query, s.view(r.placed.query).Ranking, s.others(), presentOf(asked, &asked.Status), now).Render()
}

// previewPlacement returns a placement with the decision that it would get.
func (s *snapshot) previewPlacement(asked *api.Placement, now time.Time) (*api.Placement, *api.Explanation, error) {
	query, err := placement.NewQuery(asked)
	if err != nil {
		return nil, nil, fmt.Errorf("preview: %w", err)
	}
	if untold(s.fleet, query, new(readBudget), now) != nil {
		return nil, nil, api.FieldErrors{{Field: "spec.predicates", Message: fmt.Sprintf(
			"the CEL expressions take too long to be evaluated for all %d clusters in a preview: loops over fewer or shorter values cost less; "+
				"a repeated preview continues where this one ended", s.fleet.Len())}}
	}
	view, present := s.view(query), presentOf(asked, &asked.Status)
	explained := placement.Explain(s.fleet, query, view.Ranking, s.others(), present, now)
	previewed := *asked
	previewed.Status, _ = placement.NewStatus(s.fleet, query, view, &asked.Metadata, &asked.Status, explained.Outcome, now, explained.Summary)
	if previewed.Status.DecisionRevision != asked.Status.DecisionRevision {
		previewed.Status.Cause = s.writtenCause(asked, &asked.Status)
	}
	return &previewed, explained.Render(), nil
}

// completeDecision adds what a hand-written previous decision omits: the list of clusters is enough
// to say where a placement is, and a decision without a generation is for the spec given with it.
func completeDecision(p *api.Placement, answered bool) {
	status := &p.Status
	if len(status.Decisions) == 0 {
		for i, name := range status.Clusters {
			status.Decisions = append(status.Decisions, api.Decision{Cluster: name, Rank: int64(i + 1), Since: status.ScheduledAt})
		}
	}
	if len(status.Clusters) == 0 {
		for _, d := range status.Decisions {
			status.Clusters = append(status.Clusters, d.Cluster)
		}
	}
	if answered && status.ObservedGeneration == 0 && len(status.Decisions) > 0 {
		status.ObservedGeneration = p.Metadata.Generation
	}
}

// unscored returns the clusters of a placement whose score a status does not contain.
func unscored(p *api.Placement, status json.RawMessage) map[string]bool {
	var given struct {
		Decisions []struct {
			Cluster  string   `json:"cluster"`
			Score    *float64 `json:"score"`
			Withheld bool     `json:"withheld"`
		} `json:"decisions"`
	}
	_ = json.Unmarshal(status, &given) // decoded before
	out := map[string]bool{}
	for _, d := range p.Status.Decisions {
		out[d.Cluster] = true
	}
	for _, d := range given.Decisions {
		if d.Score != nil && !d.Withheld {
			delete(out, d.Cluster)
		}
	}
	return out
}

// score sets the scores that the request omitted from a decision that is kept: those of the pass,
// as if the decision had been made now.
func (s *simulation) score(p *api.Placement, explanation *api.Explanation) *api.Placement {
	missing := s.unscored[api.KeyOf(p)]
	if len(missing) == 0 || explanation == nil {
		return p
	}
	scores := map[string]float64{}
	for _, c := range explanation.Candidates {
		if c.Score != nil && missing[c.Cluster] {
			scores[c.Cluster] = *c.Score
		}
	}
	copied := *p
	copied.Status.Decisions = slices.Clone(p.Status.Decisions)
	for i, d := range copied.Status.Decisions {
		copied.Status.Decisions[i].Withheld = false
		if score, ok := scores[d.Cluster]; ok && d.Score == 0 {
			copied.Status.Decisions[i].Score = score
		}
	}
	return &copied
}
