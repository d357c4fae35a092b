package expression

import (
	"maps"
	"slices"
	"time"

	"github.com/google/cel-go/common/types"
	"github.com/google/cel-go/common/types/ref"
)

// defaultLeaseSeconds is the default of Open Cluster Management.
const defaultLeaseSeconds = 60

// The fields of `managedCluster` are those of Open Cluster Management's ManagedCluster as converted
// for expressions: empty values are absent if its JSON omits them, times are strings, and an
// unknown time is null. Annotations and spec.managedClusterClientConfigs are not included, because
// clusters do not have them here.
var (
	managedClusterFields = []field{
		{"metadata", nil, part(shapeManagedClusterMetadata)},
		{"spec", nil, part(shapeManagedClusterSpec)},
		{"status", nil, part(shapeManagedClusterStatus)},
	}
	managedClusterMetadataFields = []field{
		{"name", nil, func(s *subject) ref.Val { return types.String(s.cluster.Name()) }},
		{"uid", nil, func(s *subject) ref.Val { return textOrAbsent(s.cluster.UID()) }},
		{"generation", nil, func(s *subject) ref.Val {
			if n := s.cluster.Generation(); n != 0 {
				return types.Int(n)
			}
			return nil
		}},
		{"creationTimestamp", nil, func(s *subject) ref.Val { return timeOrNull(s.cluster.CreatedAt()) }},
		{"labels", nil, func(s *subject) ref.Val { return mapOrAbsent(s.cluster.Labels()) }},
	}
	managedClusterSpecFields = []field{
		// A cluster is accepted by being declared.
		{"hubAcceptsClient", nil, func(*subject) ref.Val { return types.True }},
		{"leaseDurationSeconds", nil, func(s *subject) ref.Val {
			if n := s.cluster.LeaseSeconds(); n > 0 {
				return types.Int(n)
			}
			return types.Int(defaultLeaseSeconds)
		}},
		{"taints", nil, managedTaints},
	}
	managedClusterStatusFields = []field{
		{"conditions", nil, managedConditions},
		{"capacity", nil, func(s *subject) ref.Val { return mapOrAbsent(s.cluster.Capacity()) }},
		{"allocatable", nil, func(s *subject) ref.Val { return mapOrAbsent(s.cluster.Allocatable()) }},
		{"version", nil, part(shapeManagedClusterVersion)},
		{"clusterClaims", nil, managedClaims},
	}
	managedClusterVersionFields = []field{
		{"kubernetes", nil, func(s *subject) ref.Val { return textOrAbsent(s.cluster.KubernetesVersion()) }},
	}
)

// managedClaims returns the claims as a list of {name, value}, ordered by name.
func managedClaims(s *subject) ref.Val {
	claims := s.cluster.Claims()
	if len(claims) == 0 {
		return nil
	}
	pairs := make([]pair, 0, len(claims))
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		pairs = append(pairs, pair{name: name, text: claims[name], typ: types.MapType})
	}
	return pairList(pairs)
}

func managedTaints(s *subject) ref.Val {
	taints := s.cluster.Taints()
	if len(taints) == 0 {
		return nil
	}
	list := make([]ref.Val, len(taints))
	for i, t := range taints {
		entries := map[string]ref.Val{
			"key": types.String(t.Key), "effect": types.String(t.Effect), "timeAdded": timeOrNull(t.TimeAdded),
		}
		if t.Value != "" {
			entries["value"] = types.String(t.Value)
		}
		list[i] = newTable(entries)
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list)
}

func managedConditions(s *subject) ref.Val {
	conditions := s.cluster.Conditions()
	list := make([]ref.Val, len(conditions))
	for i, c := range conditions {
		list[i] = newTable(map[string]ref.Val{
			"type": types.String(c.Type), "status": types.String(c.Status), "reason": types.String(c.Reason),
			"message": types.String(c.Message), "lastTransitionTime": timeOrNull(c.LastTransitionAt),
		})
	}
	return types.NewRefValList(types.DefaultTypeAdapter, list)
}

func textOrAbsent(text string) ref.Val {
	if text == "" {
		return nil
	}
	return types.String(text)
}

func mapOrAbsent(m map[string]string) ref.Val {
	if len(m) == 0 {
		return nil
	}
	return stringMap(m)
}

// timeOrNull returns a time in Kubernetes format: in seconds, in UTC.
func timeOrNull(t time.Time) ref.Val {
	if t.IsZero() {
		return types.NullValue
	}
	return types.String(t.UTC().Format(time.RFC3339))
}
