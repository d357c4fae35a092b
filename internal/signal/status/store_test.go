package status

import (
	"context"
	"errors"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// answers are those of a writer, one after the other.
type answers []error

func (a *answers) WriteOne(context.Context, Write) (int64, error) {
	err := (*a)[0]
	*a = (*a)[1:]
	return 7, err
}

// Only a write that failed leaves a doubt about what is stored: one that was rejected because the object has changed was
// certainly not stored.
func TestDoubtsOfAStore(t *testing.T) {
	failure := errors.New("no response")
	stale := &StaleError{Keys: []api.Key{{Kind: api.KindCluster, Name: "a"}}}
	changed := make(chan struct{})
	close(changed)
	for _, test := range []struct {
		name            string
		answers         answers
		written, doubts int
	}{
		{"stored", answers{nil}, 1, 0},
		{"failed", answers{failure}, 0, 1},
		{"stale, then stored", answers{stale, nil}, 1, 0},
		{"stale, then failed", answers{stale, failure}, 0, 1},
	} {
		t.Run(test.name, func(t *testing.T) {
			written, doubts := 0, 0
			_, err := Store(t.Context(), &test.answers, make(chan struct{}, 1),
				func() (Due, error) { return Due{Differs: true, Changed: changed}, nil },
				func(int64) { written++ }, func() { doubts++ })
			if written != test.written || doubts != test.doubts || (err != nil) != (test.doubts > 0) {
				t.Errorf("%d written, %d doubts, error %v, want %d and %d", written, doubts, err, test.written, test.doubts)
			}
		})
	}
}
