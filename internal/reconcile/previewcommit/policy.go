package previewcommit

import (
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Binding is the result for a workload when a policy is written.
type Binding struct {
	api.PreviewedBinding
	// Scheduled says that all replicas of the workload then have a place.
	Scheduled bool `json:"scheduled"`
}

// Bindings returns the results for workloads when a policy is written, ordered by name.
func Bindings(workloads map[api.Key]api.PreviewedWorkload) []Binding {
	bindings := make([]Binding, 0, len(workloads))
	for _, key := range sortedKeys(workloads) {
		w := workloads[key]
		scheduled := api.FindCondition(w.Object.Status.Conditions, api.ConditionScheduled)
		bindings = append(bindings, Binding{
			PreviewedBinding: api.PreviewedBinding{
				Workload: key.Path(), Claimed: w.Claimed, Summary: w.Summary,
				CurrentReplicas: w.Current.ReplicasByCluster(), Replicas: w.Object.Status.ReplicasByCluster(),
			},
			Scheduled: scheduled != nil && scheduled.Status == api.ConditionTrue,
		})
	}
	return bindings
}

// compareBindings returns a StalePreviewError that names a workload whose binding differs from the
// previewed one.
func compareBindings(previewed, now []Binding) error {
	was, is := byWorkload(previewed), byWorkload(now)
	names := slices.AppendSeq(slices.Collect(maps.Keys(was)), maps.Keys(is))
	slices.Sort(names)
	for _, name := range names {
		a, b := was[name], is[name]
		if a == nil || b == nil || a.Claimed != b.Claimed || !maps.Equal(a.Replicas, b.Replicas) {
			workload := "workload " + strconv.Quote(name)
			return &StalePreviewError{workload + " " + a.text(), workload + " " + b.text()}
		}
	}
	return nil
}

func sortedKeys(workloads map[api.Key]api.PreviewedWorkload) []api.Key {
	return slices.SortedFunc(maps.Keys(workloads), api.Key.Compare)
}

func byWorkload(bindings []Binding) map[string]*Binding {
	byName := make(map[string]*Binding, len(bindings))
	for i := range bindings {
		byName[bindings[i].Workload] = &bindings[i]
	}
	return byName
}

// text formats a binding, which may be nil, for a message.
func (b *Binding) text() string {
	switch {
	case b == nil:
		return "not under the policy"
	case !b.Claimed:
		return "no longer under the policy, on " + replicasText(b.Replicas)
	}
	return "on " + replicasText(b.Replicas)
}

// Shown returns the bindings that a reader may know of, whether all replicas of those that follow
// the policy have a place, and a summary.
func Shown(bindings []Binding, sees func(workload string) bool) (shown []api.PreviewedBinding, satisfied bool, summary string) {
	claimed, moved, left := 0, 0, 0
	satisfied = true
	for _, b := range bindings {
		if !sees(b.Workload) {
			continue
		}
		shown = append(shown, b.PreviewedBinding)
		if !b.Claimed {
			left++
			continue
		}
		claimed++
		satisfied = satisfied && b.Scheduled
		if !maps.Equal(b.CurrentReplicas, b.Replicas) {
			moved++
		}
	}
	summary = fmt.Sprintf("%d %s would follow the policy, %d of them on other clusters or with other replicas than now", claimed, plural("workload", claimed), moved)
	if left > 0 {
		summary += fmt.Sprintf("; %d would no longer follow it", left)
	}
	return shown, satisfied, summary
}

func plural(noun string, n int) string {
	if n == 1 {
		return noun
	}
	return noun + "s"
}
