package main

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"golang.org/x/sync/errgroup"
)

// component is a part of the server that runs until its context is done.
type component struct {
	name string
	run  func(context.Context) error
}

var errStopped = errors.New("it stopped on its own")

// runInOrder starts the components in order and, when ctx is done or one of them fails, stops them
// in reverse order, each before the ones it depends on.
func runInOrder(ctx context.Context, components []component) error {
	group, ending := errgroup.WithContext(ctx)
	stops := make([]func(), 0, len(components))
	for _, c := range components {
		own, stop := context.WithCancel(context.WithoutCancel(ctx))
		done := make(chan struct{})
		stops = append(stops, func() { stop(); <-done })
		group.Go(func() error {
			defer close(done)
			err := c.run(own)
			if err == nil && own.Err() == nil {
				err = errStopped
			}
			if err != nil {
				return fmt.Errorf("%s: %w", c.name, err)
			}
			return nil
		})
	}
	group.Go(func() error {
		<-ending.Done()
		for _, stop := range slices.Backward(stops) {
			stop()
		}
		return nil
	})
	return group.Wait()
}
