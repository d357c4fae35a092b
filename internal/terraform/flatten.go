package terraform

import (
	"encoding/json"
	"fmt"
	"maps"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Terraform shows an object flat: name, namespace and labels of the metadata
// stand beside the fields of the spec. A cluster is global; its namespace
// attribute is the owner, spec.namespace. What belongs to a cluster has that as
// an attribute.

// Flatten lays an object's metadata and spec out as Terraform shows them.
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

// Unflatten makes the object that a flat document describes, defaults filled
// in. The error is api.FieldErrors where a field has a wrong type.
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

// inMetadata says where a flat field belongs.
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

// JSONDocument is the JSON of a struct as a document whose numbers keep their
// text.
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
