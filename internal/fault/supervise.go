package fault

import (
	"context"
	"errors"
	"time"
)

// When a component that a panic has ended is started again: the pause doubles with
// every panic, and begins anew once the component has worked for a while.
const (
	firstPause = 250 * time.Millisecond
	maxPause   = time.Minute
	settled    = 2 * maxPause
)

// Supervise runs a component until it returns, or ctx ends. After a panic, or an
// error that wraps one, the component is started again with a back-off; meanwhile
// it counts as down.
func (c *Component) Supervise(ctx context.Context, run func(context.Context) error) error {
	for pause := firstPause; ; pause = min(2*pause, maxPause) {
		started := time.Now()
		err := c.Do("", func() error { return run(ctx) })
		if _, panicked := errors.AsType[*Panic](err); !panicked {
			return err
		}
		if time.Since(started) >= settled {
			pause = firstPause
		}
		if !c.pause(ctx, pause) {
			return nil
		}
	}
}

// pause waits, during which the component is down. It reports false where ctx ends.
func (c *Component) pause(ctx context.Context, pause time.Duration) bool {
	if c != nil && c.recorder != nil {
		c.recorder.logger.Error("a component was ended by a panic; it is started again", "component", c.name, "pause", pause)
		c.recorder.setDown(c.name, 1)
		defer c.recorder.setDown(c.name, -1)
	}
	timer := time.NewTimer(pause)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}

// setDown counts those of a name that wait.
func (r *Recorder) setDown(name string, by int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.waiting[name] += by; r.waiting[name] == 0 {
		delete(r.waiting, name)
	}
	r.down.WithLabelValues(name).Set(float64(r.waiting[name]))
}
