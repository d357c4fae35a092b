package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"time"

	"k8s.io/apimachinery/pkg/labels"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/fieldselector"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// following is a list of objects, followed by their changes.
type following struct {
	server *client.Client
	kinds  []api.KindInfo
	keys   []api.Key // of one kind; none = all
	// namespace limits the list to a namespace and what is global. "" = no limit.
	namespace string
	// labels and fields are selectors; fields are those of the only kind. "" = all.
	labels, fields string
	stderr         io.Writer
	// program is the name of the program in messages.
	program string

	// from is the revision from which changes are followed. It is older than the list.
	from string
	// shown has the objects as they were shown, nil before the first list.
	shown    map[api.Key]api.Object
	byLabels labels.Selector
	byFields fieldselector.Selector
}

// list passes the objects as they are now. After an error, nothing is noted.
func (f *following) list(ctx context.Context, show func(api.Object)) error {
	var err error
	if f.byLabels, err = labels.Parse(f.labels); err != nil {
		return usage("--selector: %w", err)
	}
	if f.byFields, err = fieldselector.Parse(f.fields, f.kinds[0]); err != nil {
		return usage("--field: %w", err)
	}
	info, err := f.server.Server(ctx)
	if err != nil {
		return err
	}
	listed := map[api.Key]api.Object{}
	for object, err := range f.objects(ctx) {
		if err != nil {
			return err
		}
		listed[api.KeyOf(object)] = object
		show(object)
	}
	f.from, f.shown = strconv.FormatInt(info.Store.Revision, 10), listed
	return nil
}

func (f *following) objects(ctx context.Context) iter.Seq2[api.Object, error] {
	return func(yield func(api.Object, error) bool) {
		for _, key := range f.keys {
			object, err := f.server.Get(ctx, key)
			if client.IsNotFound(err) && f.shown != nil {
				continue // deleted since it was shown
			}
			if !yield(object, err) || err != nil {
				return
			}
		}
		if len(f.keys) > 0 {
			return
		}
		for _, info := range f.kinds {
			options := client.ListOptions{LabelSelector: f.labels, FieldSelector: f.fields}
			if info.Scope == api.Namespaced {
				options.Namespace = f.namespace
			}
			for object, err := range f.server.List(ctx, info.Kind, options) {
				if err == nil && !f.inside(info, object) {
					continue
				}
				if !yield(object, err) || err != nil {
					return
				}
			}
		}
	}
}

// inside reports whether an object is global or in the namespace.
func (f *following) inside(info api.KindInfo, o api.Object) bool {
	namespace := o.Meta().Namespace
	return f.namespace == "" || info.Scope == api.OfCluster || namespace == "" || namespace == f.namespace
}

// watchAgain is the pause before a watch continues that broke.
const watchAgain = time.Second

// follow passes each change until the context is done. It continues when the server was away.
func (f *following) follow(ctx context.Context, show func(api.Event) error) error {
	told := false
	for {
		shown, failed, err := f.watch(ctx, show)
		if failed != nil || ctx.Err() != nil {
			return failed
		}
		told = told && !shown
		if client.StatusOf(err) == http.StatusGone {
			var missed []api.Event
			missed, err = f.missed(ctx)
			for _, event := range missed {
				if err := show(event); err != nil {
					return err
				}
			}
		}
		switch {
		case refused(err):
			return err
		case err != nil && ctx.Err() == nil && !errors.Is(err, io.EOF) && !told:
			fmt.Fprintf(f.stderr, "%s: %s; trying again\n", f.program, termtext.Text(err.Error()))
			told = true
		}
		if !backoff.Wait(ctx, watchAgain) {
			return nil
		}
	}
}

// refused reports whether the server does not accept a watch, however often it is asked.
func refused(err error) bool {
	status := client.StatusOf(err)
	return status >= 400 && status < 500 && status != http.StatusGone && status != http.StatusTooManyRequests
}

// watch passes changes until the connection breaks, which err says. shown reports whether there was
// one, and failed is the error of show.
func (f *following) watch(ctx context.Context, show func(api.Event) error) (shown bool, failed, err error) {
	kinds := make([]api.Kind, len(f.kinds))
	for i, info := range f.kinds {
		kinds[i] = info.Kind
	}
	for event, err := range f.server.Watch(ctx, f.from, kinds...) {
		if err != nil {
			return shown, nil, err
		}
		shown, f.from = true, event.ResourceVersion
		if own, ok := f.own(event); ok {
			if err := show(own); err != nil {
				return shown, err, nil
			}
		}
	}
	return shown, nil, nil
}

// missed lists the objects again, and returns what differs from what was shown: a server that was
// restarted does not know the changes before.
func (f *following) missed(ctx context.Context) ([]api.Event, error) {
	before := f.shown
	var events []api.Event
	err := f.list(ctx, func(o api.Object) {
		if old := before[api.KeyOf(o)]; old == nil || old.Meta().ResourceVersion != o.Meta().ResourceVersion {
			events = append(events, api.Event{Type: api.EventPut, Object: o})
		}
	})
	if err != nil {
		return nil, err
	}
	byName := func(a, b api.Key) int { return cmp.Compare(a.String(), b.String()) }
	for _, key := range slices.SortedFunc(maps.Keys(before), byName) {
		if f.shown[key] == nil {
			events = append(events, api.Event{Type: api.EventDelete, Object: before[key]})
		}
	}
	return events, nil
}

// own returns an event as the reader of the list sees it, and whether there is anything new: an object
// that no longer has the labels or the fields leaves the list.
func (f *following) own(e api.Event) (api.Event, bool) {
	key := api.KeyOf(e.Object)
	info, _ := api.LookupKind(key.Kind)
	before := f.shown[key]
	switch {
	case len(f.keys) > 0 && !slices.Contains(f.keys, key), !f.inside(info, e.Object):
		return e, false
	case e.Type == api.EventDelete, !f.byLabels.Matches(labels.Set(e.Object.Meta().Labels)), !f.byFields.Matches(e.Object):
		delete(f.shown, key)
		return api.Event{Type: api.EventDelete, ResourceVersion: e.ResourceVersion, Object: e.Object}, before != nil
	case before != nil && before.Meta().ResourceVersion == e.Object.Meta().ResourceVersion: // was listed
		return e, false
	}
	f.shown[key] = e.Object
	return e, true
}
