package httpapi

import (
	"bytes"
	"context"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humago"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/serve"
)

const watchPath = "/v1/watch"

// watchBacklog is how many publications of the fleet a watch can resume from.
const watchBacklog = 5000

type watchInput struct {
	Kinds           string `query:"kinds" doc:"Kinds to show, separated by commas: cluster,placement. If omitted, all."`
	ResourceVersion string `query:"resource_version" doc:"Show changes after this revision. If omitted, changes from now on. 410 means that it is no longer available."`
	LastEventID     string `header:"Last-Event-ID" doc:"The same as resource_version, and takes precedence over it. Event stream clients send it when they reconnect."`
}

type watchOutput struct {
	Body func(huma.Context)
}

// watches streams changes. It is implemented here because libraries for server-sent events buffer
// for each reader: here all readers walk one log, each change is encoded once, and a returning
// reader resumes by revision.
type watches struct {
	api      *operation.API
	fleet    *fleet.Fleet
	rights   auth.Rights
	sessions *auth.Sessions
	view     *view
	waits    *decisionWaiter
	metrics  *httpMetrics
	events   *eventLog
	// heartbeat is the interval of bookmarks on a quiet watch, and writeTimeout how long a reader
	// may take for one part.
	heartbeat, writeTimeout time.Duration
}

// routes adds the watch.
func (ws *watches) routes() {
	operation.Register(ws.api, operation.Declare(auth.AccessRead, huma.Operation{
		OperationID: "watch", Method: http.MethodGet, Path: watchPath, Tags: []string{"watch"},
		Summary:     "Stream changes as server-sent events",
		Description: "The events are put and delete, and their data is an Event. The id is the revision from which to resume. A resumed watch may repeat events. When a condition changes that is not stored (Faulted, or MoveHeld with the reason InputLost), the object is put again with the same revision. MoveHeld with the reason HeldByWindow follows from the time, and is that of the event.",
		Responses: map[string]*huma.Response{"200": {Description: "OK", Content: map[string]*huma.MediaType{
			"text/event-stream": {Schema: ws.api.Schema(api.Event{})},
		}}},
		Errors: []int{http.StatusGone, http.StatusUnprocessableEntity},
	}), ws.watch)
}

func (ws *watches) watch(ctx context.Context, in *watchInput) (*watchOutput, error) {
	who := auth.Of(ctx)
	if err := who.MayReadSomething(); err != nil {
		return nil, err
	}
	kinds, err := parseKinds(in.Kinds)
	if err != nil {
		return nil, err
	}
	if in.Kinds != "" {
		for kind, wanted := range kinds {
			if !wanted {
				continue
			}
			if err := ws.rights.MayReadKey(who, api.Key{Kind: kind}); err != nil {
				return nil, err
			}
		}
	}
	at, since, err := ws.watchStart(ctx, in)
	if err != nil {
		return nil, err
	}
	return &watchOutput{func(hc huma.Context) {
		_, w := humago.Unwrap(hc)
		stream := &watchStream{watches: ws, kinds: kinds, who: who, form: who.Form(), w: w, control: http.NewResponseController(w)}
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
			return nil, problem.Invalid("kinds", "%q is not a kind of object", string(kind))
		}
		kinds[kind] = true
	}
	return kinds, nil
}

