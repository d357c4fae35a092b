package main

import (
	"context"
	"errors"
	"slices"
	"sync"
	"testing"
)

// journal records the order in which components stop.
type journal struct {
	mu    sync.Mutex
	names []string
}

func (j *journal) component(name string, started chan<- string, fail <-chan error) component {
	return component{name, func(ctx context.Context) error {
		started <- name
		defer func() {
			j.mu.Lock()
			defer j.mu.Unlock()
			j.names = append(j.names, name)
		}()
		select {
		case <-ctx.Done():
			return nil
		case err := <-fail:
			return err
		}
	}}
}

func TestComponentsStopInReverseOrder(t *testing.T) {
	var j journal
	started := make(chan string, 3)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error)
	go func() {
		ended <- runInOrder(ctx, []component{j.component("a", started, nil), j.component("b", started, nil), j.component("c", started, nil)})
	}()
	for range 3 {
		<-started
	}
	cancel()
	if err := <-ended; err != nil || !slices.Equal(j.names, []string{"c", "b", "a"}) {
		t.Fatalf("stopped %v, error %v", j.names, err)
	}
}

func TestOneComponentThatFailsStopsAll(t *testing.T) {
	failure := errors.New("broken")
	for name, result := range map[string]struct{ err, want error }{"with an error": {failure, failure}, "without": {nil, errStopped}} {
		t.Run(name, func(t *testing.T) {
			var j journal
			started, fail := make(chan string, 3), make(chan error, 1)
			fail <- result.err
			err := runInOrder(t.Context(), []component{j.component("a", started, nil), j.component("b", started, fail), j.component("c", started, nil)})
			if !errors.Is(err, result.want) || err.Error() != "b: "+result.want.Error() {
				t.Fatalf("error %v", err)
			}
			if !slices.Equal(j.names, []string{"b", "c", "a"}) && !slices.Equal(j.names, []string{"c", "b", "a"}) {
				t.Fatalf("stopped %v, want b before a", j.names)
			}
		})
	}
}
