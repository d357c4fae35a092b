package recovery

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"runtime/debug"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unicode"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/scheduler/terraform-provider-scheduler/internal/announce"
)

// Recorder logs and counts the panics of a server. A nil Recorder still recovers from panics but
// does not record them.
type Recorder struct {
	logger *slog.Logger
	panics *prometheus.CounterVec
	down   *prometheus.GaugeVec

	mu      sync.Mutex
	waiting map[string]int // components that wait to be restarted, by name
	// faulted holds the panics in which the last work on objects ended, by object and component.
	faulted map[string]map[string]string
	// any says whether faulted is not empty.
	any atomic.Bool
	// changed are the objects for which faulted has changed.
	changed *announce.Set[string]
}

// New returns an empty recorder. If logger is nil, nothing is logged.
func New(logger *slog.Logger) *Recorder {
	if logger == nil {
		logger = slog.New(slog.DiscardHandler)
	}
	return &Recorder{
		logger: logger,
		panics: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "scheduler_panics_total", Help: "Panics that were contained, by component. Each is a bug in the server; the log has the stack.",
		}, []string{"component"}),
		down: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Name: "scheduler_component_down", Help: "1 while a component waits to be restarted after a panic.",
		}, []string{"component"}),
		waiting: map[string]int{}, faulted: map[string]map[string]string{}, changed: announce.NewSet[string](),
	}
}

// Collectors returns the recorder's metrics.
func (r *Recorder) Collectors() []prometheus.Collector {
	return []prometheus.Collector{r.panics, r.down}
}

// Down returns the names of the components that wait to be restarted after a panic, sorted.
func (r *Recorder) Down() []string {
	if r == nil {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	names := make([]string, 0, len(r.waiting))
	for name := range r.waiting {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// maxFaulted limits the number of objects in faulted.
const maxFaulted = 10_000

// remember records how the work of a component on an object ended: with a panic, or, if p is nil,
// without one.
func (r *Recorder) remember(object, component string, p *Panic) {
	if r == nil || object == "" || p == nil && !r.any.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.faulted[object]
	before := of[component]
	switch {
	case p == nil:
		if delete(of, component); len(of) == 0 {
			delete(r.faulted, object)
		}
	case of != nil:
		of[component] = p.Error()
	case len(r.faulted) < maxFaulted:
		r.faulted[object] = map[string]string{component: p.Error()}
	}
	r.any.Store(len(r.faulted) > 0)
	if r.faulted[object][component] != before {
		r.changed.Add(object)
	}
}

// Forget removes an object that is gone.
func (r *Recorder) Forget(object string) {
	if r == nil || !r.any.Load() {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.faulted, object)
	r.any.Store(len(r.faulted) > 0)
}

// Any reports whether the last work on any object ended with a panic.
func (r *Recorder) Any() bool { return r != nil && r.any.Load() }

// Faulted describes the panics in which the last work on an object ended: a clause for each
// component, sorted.
func (r *Recorder) Faulted(object string) []string {
	if !r.Any() {
		return nil
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	var out []string
	for _, component := range slices.Sorted(maps.Keys(r.faulted[object])) {
		out = append(out, component+" failed with "+r.faulted[object][component])
	}
	return out
}

// NextChanged waits until Faulted changes for objects that are not gone, and returns these objects.
// The error is that of ctx. It must not be called concurrently.
func (r *Recorder) NextChanged(ctx context.Context) ([]string, error) {
	if r == nil {
		<-ctx.Done()
		return nil, ctx.Err() //nolint:wrapcheck // the caller's
	}
	return r.changed.Next(ctx) //nolint:wrapcheck // the caller's
}

// note logs and counts a panic that was recovered elsewhere.
func (r *Recorder) note(p *Panic) {
	if r == nil {
		return
	}
	r.panics.WithLabelValues(p.Component).Inc()
	r.logger.Error("panic: a bug in the server", "component", p.Component, "object", p.Object,
		"panic", p.cause(), "stack", string(p.Stack))
}

// Component returns the component that panics are counted for.
func (r *Recorder) Component(name string) *Component { return &Component{recorder: r, name: name} }

// Component recovers from the panics of one part of the server. A nil Component does so without
// recording them.
type Component struct {
	recorder *Recorder
	name     string
}

// Do runs f for an object; "" means none. A panic in it becomes a *Panic, which is logged, counted,
// and remembered until f succeeds for the object. The same applies to a *Panic that f returns.
func (c *Component) Do(object string, f func() error) error {
	err := Confine(object, f)
	p, panicked := errors.AsType[*Panic](err)
	if panicked && p.Component == "" {
		c.Note(p)
	}
	if c != nil {
		c.recorder.remember(object, c.name, p)
	}
	return err
}

// Go is Do for functions without a result, such as the body of a goroutine. It reports whether f
// returned normally.
func (c *Component) Go(object string, f func()) bool {
	return c.Do(object, func() error { f(); return nil }) == nil
}

// Note logs and counts a panic of the component that Confine has returned.
func (c *Component) Note(p *Panic) {
	if c == nil {
		return
	}
	p.Component = c.name
	c.recorder.note(p)
}

// Confine runs f for an object and turns a panic in it into a *Panic, without recording it.
func Confine(object string, f func() error) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			err = &Panic{Object: object, Cause: cause, Stack: debug.Stack()}
		}
	}()
	return f()
}

// Panic is a panic as an error.
type Panic struct {
	// Component is the part of the server, and Object what it was working on, or "".
	Component, Object string
	// Cause is the value passed to panic.
	Cause any
	Stack []byte
}

// Error implements error. It returns a short line without the stack, suitable for a condition.
func (p *Panic) Error() string { return "a fault of the server: " + p.cause() }

// maxCause limits the length of the cause in messages, in characters.
const maxCause = 200

// cause returns the cause as one short line.
func (p *Panic) cause() string {
	text := strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return ' '
		}
		return r
	}, fmt.Sprint(p.Cause))
	if runes := []rune(text); len(runes) > maxCause {
		text = string(runes[:maxCause]) + "…"
	}
	return text
}
