package kubernetes

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"time"

	"golang.org/x/sync/semaphore"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
)

const (
	// pageSize is how many objects one answer has. A page exists as a whole only
	// until it is reduced.
	pageSize = 250
	// answerWithin is how long a page, or the beginning of a watch, may take.
	answerWithin = 30 * time.Second
	// watchFor is how long a watch lasts at least; twice that at most, so that
	// those of many clusters do not end together.
	watchFor = 5 * time.Minute
	// watchSlack is how much longer than agreed a watch may last.
	watchSlack = 30 * time.Second
)

// readAgain is when something is read again after a failure.
var readAgain = backoff.Backoff{First: time.Second, Most: 15 * time.Second}

// lister lists and watches the objects of one sort.
type lister interface {
	list(ctx context.Context, options metav1.ListOptions) (runtime.Object, error)
	watch(ctx context.Context, options metav1.ListOptions) (watch.Interface, error)
}

// reflector keeps a table like the objects of a cluster. Unlike the one of
// client-go it never holds more of them than a page, says what goes wrong, and
// gives up its place while the cluster does not answer.
type reflector[V comparable] struct {
	table   *table[V]
	lister  lister
	gate    *gate
	places  *semaphore.Weighted
	changed func()
	faults  *fault.Component
	cluster string
}

// errExpired says that what the watch begins at is too old: list again.
var errExpired = errors.New("the resource version is too old")

// run keeps the table current until ctx ends.
func (r *reflector[V]) run(ctx context.Context) {
	position, tornAt := "", ""
	failures := 0
	for ctx.Err() == nil {
		// A panic over an object is a failure like others: everything is listed again.
		err := fault.Confine(api.Key{Kind: api.KindCluster, Name: r.cluster}.String(), func() error { return r.step(ctx, &position) })
		if p, ok := errors.AsType[*fault.Panic](err); ok {
			r.faults.Note(p)
			position = ""
		}
		if ctx.Err() != nil {
			return
		}
		// What the API server refuses to watch from does not become better, nor does
		// what cannot be read a second time.
		torn := apierrors.HasStatusCause(err, kube.TornWatch)
		_, answered := errors.AsType[*apierrors.StatusError](err)
		if errors.Is(err, errExpired) || answered && (!torn || position == tornAt) {
			position = ""
		}
		if torn {
			tornAt = position
		}
		if err == nil || errors.Is(err, errExpired) {
			failures = 0
		} else {
			failures++
			// Otherwise the probes say what is wrong.
			if !errors.Is(err, context.Canceled) && r.gate.isOpen() && r.table.fail(err) {
				r.changed()
			}
		}
		// Also after a watch that ended well: one that ends at once all the time must not
		// become a busy loop.
		pause(ctx, time.Duration(float64(readAgain.After(failures))*(0.5+rand.Float64()/2)))
	}
}

// step lists where there is no position to watch from, and watches until the
// watch ends.
func (r *reflector[V]) step(ctx context.Context, position *string) error {
	if *position == "" {
		version, err := r.list(ctx)
		if err != nil {
			return err
		}
		*position = version
		r.changed()
	}
	return r.follow(ctx, position)
}

// list reads all objects, page by page.
func (r *reflector[V]) list(ctx context.Context) (version string, err error) {
	ctx, cancel, err := r.gate.pass(ctx)
	if err != nil {
		return "", err
	}
	defer cancel()
	rows := map[uid]V{}
	for next := ""; ; {
		page, err := r.page(ctx, next)
		if apierrors.IsResourceExpired(err) {
			return "", errExpired
		}
		if err != nil {
			return "", err
		}
		if err := r.table.read(page, rows); err != nil {
			return "", err
		}
		list, err := meta.ListAccessor(page)
		if err != nil {
			return "", err
		}
		if next = list.GetContinue(); next == "" {
			r.table.replace(rows)
			return list.GetResourceVersion(), nil
		}
	}
}

func (r *reflector[V]) page(ctx context.Context, next string) (runtime.Object, error) {
	if err := r.places.Acquire(ctx, 1); err != nil {
		return nil, err
	}
	defer r.places.Release(1)
	ctx, cancel := context.WithTimeout(ctx, answerWithin)
	defer cancel()
	return r.lister.list(ctx, metav1.ListOptions{Limit: pageSize, Continue: next})
}

// follow takes in what changes after a position, until the watch ends. The
// position moves on with it.
func (r *reflector[V]) follow(ctx context.Context, position *string) error {
	// A watch that is open survives a probe that fails: it may have missed nothing.
	if err := r.gate.wait(ctx); err != nil {
		return err
	}
	seconds := int64((watchFor + time.Duration(rand.Int64N(int64(watchFor)))).Seconds())
	ctx, cancel := context.WithTimeout(ctx, time.Duration(seconds)*time.Second+watchSlack)
	defer cancel()
	opening := time.AfterFunc(answerWithin, cancel)
	w, err := r.lister.watch(ctx, metav1.ListOptions{
		ResourceVersion: *position, AllowWatchBookmarks: true, TimeoutSeconds: &seconds,
	})
	inTime := opening.Stop()
	if err != nil {
		if !inTime {
			return context.DeadlineExceeded
		}
		return expired(err)
	}
	defer w.Stop()
	if !inTime {
		return context.DeadlineExceeded
	}
	if r.table.fail(nil) {
		r.changed()
	}
	for event := range w.ResultChan() {
		if err := r.take(event, position); err != nil {
			return err
		}
	}
	return nil
}

// take takes in one event of a watch.
func (r *reflector[V]) take(event watch.Event, position *string) error {
	var changed bool
	var err error
	switch event.Type {
	case watch.Error:
		return expired(apierrors.FromObject(event.Object))
	case watch.Added, watch.Modified:
		changed, err = r.table.put(event.Object)
	case watch.Deleted:
		changed, err = r.table.remove(event.Object)
	case watch.Bookmark:
	default:
		return fmt.Errorf("the watch has an event of the unknown type %q", event.Type)
	}
	if err != nil {
		return err
	}
	accessor, err := meta.Accessor(event.Object)
	if err != nil {
		return err
	}
	if version := accessor.GetResourceVersion(); version != "" {
		*position = version
	}
	if changed {
		r.changed()
	}
	return nil
}

// expired tells errors after which only a new list helps from others.
func expired(err error) error {
	if apierrors.IsResourceExpired(err) || apierrors.IsGone(err) {
		return errExpired
	}
	return err
}
