package dispatch

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// fieldManager is the name under which clusters are nominated. It is that of Kueue: when a Workload
// has got its cluster, Kueue clears the nomination by leaving it out of what it applies, which
// removes only what was applied under its own name.
const fieldManager = "kueue-admission"

// nomination returns what to apply to the status of a Workload, so that clusters are nominated and
// nothing else changes. Whatever Kueue has applied under the name must be in it: a field that is
// left out would be removed.
func nomination(u *unstructured.Unstructured, clusters []string) (*unstructured.Unstructured, error) {
	status, err := applied(u)
	if err != nil {
		return nil, err
	}
	if delete(status, "nominatedClusterNames"); len(clusters) > 0 {
		list := make([]any, len(clusters))
		for i, cluster := range clusters {
			list[i] = cluster
		}
		status["nominatedClusterNames"] = list
	}
	apply := &unstructured.Unstructured{Object: map[string]any{"status": status}}
	apply.SetAPIVersion(u.GetAPIVersion())
	apply.SetKind(u.GetKind())
	apply.SetNamespace(u.GetNamespace())
	apply.SetName(u.GetName())
	apply.SetUID(u.GetUID())
	apply.SetResourceVersion(u.GetResourceVersion()) // refused if it is not as it was read
	return apply, nil
}

// applied returns the fields of the status that were applied under the field manager.
func applied(u *unstructured.Unstructured) (map[string]any, error) {
	for _, entry := range u.GetManagedFields() {
		if entry.Manager != fieldManager || entry.Operation != metav1.ManagedFieldsOperationApply || entry.Subresource != "status" {
			continue
		}
		if entry.APIVersion != u.GetAPIVersion() {
			return nil, fmt.Errorf("its status was applied by %s as %s, not as %s: upgrade Kueue", fieldManager, entry.APIVersion, u.GetAPIVersion())
		}
		fields := struct {
			Status map[string]any `json:"f:status"`
		}{}
		if entry.FieldsV1 != nil {
			if err := json.Unmarshal(entry.FieldsV1.GetRawBytes(), &fields); err != nil {
				return nil, fmt.Errorf("its managedFields of %s: %w", fieldManager, err)
			}
		}
		if status, ok := part(u.Object["status"], fields.Status).(map[string]any); ok && len(fields.Status) > 0 {
			return status, nil
		}
	}
	return map[string]any{}, nil
}

// part returns the part of a value that is a set of fields, in the form of managedFields: "f:" and the
// name of a field, "k:" and the keys of an item, "v:" and the value of an item, or "." for the value
// itself. No fields mean all of it. It returns nil if there is nothing.
func part(value any, fields map[string]any) any {
	if len(fields) == 0 {
		return value
	}
	inner := func(key string) map[string]any { m, _ := fields[key].(map[string]any); return m }
	switch value := value.(type) {
	case map[string]any:
		some := map[string]any{}
		for name, v := range value {
			if _, ok := fields["f:"+name]; !ok {
				continue
			}
			if p := part(v, inner("f:"+name)); p != nil {
				some[name] = p
			}
		}
		return some
	case []any:
		some, keys := []any{}, slices.Sorted(maps.Keys(fields))
		for _, item := range value {
			at := slices.IndexFunc(keys, func(key string) bool { return selects(key, item) })
			if at < 0 {
				continue
			}
			if p := part(item, inner(keys[at])); p != nil {
				some = append(some, p)
			}
		}
		return some
	}
	return value
}

// selects reports whether a key of managedFields is that of an item of a list.
func selects(key string, item any) bool {
	kind, text, _ := strings.Cut(key, ":")
	var want any
	if json.Unmarshal([]byte(text), &want) != nil {
		return false
	}
	switch kind {
	case "k":
		object, ok := item.(map[string]any)
		keys, isKeys := want.(map[string]any)
		for name, v := range keys {
			ok = ok && same(object[name], v)
		}
		return ok && isKeys
	case "v":
		return same(item, want)
	}
	return false
}

// same reports whether a value of an object is one of managedFields, whose numbers may be of another
// type.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	x, err := json.Marshal(a)
	y, err2 := json.Marshal(b)
	return err == nil && err2 == nil && string(x) == string(y)
}
