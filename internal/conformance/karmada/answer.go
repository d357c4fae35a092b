package karmada

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// scheduled returns status and reason of the condition Scheduled.
func scheduled(s *api.WorkloadStatus) [2]string {
	c := api.FindCondition(s.Conditions, api.ConditionScheduled)
	if c == nil {
		return [2]string{"absent", ""}
	}
	return [2]string{string(c.Status), c.Reason}
}

func status(reason string) string {
	if reason == "" || reason == api.ReasonScheduled {
		return string(api.ConditionTrue)
	}
	return string(api.ConditionFalse)
}

func leaves(s *api.WorkloadStatus, cluster string) bool {
	return slices.ContainsFunc(s.Evictions, func(e api.Eviction) bool { return e.Cluster == cluster })
}

// evictions returns the evictions in a status in the form of the expectation, which may omit their end.
func evictions(s *api.WorkloadStatus, want *expectation) map[string]string {
	out := map[string]string{}
	for _, e := range s.Evictions {
		text := fmt.Sprintf("%d %s %s", e.Replicas, e.Reason, e.PurgeMode)
		if want.Evictions[e.Cluster].Until != nil && e.Until != nil {
			text += fmt.Sprintf(" until %d s", int64(e.Until.Sub(epoch)/time.Second))
		}
		out[e.Cluster] = text
	}
	return out
}

// wanted returns the expected evictions in the same form.
func (want *expectation) wanted() map[string]string {
	out := map[string]string{}
	for cluster, e := range want.Evictions {
		text := fmt.Sprintf("%d %s %s", e.Replicas, e.Reason, cmp.Or(e.Mode, api.PurgeGracefully))
		if e.Until != nil {
			text += fmt.Sprintf(" until %d s", *e.Until)
		}
		out[cluster] = text
	}
	return out
}

// compareExplanation compares the explanation with its decision, and with the expectation.
func (p *player) compareExplanation(w *api.Workload, want *expectation) []string {
	i := slices.IndexFunc(p.last.Explanations, func(e api.Explanation) bool {
		return e.Kind == api.KindWorkload && e.Namespace == w.Metadata.Namespace && e.Name == w.Metadata.Name
	})
	if i < 0 {
		return []string{"there is no explanation"}
	}
	e := &p.last.Explanations[i]
	var wrong []string
	if e.Summary == "" {
		wrong = append(wrong, "explanation: there is no summary")
	}
	if e.Policy != w.Status.Policy {
		wrong = append(wrong, fmt.Sprintf("explanation: policy %q, and the status says %q", e.Policy, w.Status.Policy))
	}
	if e.ObservedAffinity != w.Status.ObservedAffinity {
		wrong = append(wrong, fmt.Sprintf("explanation: affinity %q, and the status says %q", e.ObservedAffinity, w.Status.ObservedAffinity))
	}
	wrong = append(wrong, compareCandidates(e, replicas(&w.Status), w.Status.Policy != "")...)
	if want.Tried != nil {
		tried := []string{}
		for _, a := range e.Affinities {
			if a.Result != api.AffinityNotTried {
				tried = append(tried, a.AffinityName)
			}
		}
		if !slices.Equal(tried, want.Tried) {
			wrong = append(wrong, fmt.Sprintf("explanation: tried %q, want %q", tried, want.Tried))
		}
	}
	if want.Next != nil {
		at := epoch.Add(time.Duration(*want.Next) * time.Second)
		if e.NextAt == nil || !e.NextAt.Equal(at) {
			wrong = append(wrong, fmt.Sprintf("explanation: looked at again %v, want %v", e.NextAt, at))
		}
	}
	return wrong
}

// compareCandidates checks that the selected candidates are the clusters of the binding, and that every other one says
// why it was not selected.
func compareCandidates(e *api.Explanation, binding map[string]int64, placed bool) []string {
	if !placed {
		return nil // without a policy, none was evaluated
	}
	selected := map[string]int64{}
	var wrong []string
	for _, c := range e.Candidates {
		if !c.Selected {
			if c.Reason == "" {
				wrong = append(wrong, fmt.Sprintf("explanation: %s is not chosen, and nothing says why", c.Cluster))
			}
			continue
		}
		selected[c.Cluster] = 0
		if c.Replicas != nil {
			selected[c.Cluster] = *c.Replicas
		}
	}
	if !maps.Equal(selected, binding) {
		wrong = append(wrong, fmt.Sprintf("explanation: candidates %v are selected, and the binding is %v", selected, binding))
	}
	return wrong
}
