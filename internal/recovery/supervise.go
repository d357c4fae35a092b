package recovery

import (
	"context"
	"errors"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// Backoff for restarting a component after a panic. It is reset once the component has worked for a
// while.
var (
	pauses  = backoff.Backoff{First: 250 * time.Millisecond, Most: time.Minute}
	settled = 2 * pauses.Most
)

// Supervise runs a component until it returns or ctx is done. After a panic, or an error that wraps
// one, the component is restarted with a backoff; meanwhile it counts as down.
func (c *Component) Supervise(ctx context.Context, run func(context.Context) error) error {
	return c.repeat(ctx, "", run, func(pause time.Duration) bool {
		if c != nil && c.recorder != nil {
			c.recorder.logger.Error("a component panicked and is being restarted", "component", c.name, "pause", pause)
			c.recorder.setDown(c.name, 1)
			defer c.recorder.setDown(c.name, -1)
		}
		return backoff.Wait(ctx, pause)
	})
}

// Keep runs a component's work for one object until it returns or ctx is done. After a panic, or an
// error that wraps one, it is restarted with a backoff.
func (c *Component) Keep(ctx context.Context, object string, run func(context.Context) error) error {
	return c.repeat(ctx, object, run, func(pause time.Duration) bool { return backoff.Wait(ctx, pause) })
}

func (c *Component) repeat(ctx context.Context, object string, run func(context.Context) error, wait func(time.Duration) bool) error {
	for failures := 1; ; failures++ {
		started := time.Now()
		err := c.Do(object, func() error { return run(ctx) })
		if _, panicked := errors.AsType[*Panic](err); !panicked {
			return err
		}
		if time.Since(started) >= settled {
			failures = 1
		}
		if !wait(pauses.After(failures)) {
			return nil
		}
	}
}

// setDown counts the waiting components with a name.
func (r *Recorder) setDown(name string, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[name] += by; r.waiting[name] == 0 {
		delete(r.waiting, name)
	}
	r.down.WithLabelValues(name).Set(float64(r.waiting[name]))
}