// watchStart returns where a watch begins, and the revision up to which the reader knows
// everything.
func (ws *watches) watchStart(ctx context.Context, in *watchInput) (*event, int64, error) {
	field, text := "Last-Event-ID", in.LastEventID
	if text == "" {
		field, text = "resource_version", in.ResourceVersion
	}
	if text == "" {
		at := ws.events.newest()
		// The log follows the fleet, so what other requests show already may still come.
		return at, max(at.revision, ws.fleet.Snapshot().Revision()), nil
	}
	since, err := operation.ParseRevision(field, text)
	if err != nil {
		return nil, 0, err
	}
	// A revision that the store has not reached belongs to another store, or to this one before it
	// was restored.
	bounded, cancel := ws.waits.bounded(ctx, catchUpWait)
	defer cancel()
	_, err = ws.fleet.WaitRevision(bounded, since)
	ws.waits.freshen(ctx)
	if err != nil && ws.waits.behind() {
		return nil, 0, problem.Unavailable("the store does not respond, so changes after the revision are unknown: repeat the request")
	}
	if err != nil {
		return nil, 0, problem.New(api.ProblemRevisionGone, "revision %d is not one of this store: list the objects again", since)
	}
	select {
	case <-ws.events.begun:
	case <-bounded.Done():
	}
	at, ok := ws.events.after(since)
	if !ok {
		return nil, 0, problem.New(api.ProblemRevisionGone, "what changed after revision %d is no longer known: list the objects again", since)
	}
	return at, since, nil
}

// maxBehind is how much a watch may fall behind since it began, in bytes of changes: a watch that
// resumes begins with what it has missed.
const maxBehind = 8 << 20

// maxUnread is how many bytes of a watch the operating system buffers for the reader.
const maxUnread = 64 << 10

// watchStream writes one watch.
type watchStream struct {
	watches *watches
	kinds   map[api.Kind]bool
	who     auth.Identity
	form    string // the same for readers that see objects in the same form
	w       http.ResponseWriter
	control *http.ResponseController
	head    bytes.Buffer

	cutting sync.Mutex
	wasCut  bool
}

// run writes events until the reader or the server goes away, the token ends, or the reader is too
// slow.
func (w *watchStream) run(ctx context.Context, at *event, since int64) {
	w.watches.metrics.watchers.Inc()
	defer w.watches.metrics.watchers.Dec()
	w.watches.events.encoded.enter()
	defer w.watches.events.encoded.leave()
	serve.LimitUnread(ctx, maxUnread)
	header := w.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Accel-Buffering", "no")
	w.w.WriteHeader(http.StatusOK)
	if w.mark(since) != nil {
		return
	}
	allowed := w.watches.events.behind(at) + maxBehind
	heartbeat := time.NewTicker(w.watches.heartbeat)
	defer heartbeat.Stop()
	for {
		var tell func() error
		select {
		case <-at.ready:
			at = at.next
			if at.revision <= since && !at.unstored {
				continue
			}
			if behind := w.watches.events.behind(at); behind > allowed {
				w.tooSlow(since, behind)
				return
			}
			known := since
			since = max(since, at.revision)
			tell = func() error { return w.write(at, known) }
		case <-heartbeat.C:
			tell = func() error { return w.mark(since) }
		case <-ctx.Done():
			return
		case <-w.watches.waits.stopping.Done():
			return
		}
		if w.watches.sessions.Check(ctx) != nil || tell() != nil {
			return
		}
	}
}

// mark writes a bookmark, from which a reader can resume.
func (w *watchStream) mark(revision int64) error {
	if err := w.send([]byte(": alive\nid: " + strconv.FormatInt(revision, 10) + "\n\n")); err != nil {
		return err
	}
	return w.control.Flush()
}

// tooSlow ends the stream with the revision to resume from.
func (w *watchStream) tooSlow(since, behind int64) {
	w.watches.metrics.watchersCut.Inc()
	p := problem.New(api.ProblemRevisionGone, "the reader of this watch is %d bytes behind, which is too much: watch again from revision %d", behind, since)
	message := "event: error\nid: " + strconv.FormatInt(since, 10) + "\ndata: " + string(operation.EncodeJSON(p.Problem)) + "\n"
	if w.send([]byte(message)) == nil {
		_ = w.control.Flush() // a reader that does not get it sees the end of the stream
	}
}

