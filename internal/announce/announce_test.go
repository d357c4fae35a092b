package announce

import (
	"context"
	"errors"
	"slices"
	"testing"
)

func TestKeysWaitOnceUntilTheyAreTaken(t *testing.T) {
	s := NewSet[string]()
	s.Add()
	s.Add("a")
	s.Add("b", "a")
	keys, err := s.Next(t.Context())
	if slices.Sort(keys); err != nil || !slices.Equal(keys, []string{"a", "b"}) {
		t.Errorf("got %v, %v", keys, err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if keys, err := s.Next(ended); !errors.Is(err, context.Canceled) {
		t.Errorf("Next() without news = %v, %v, want context.Canceled", keys, err)
	}
	s.Add("c")
	if keys, err := s.Next(t.Context()); err != nil || !slices.Equal(keys, []string{"c"}) {
		t.Errorf("got %v, %v", keys, err)
	}
}
