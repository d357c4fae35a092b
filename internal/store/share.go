package store

import (
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

// newSharing returns decoding options with which values of some types are shared.
func newSharing() jsonv2.Options {
	return jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		sharing[*time.Time](), sharing[map[string]string](), sharing[api.Quantities](),
		sharing[[]string](), sharing[[]api.Condition](), sharing[[]api.Decision](),
	))
}

// shared caches the values of a type by their JSON.
type shared[T any] struct {
	mu    sync.Mutex
	known map[string]T
}

func sharing[T any]() *jsonv2.Unmarshalers {
	s := &shared[T]{known: map[string]T{}}
	return jsonv2.UnmarshalFromFunc(func(d *jsontext.Decoder, out *T) error {
		text, err := d.ReadValue()
		if err != nil {
			return err
		}
		*out, err = s.decode(text)
		return err
	})
}

func (s *shared[T]) decode(text []byte) (value T, err error) {
	s.mu.Lock()
	value, ok := s.known[string(text)]
	s.mu.Unlock()
	if ok {
		return value, nil
	}
	if err := jsonv2.Unmarshal(text, &value); err != nil || len(text) > maxSharedText {
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
