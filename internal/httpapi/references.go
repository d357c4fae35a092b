package httpapi

import (
	"fmt"
	"slices"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// maxUnresolved is the number of references that a condition names.
const maxUnresolved = 3

// resolved returns an object with a condition for references to objects that do not exist, as far
// as the reader may know: objects of others are treated as missing. The condition depends on other
// objects, so it is not stored.
func (v *view) resolved(who auth.Identity, object api.Object) api.Object {
	snapshot := v.fleet.Snapshot()
	var missing []api.Condition
	if sentence := unresolved(who, snapshot, object); sentence != "" {
		missing = append(missing, api.Condition{
			Type: api.ConditionReferencesResolved, Status: api.ConditionFalse, Reason: api.ReasonUnknownReference, Message: sentence,
		})
	}
	if policy, ok := object.(*api.PropagationPolicy); ok && selectsNothing(who, policy) {
		missing = append(missing, api.Condition{
			Type: api.ConditionWorkloadsSelected, Status: api.ConditionFalse, Reason: api.ReasonNothingSelected,
			Message: "no workload follows the policy: resource_selectors match none, or other policies have claimed those that they match",
		})
	}
	if len(missing) == 0 {
		return object
	}
	return api.CopyWith(object, missing...)
}

// unresolved describes references to objects that do not exist, or returns "".
func unresolved(who auth.Identity, snapshot *fleet.Snapshot, object api.Object) string {
	from := auth.Owners(object)
	var parts []string
	more := 0
	for _, ref := range api.References(object) {
		if ref.Optional {
			continue
		}
		entry := snapshot.Get(ref.Key)
		if entry != nil && reaches(from, entry.Object) && who.SeesObject(entry.Object) {
			continue
		}
		if len(parts) == maxUnresolved {
			more++
			continue
		}
		what := "does not exist"
		if len(from) > 0 || !who.SeesEvery(ref.Key.Kind) {
			what += ", or belongs to another namespace"
		}
		parts = append(parts, fmt.Sprintf("%s names %s, which %s", strings.TrimPrefix(ref.Field, "spec."), ref.Key, what))
	}
	if more > 0 {
		parts = append(parts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(parts, "; ")
}

// reaches reports whether objects owned by these namespaces may use another object.
func reaches(from []string, object api.Object) bool {
	admits := func(namespace string) bool {
		to := auth.Owners(object)
		return len(to) == 0 || slices.Contains(to, namespace)
	}
	if set, ok := object.(*api.ClusterSet); ok {
		admits = set.Admits
	}
	return !slices.ContainsFunc(from, func(namespace string) bool { return !admits(namespace) })
}

// selectsNothing reports whether no workload follows a policy. Whether workloads of other
// namespaces do is not disclosed to a reader.
func selectsNothing(who auth.Identity, policy *api.PropagationPolicy) bool {
	return len(policy.Status.Bindings) == 0 && (who.SeesEvery(api.KindWorkload) || policy.Metadata.Namespace != "")
}
