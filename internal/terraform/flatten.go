package terraform

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Terraform shows an object flat: name, namespace and labels of the metadata are next to the fields
// of the spec. A cluster is global; its namespace attribute is the owner, spec.namespace. An object
// that belongs to a cluster names it in an attribute.

// Flatten returns an object's metadata and spec as Terraform shows them.
func Flatten(object api.Object) (map[string]any, error) {
	spec, err := JSONDocument(object.SpecPart())
	if err != nil {
		return nil, fmt.Errorf("%s: %w", api.KeyOf(object), err)
	}
	flat := maps.Clone(spec)
	meta := object.Meta()
	flat["name"] = meta.Name
	if meta.Namespace != "" {
		flat["namespace"] = meta.Namespace
	}
	if meta.Cluster != "" {
		flat["cluster"] = meta.Cluster
	}
	if len(meta.Labels) > 0 {
		labels := make(map[string]any, len(meta.Labels))
		for key, value := range meta.Labels {
			labels[key] = value
		}
		flat["labels"] = labels
	}
	return flat, nil
}

// Unflatten returns the object described by a flat document, with defaults. The error is
// api.FieldErrors if a field has the wrong type.
func Unflatten(kind api.Kind, flat map[string]any) (api.Object, error) {
	info, ok := api.LookupKind(kind)
	if !ok {
		return nil, fmt.Errorf("%q is not a kind of object", kind)
	}
	metadata := map[string]any{}
	spec := maps.Clone(flat)
	for name, field := range flat {
		if inMetadata(info.Scope, name) {
			metadata[name] = field
			delete(spec, name)
		}
	}
	data, err := json.Marshal(map[string]any{"kind": kind, "metadata": metadata, "spec": spec})
	if err != nil {
		return nil, fmt.Errorf("%s %q: %w", kind, flat["name"], err)
	}
	object := info.New()
	if err := api.DecodeInto(data, object); err != nil {
		return nil, err
	}
	object.SetDefaults()
	return object, nil
}

// inMetadata reports whether a flat field belongs to the metadata.
func inMetadata(scope api.Scope, name string) bool {
	switch name {
	case "name", "labels":
		return true
	case "namespace":
		return scope == api.Namespaced || scope == api.GlobalOrNamespaced
	case "cluster":
		return scope == api.OfCluster
	}
	return false
}

// JSONDocument returns a struct as a document in which numbers keep their text.
func JSONDocument(v any) (map[string]any, error) {
	data, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	document, err := api.DecodeDocument(data)
	if err != nil {
		return nil, err
	}
	object, ok := document.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("the JSON of %T is not an object", v)
	}
	return object, nil
}
