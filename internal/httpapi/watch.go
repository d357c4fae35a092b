package httpapi

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
)

// watchBacklog is how many publications of the fleet a watch can resume from.
const watchBacklog = 5000

type watchInput struct {
	Kinds           string `query:"kinds" doc:"Kinds to show, separated by commas: cluster,placement. Absent = all."`
	ResourceVersion string `query:"resource_version" doc:"Show what came after this; absent = from now on. 410 says that it is no longer known."`
	LastEventID     string `header:"Last-Event-ID" doc:"As resource_version, which it takes precedence over; sent by readers of event streams when they connect again."`
}

type watchOutput struct {
	Body func(huma.Context)
}

func (s *Server) watch(ctx context.Context, in *watchInput) (*watchOutput, error) {
	if err := identityOf(ctx).mayReadNamespace(""); err != nil {
		return nil, err
	}
	kinds, err := parseKinds(in.Kinds)
	if err != nil {
		return nil, err
	}
	at, since, err := s.watchStart(ctx, in)
	if err != nil {
		return nil, err
	}
	return &watchOutput{func(hc huma.Context) {
		_, w := humago.Unwrap(hc)
		stream := &watchStream{server: s, kinds: kinds, who: identityOf(ctx), w: w, control: http.NewResponseController(w)}
		stream.run(ctx, at, since)
	}}, nil
}

func parseKinds(text string) (map[api.Kind]bool, error) {
	kinds := map[api.Kind]bool{}
	for _, info := range api.Kinds {
		kinds[info.Kind] = text == ""
	}
	if text == "" {
		return kinds, nil
	}
	for name := range strings.SplitSeq(text, ",") {
		kind := api.Kind(strings.TrimSpace(name))
		if _, ok := kinds[kind]; !ok {
			return nil, invalid("kinds", "%q is not a kind of object", string(kind))
		}
		kinds[kind] = true
	}
	return kinds, nil
}

// watchStart finds where a watch begins, and the revision up to which the
// reader knows everything.
func (s *Server) watchStart(ctx context.Context, in *watchInput) (*event, int64, error) {
	field, text := "Last-Event-ID", in.LastEventID
	if text == "" {
		field, text = "resource_version", in.ResourceVersion
	}
	if text == "" {
		at := s.events.newest()
		return at, at.revision, nil
	}
	since, err := parseRevision(field, text)
	if err != nil {
		return nil, 0, err
	}
	// A revision that the store has not reached is of another store, or of this
	// one before it was restored.
	bounded, cancel := s.waiting(ctx, pictureWait)
	defer cancel()
	_, err = s.fleet.WaitRevision(bounded, since)
	s.freshen(ctx)
	if err != nil && s.behind() {
		return nil, 0, unavailable("the store does not answer, so it is not known what came after the revision: repeat the request")
	}
	if err != nil {
		return nil, 0, newProblem(api.ProblemRevisionGone, "revision %d is not one of this store: list the objects again", since)
	}
	at, ok := s.events.after(since)
	if !ok {
		return nil, 0, newProblem(api.ProblemRevisionGone, "what changed after revision %d is no longer known: list the objects again", since)
	}
	return at, since, nil
}

// watchStream writes one watch.
type watchStream struct {
	server  *Server
	kinds   map[api.Kind]bool
	who     identity
	w       http.ResponseWriter
	control *http.ResponseController
	buffer  bytes.Buffer
}

// run writes what happens until the reader or the server goes, or the reader is
// too slow.
func (w *watchStream) run(ctx context.Context, at *event, since int64) {
	w.server.metrics.watchers.Inc()
	defer w.server.metrics.watchers.Dec()
	header := w.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	w.w.WriteHeader(http.StatusOK)
	w.mark(since)
	if w.flush() != nil {
		return
	}
	heartbeat := time.NewTicker(w.server.options.WatchHeartbeat)
	defer heartbeat.Stop()
	for {
		select {
		case <-at.ready:
			at = at.next
			if at.revision <= since {
				continue
			}
			since = at.revision
			if w.write(at); w.buffer.Len() == 0 {
				continue
			}
		case <-heartbeat.C:
			w.mark(since)
		case <-ctx.Done():
			return
		case <-w.server.stopping.Done():
			return
		}
		if w.server.stillValid(ctx) != nil || w.flush() != nil {
			return
		}
	}
}

// mark is a sign of life that also moves the position a reader resumes from.
func (w *watchStream) mark(revision int64) {
	w.buffer.WriteString(": alive\nid: " + strconv.FormatInt(revision, 10) + "\n\n")
}

// write renders the changes of a publication. Only the last of them carries its
// revision: a reader that loses the connection in the middle gets all of them
// again.
func (w *watchStream) write(e *event) {
	var shown []api.Event
	for _, change := range e.changes {
		if item, ok := w.show(e, change); ok {
			item.ResourceVersion = strconv.FormatInt(e.revision-1, 10)
			shown = append(shown, item)
		}
	}
	for i, item := range shown {
		w.buffer.WriteString("event: " + string(item.Type) + "\n")
		if i == len(shown)-1 {
			item.ResourceVersion = strconv.FormatInt(e.revision, 10)
			w.buffer.WriteString("id: " + item.ResourceVersion + "\n")
		}
		w.buffer.WriteString("data: ")
		w.buffer.Write(encodeJSON(item)) // ends with a line feed
		w.buffer.WriteByte('\n')
	}
}

// show turns a change into an event, if the reader may see it and asked for it.
// An object that passes out of the reader's sight is as good as deleted.
func (w *watchStream) show(e *event, change fleet.Change) (api.Event, bool) {
	if !w.kinds[change.Key.Kind] {
		return api.Event{}, false
	}
	switch {
	case change.New != nil && w.sees(e, change.New.Object):
		return api.Event{Type: api.EventPut, Object: w.server.shown(w.who, change.New.Object)}, true
	case change.Old != nil && w.sees(e, change.Old.Object):
		info, ok := api.LookupKind(change.Key.Kind)
		if !ok {
			return api.Event{}, false
		}
		object := info.New()
		*object.Meta() = *change.Old.Object.Meta()
		return api.Event{Type: api.EventDelete, Object: object}, true
	}
	return api.Event{}, false
}

// sees reports whether the reader may see an object. What belongs to a cluster
// is judged by the cluster as it was at the event, however late it is read.
func (w *watchStream) sees(e *event, object api.Object) bool {
	if !ofCluster(object.ObjectKind()) {
		return w.server.sees(w.who, object)
	}
	return w.who.seesOf(e.clusters[api.KeyOf(object).Namespace])
}

// flush sends what was written. A reader that does not take it in time loses
// the stream, and resumes where it was.
func (w *watchStream) flush() error {
	defer w.buffer.Reset()
	if err := w.control.SetWriteDeadline(time.Now().Add(w.server.options.WatchWriteTimeout)); err != nil {
		return err
	}
	if _, err := w.w.Write(w.buffer.Bytes()); err != nil {
		return err
	}
	return w.control.Flush()
}
