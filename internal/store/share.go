package store

import (
	"sync"
	"time"

	jsonv2 "github.com/go-json-experiment/json"
	"github.com/go-json-experiment/json/jsontext"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// The objects of a large fleet are alike: made from a few templates, and decided in a few
// passes. What is written alike in many of them is decoded once and shared. It is not
// to be changed, as nothing is that an object shares with its copies.
const (
	// maxShared is how many values of a type are known at a time.
	maxShared = 4096
	// maxSharedText is how long what is shared may be as JSON.
	maxSharedText = 1 << 10
)

// newSharing has values of some types shared by all that is decoded with it.
func newSharing() jsonv2.Options {
	return jsonv2.WithUnmarshalers(jsonv2.JoinUnmarshalers(
		sharing[*time.Time](), sharing[map[string]string](), sharing[api.Quantities](),
		sharing[[]string](), sharing[[]api.Condition](), sharing[[]api.Decision](),
	))
}

// shared are the values of a type by their JSON.
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