// write writes the changes of a publication for a reader that knows everything up to a revision.
// Only the last one has the revision of the publication: if the connection breaks before it, the
// reader gets all of them again.
func (w *watchStream) write(e *event, known int64) error {
	var shown []int
	for i, change := range e.changes {
		if old := !e.unstored && known > e.from && change.Revision <= known; !old && w.tells(e, change) != "" {
			shown = append(shown, i)
		}
	}
	for n, i := range shown {
		revision, id := strconv.FormatInt(max(e.from, known), 10), ""
		if n == len(shown)-1 {
			revision = strconv.FormatInt(max(e.revision, known), 10)
			id = "id: " + revision + "\n"
		}
		change := e.changes[i]
		kind := string(w.tells(e, change))
		w.head.Reset()
		w.head.WriteString("event: " + kind + "\n" + id + `data: {"type":"` + kind + `","resource_version":"` + revision + `",`)
		if e.moved != nil && e.moved[i] != nil && kind == string(api.EventPut) {
			w.head.WriteString(`"from":`)
			w.head.Write(bytes.TrimSuffix(operation.EncodeJSON(e.moved[i]), []byte("\n")))
			w.head.WriteByte(',')
		}
		w.head.WriteString(`"object":`)
		if err := w.send(w.head.Bytes()); err != nil {
			return err
		}
		key := encodingKey{event: e, change: i, form: w.form}
		encode := func() []byte {
			return append(bytes.TrimSuffix(operation.EncodeJSON(w.show(e, change)), []byte("\n")), "}\n\n"...)
		}
		if err := w.watches.events.encoded.use(w, key, encode, w.send); err != nil {
			return err
		}
	}
	if len(shown) == 0 {
		return nil
	}
	return w.control.Flush()
}

// tells returns the event type of a change if the reader may see it and requested it; otherwise "".
// An object that is no longer visible to the reader counts as deleted.
func (w *watchStream) tells(e *event, change fleet.Change) api.EventType {
	switch {
	case !w.kinds[change.Key.Kind]:
	case change.New != nil && w.sees(e, change.New.Object):
		return api.EventPut
	case change.Old != nil && w.sees(e, change.Old.Object):
		return api.EventDelete
	}
	return ""
}

// show returns the object of a change as the reader may see it; for a deleted one only its
// identity.
func (w *watchStream) show(e *event, change fleet.Change) api.Object {
	if w.tells(e, change) == api.EventPut {
		return w.watches.view.shown(w.who, change.New.Object)
	}
	info, ok := api.LookupKind(change.Key.Kind)
	if !ok {
		return nil // impossible: the fleet contains known kinds only
	}
	object := info.New()
	*object.Meta() = *change.Old.Object.Meta()
	return object
}

// sees reports whether the reader may see an object. Objects that belong to a cluster depend on the
// cluster as of the event, however late it is read.
func (w *watchStream) sees(e *event, object api.Object) bool {
	if !auth.OfCluster(object.ObjectKind()) {
		return w.watches.rights.Reads(w.who, object)
	}
	return w.who.SeesOf(object.ObjectKind(), e.clusters[api.KeyOf(object).Namespace])
}

// send writes a part of the stream. If the reader does not take it in time, the stream is closed,
// and the reader can resume.
func (w *watchStream) send(data []byte) error {
	if err := w.extend(); err != nil {
		return err
	}
	_, err := w.w.Write(data)
	return err
}

var errTooSlow = errors.New("the reader is too slow")

// extend extends the write deadline for the next part, unless the stream was cut.
func (w *watchStream) extend() error {
	w.cutting.Lock()
	defer w.cutting.Unlock()
	if w.wasCut {
		return errTooSlow
	}
	return w.control.SetWriteDeadline(time.Now().Add(w.watches.writeTimeout))
}

// cut closes the stream of a reader that is still writing something that nobody else needs.
func (w *watchStream) cut() {
	w.cutting.Lock()
	defer w.cutting.Unlock()
	if !w.wasCut {
		w.wasCut = true
		w.watches.metrics.watchersCut.Inc()
		_ = w.control.SetWriteDeadline(time.Unix(1, 0)) // if that fails, the stream runs into its own deadline
	}
}
