package reconcile

import (
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// lay lays the request's objects over the base.
func (s *simulation) lay(request api.Simulation, now time.Time) error {
	var errs api.FieldErrors
	if request.Base != "" && request.Base != "live" && request.Base != "empty" {
		errs.Add("base", "%q is not one of \"live\", \"empty\"", request.Base)
	}
	for i, key := range request.Delete {
		if s.object(key) == nil {
			errs.Add(fmt.Sprintf("delete[%d]", i), "%s does not exist", key)
		}
		s.over[key] = nil
	}
	seen := map[api.Key]int{}
	for i, raw := range request.Objects {
		field := fmt.Sprintf("objects[%d]", i)
		object, err := decode(raw)
		if err != nil {
			errs = append(errs, within(field, err)...)
			continue
		}
		key := api.KeyOf(object)
		if first, ok := seen[key]; ok {
			errs.Add(field, "%s is already given as objects[%d]", key, first)
			continue
		}
		seen[key] = i
		if err := s.inherit(object, s.object(key), raw, now); err != nil {
			errs = append(errs, within(field, err)...)
		}
		s.over[key] = object
		s.order = append(s.order, key)
	}
	return errs.Err()
}

// decode decodes and validates one object, and returns all errors.
func decode(raw json.RawMessage) (api.Object, error) {
	object, err := api.Decode(raw)
	var errs api.FieldErrors
	if err != nil && (object == nil || !errors.As(err, &errs)) {
		return nil, fmt.Errorf("read the object: %w", err)
	}
	errs = errs.And(object.Validate())
	if w, ok := object.(*api.Workload); ok {
		errs = errs.And(w.Status.Validate()) // only simulations are given a status
	}
	return object, errs.Err()
}

// within prefixes the errors of one object with its place in the request.
func within(field string, err error) api.FieldErrors {
	var errs api.FieldErrors
	if !errors.As(err, &errs) {
		return api.FieldErrors{{Field: field, Message: err.Error()}}
	}
	out := make(api.FieldErrors, len(errs))
	for i, e := range errs {
		out[i] = api.FieldError{Field: field + "." + e.Field, Message: e.Message}
	}
	return out
}

// inherit completes an object as the server would when it is written: over an object of the base it
// is a new version of it, with that one's status unless the request contains its own.
func (s *simulation) inherit(object, base api.Object, raw json.RawMessage, now time.Time) error {
	var told struct {
		Status   *json.RawMessage `json:"status"`
		Metadata struct {
			Generation int64 `json:"generation"`
		} `json:"metadata"`
	}
	_ = json.Unmarshal(raw, &told) // decoded before
	meta := object.Meta()
	if base != nil {
		base = withoutSecrets(base)
		was := base.Meta()
		meta.UID, meta.CreatedAt = was.UID, was.CreatedAt
		meta.RescheduleRequests = max(meta.RescheduleRequests, was.RescheduleRequests)
		document, err := api.DecodeDocument(raw)
		if err != nil {
			return err // impossible: it has been decoded
		}
		if err := api.KeepSecrets(object, base, document).Err(); err != nil {
			return err
		}
		meta.Generation = was.Generation
		if !api.SameIntent(object, base) {
			meta.Generation++
		}
		if told.Status == nil {
			reflect.ValueOf(object.StatusPart()).Elem().Set(reflect.ValueOf(base.StatusPart()).Elem())
		}
	} else if meta.Generation == 0 {
		meta.Generation = 1
	}
	if k := decidedAs(object.ObjectKind()); k != nil {
		k.complete(s, object, base, given{told.Status, told.Metadata.Generation, base == nil}, now)
	}
	return nil
}

// withoutSecrets returns an object with only what the requester may know of its secrets: that they
// exist.
func withoutSecrets(object api.Object) api.Object {
	shown := object.Copy()
	for field := range object.Secrets() {
		shown.SetSecret(field, api.WithheldSecret())
	}
	return shown
}
