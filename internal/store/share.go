package store

import (
	"reflect"
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Objects of a large fleet are similar: they are created from a few templates, and decided in a few
// passes. Equal parts are decoded once and shared. They must not be modified, like everything that
// an object shares with its copies.
const (
	// maxShared is the maximum number of cached values of a type.
	maxShared = 4096
	// maxSharedText is the maximum length of a shared value as JSON.
	maxSharedText = 1 << 10
)

// sharing decodes values of some types once: whole specs and statuses of the kinds that a fleet has
// most of, and parts of all others.
type sharing struct {
	options jsonv2.Options
	// statuses decode statuses of some types from their JSON.
	statuses map[reflect.Type]func(text []byte, into any) error
}

func newSharing() sharing {
	parts := jsonv2.JoinUnmarshalers(
		sharedPart[*time.Time](), sharedPart[map[string]string](), sharedPart[api.Quantities](),
		sharedPart[[]string](), sharedPart[[]api.Condition](), sharedPart[[]api.Decision](),
	)
	return sharing{
		jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
			newShared[api.PlacementSpec](parts).unmarshalers(), newShared[api.WorkloadSpec](parts).unmarshalers(), unmarshalMetadata(parts), parts,
		)),
		map[reflect.Type]func(text []byte, into any) error{
			reflect.TypeFor[*api.PlacementStatus](): newShared[api.PlacementStatus](parts).into,
			reflect.TypeFor[*api.WorkloadStatus]():  newShared[api.WorkloadStatus](parts).into,
		},
	}
}

// unmarshalMetadata decodes metadata with what the JSON of the API does not show.
func unmarshalMetadata(parts *jsonv2.Unmarshalers) *jsonv2.Unmarshalers {
	type plain api.Metadata // has no unmarshaler
	return jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, out *api.Metadata) error {
		document := struct {
			*plain
			WrittenBy *api.HistoryActor `json:"written_by"`
		}{plain: (*plain)(out)}
		err := jsonv2.UnmarshalDecode(d, &document, jsonv2.WithUnmarshalers(parts))
		out.WrittenBy = document.WrittenBy
		return err
	})
}

// decodeStatus decodes a status.
func (s *sharing) decodeStatus(text []byte, status any) error {
	if decode, whole := s.statuses[reflect.TypeOf(status)]; whole {
		return decode(text, status)
	}
	return jsonv2.Unmarshal(text, status, s.options)
}

// shared caches the values of a type by their JSON.
type shared[T any] struct {
	parts *jsonv2.Unmarshalers // of the values; nil if they share none

	mu    sync.Mutex
	known map[string]T
}

func newShared[T any](parts *jsonv2.Unmarshalers) *shared[T] {
	return &shared[T]{parts: parts, known: map[string]T{}}
}

func sharedPart[T any]() *jsonv2.Unmarshalers { return newShared[T](nil).unmarshalers() }

// unmarshalers decode the values within others.
func (s *shared[T]) unmarshalers() *jsonv2.Unmarshalers {
	return jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, out *T) error {
		text, err := d.ReadValue()
		if err != nil {
			return err
		}
		*out, err = s.decode(text)
		return err
	})
}

// into decodes to a *T.
func (s *shared[T]) into(text []byte, out any) (err error) {
	*out.(*T), err = s.decode(text) //nolint:forcetypeassert // it is called by type
	return err
}

func (s *shared[T]) decode(text []byte) (value T, err error) {
	s.mu.Lock()
	value, ok := s.known[string(text)]
	s.mu.Unlock()
	if ok {
		return value, nil
	}
	if err := jsonv2.Unmarshal(text, &value, jsonv2.WithUnmarshalers(s.parts)); err != nil || len(text) > maxSharedText {
		return value, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.known) == maxShared {
		clear(s.known)
	}
	s.known[string(text)] = value
	return value, nil
}
