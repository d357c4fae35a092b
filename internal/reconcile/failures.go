package reconcile

import (
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/binding"
)

// failures remember which workloads found no room in the present basis, so that many alike cost
// little.
type failures struct {
	of      map[string]binding.Binding // by workloadBinding.alike
	version int                        // of the basis
	at      time.Time                  // tolerations may have expired later
}

// alike is equal for workloads with the same requirements under the same policy, or on the same
// sites.
func alike(w *workloadBinding) string {
	replicas := int64(-1)
	if w.object.Spec.Replicas != nil {
		replicas = *w.object.Spec.Replicas
	}
	text := fmt.Sprintf("%s %s %s %d", w.p.Direction(), w.object.Metadata.Namespace, w.object.Spec.APIResource(), replicas)
	for _, name := range sortedResources(w.object.Spec.ReplicaRequests) {
		text += " " + name + "=" + string(w.object.Spec.ReplicaRequests[name])
	}
	return text
}

func sortedResources(q api.Quantities) []string {
	names := make([]string, 0, len(q))
	for name := range q {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// known returns what another workload with the same requirements has just found, if that was
// nothing and this one has nothing either.
func (f *failures) known(version int, now time.Time, w *workloadBinding) (binding.Binding, bool) {
	if f.version != version || !f.at.Equal(now) || !isNew(&w.status) {
		return binding.Binding{}, false
	}
	out, ok := f.of[w.alike]
	return out, ok
}

func isNew(s *api.WorkloadStatus) bool {
	return len(s.Clusters)+len(s.Evictions)+len(s.EarlierAffinities) == 0 && s.LostReplicas == 0 && s.ObservedAffinity == ""
}

// remember takes in what a workload has found.
func (f *failures) remember(version int, now time.Time, w *workloadBinding, out binding.Binding) {
	if out.Complete || !isNew(&w.status) {
		return
	}
	if f.version != version || !f.at.Equal(now) || f.of == nil {
		f.of, f.version, f.at = map[string]binding.Binding{}, version, now
	}
	f.of[w.alike] = out
}
