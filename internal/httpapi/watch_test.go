package httpapi

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// sse is one server-sent event.
type sse struct {
	id, event string
	data      anyEvent
}

type anyEvent struct {
	Type            api.EventType `json:"type"`
	ResourceVersion string        `json:"resource_version"`
	From            *api.Where    `json:"from"`
	Object          anyObject     `json:"object"`
}

func (e sse) String() string {
	return fmt.Sprintf("%s %s", e.event, api.Key{Namespace: e.data.Object.Metadata.Namespace, Name: e.data.Object.Metadata.Name}.Path())
}

// watchReader reads the events of a watch.
type watchReader struct {
	t      *testing.T
	lines  *bufio.Scanner
	lastID string
	resp   *http.Response
	cancel context.CancelFunc
}

func (s *testServer) watch(path string, header ...string) *watchReader {
	s.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, s.url+path, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	if s.token != "" {
		r.Header.Set("Authorization", "Bearer "+s.token)
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	resp, err := s.client.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	w := &watchReader{t: s.t.(*testing.T), lines: bufio.NewScanner(resp.Body), resp: resp, cancel: cancel}
	s.t.Cleanup(w.close)
	return w
}

func (w *watchReader) close() {
	w.cancel()
	_ = w.resp.Body.Close()
}

// next returns the next event with data; false at the end of the stream.
func (w *watchReader) next() (sse, bool) {
	var e sse
	var data string
	for w.lines.Scan() {
		line := w.lines.Text()
		name, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && data != "":
			if err := json.Unmarshal([]byte(data), &e.data); err != nil {
				w.t.Fatalf("event %q: %v", data, err)
			}
			return e, true
		case name == "id":
			w.lastID, e.id = value, value
		case name == "event":
			e.event = value
		case name == "data":
			data = value
		}
	}
	return sse{}, false
}

func (w *watchReader) expect(want ...string) []sse {
	w.t.Helper()
	var events []sse
	for _, text := range want {
		e, ok := w.next()
		if !ok || e.String() != text || string(e.data.Type) != e.event {
			w.t.Fatalf("got %q (%t), want %q", e, ok, text)
		}
		events = append(events, e)
	}
	return events
}

// started waits for the first keep-alive.
func (w *watchReader) started() *watchReader {
	w.t.Helper()
	if w.resp.StatusCode != 200 || w.resp.Header.Get("Content-Type") != "text/event-stream" || !w.lines.Scan() {
		w.t.Fatalf("watch: %d %s", w.resp.StatusCode, w.resp.Header.Get("Content-Type"))
	}
	return w
}

func TestWatch(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/before", `{"spec":{}}`)
	all := s.watch("/v1/watch").started()
	placements := s.watch("/v1/watch?kinds=placement,metric").started()
	s.mustPut("/v1/clusters/eu-1", `{"spec":{"kubernetes":{"kubeconfig":`+kubeconfig("hidden")+`}}}`)
	s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
	s.do(http.MethodDelete, "/v1/clusters/eu-1", "")
	s.do(http.MethodDelete, "/v1/namespaces/shop/placements/web", "")

	events := all.expect("put eu-1", "put shop/web", "delete eu-1", "delete shop/web")
	if events[0].data.Object.Status["state"] != "online" || strings.Contains(fmt.Sprint(events[0].data.Object.Spec), "hidden") {
		t.Errorf("cluster: %+v", events[0].data.Object)
	}
	if deleted := events[2].data.Object; deleted.Kind != api.KindCluster || deleted.Metadata.UID == "" {
		t.Errorf("object of the deletion: got %+v", deleted)
	}
	placements.expect("put shop/web", "delete shop/web")

	// After reconnecting, a watcher receives what it missed.
	for _, from := range []int{0, 1, 3} {
		want := []string{"put shop/web", "delete eu-1", "delete shop/web"}[min(from, 3):]
		s.watch("/v1/watch", "Last-Event-ID", events[from].id).expect(want...)
		s.watch("/v1/watch?resource_version=" + events[from].data.ResourceVersion).expect(want...)
	}
}

// TestWatchFromNowOn begins a watch while the log of events is behind the fleet.
func TestWatchFromNowOn(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/before", `{"spec":{}}`)
	behind := &watches{fleet: s.fleet, events: newEventLog(1)}
	_, since, err := behind.watchStart(t.Context(), &watchInput{})
	if want := s.fleet.Snapshot().Revision(); err != nil || since != want {
		t.Errorf("the watch begins after revision %d (%v), want %d", since, err, want)
	}
}

// TestWatchResumesAsTheServerStarts resumes a watch before the log of events has begun to follow the fleet.
func TestWatchResumesAsTheServerStarts(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/before", `{"spec":{}}`)
	at := s.fleet.Snapshot()
	starting := &watches{fleet: s.fleet, events: newEventLog(1), waits: s.watches.waits}
	time.AfterFunc(time.Millisecond, func() { starting.events.start(at.Revision(), at) })
	version := strconv.FormatInt(at.Revision(), 10)
	if _, since, err := starting.watchStart(t.Context(), &watchInput{ResourceVersion: version}); err != nil || since != at.Revision() {
		t.Errorf("the watch begins after revision %d (%v), want %s", since, err, version)
	}
}

func TestWatchRejects(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/clusters/eu-1", `{"spec":{}}`)
	for path, want := range map[string]int{
		"/v1/watch?kinds=nothing":            422,
		"/v1/watch?kinds=cluster,":           422,
		"/v1/watch?resource_version=x":       422,
		"/v1/watch?resource_version=1":       410,
		"/v1/watch?resource_version=9999999": 410,
	} {
		if a := s.do(http.MethodGet, path, ""); a.StatusCode != want {
			t.Errorf("%s: got %d %s, want %d", path, a.StatusCode, a.body, want)
		}
	}
	if a := s.do(http.MethodGet, "/v1/watch", "", "Last-Event-ID", "x"); a.StatusCode != 422 {
		t.Errorf("invalid Last-Event-ID: got %d, want 422", a.StatusCode)
	}
}

func TestEventLogForgetsTheOldest(t *testing.T) {
	log := newEventLog(3)
	if _, ok := log.after(0); ok {
		t.Error("a log that has not started knows earlier revisions")
	}
	log.start(10, nil)
	for revision := int64(11); revision <= 20; revision++ {
		log.append(fleet.Batch{Revision: revision, Changes: []fleet.Change{{Key: api.Key{Name: fmt.Sprint(revision)}}}})
	}
	for revision, want := range map[int64]bool{10: false, 16: false, 17: true, 19: true, 20: true, 25: true} {
		at, ok := log.after(revision)
		if ok != want {
			t.Errorf("after(%d): known %t, want %t", revision, ok, want)
			continue
		}
		for next := revision + 1; ok && next <= 20; next++ {
			at = at.next
			if at.revision != next || at.changes[0].Key.Name != fmt.Sprint(next) {
				t.Errorf("after(%d): revision %d, want %d", revision, at.revision, next)
			}
		}
	}
}

// A watch that moves here from another server may have received a part of what this server publishes as one batch. It
// receives the rest. If objects were created or deleted in the batch, the rest cannot be determined, and the watch
// starts over.
func TestWatchResumesWithinAPublication(t *testing.T) {
	s := startServer(t)
	log := newEventLog(10)
	log.start(10, s.fleet.Snapshot())
	entry := func(name string) *fleet.Entry {
		return &fleet.Entry{Object: &api.Cluster{Kind: api.KindCluster, Metadata: api.Metadata{Name: name}}}
	}
	change := func(name string, revision int64, old, now *fleet.Entry) fleet.Change {
		return fleet.Change{Key: api.Key{Kind: api.KindCluster, Name: name}, Old: old, New: now, Revision: revision}
	}
	log.append(fleet.Batch{Revision: 14, Snapshot: s.fleet.Snapshot(), Changes: []fleet.Change{
		change("a", 11, nil, entry("a")), change("b", 12, entry("b"), nil), change("c", 13, entry("c"), entry("c")), change("d", 14, nil, entry("d")),
	}})
	log.append(fleet.Batch{Revision: 17, Snapshot: s.fleet.Snapshot(), Changes: []fleet.Change{change("e", 17, nil, entry("e"))}, Passed: true})
	log.append(fleet.Batch{Revision: 20, Snapshot: s.fleet.Snapshot(), Changes: []fleet.Change{change("f", 0, nil, entry("f"))}, Reset: true})
	for since, want := range map[int64]string{
		10: "put a 10, delete b 10, put c 10, put d 14", 11: "delete b 11, put c 11, put d 14", 12: "put c 12, put d 14", 13: "put d 14",
		14: "put e 17", 15: "unknown", 16: "unknown", 17: "put f 20", 19: "unknown", 20: "",
	} {
		at, ok := log.after(since)
		if !ok {
			if want != "unknown" {
				t.Errorf("after %d: unknown, want %s", since, want)
			}
			continue
		}
		recorder := &deadlineRecorder{httptest.NewRecorder()}
		w := &watchStream{watches: s.watches, kinds: map[api.Kind]bool{api.KindCluster: true}, who: auth.Identity{Role: auth.RoleAdmin}, w: recorder, control: http.NewResponseController(recorder)}
		if at.next != nil {
			if err := w.write(at.next, since); err != nil {
				t.Fatal(err)
			}
		}
		reader := &watchReader{t: t, lines: bufio.NewScanner(recorder.Body)}
		var told []string
		for e, ok := reader.next(); ok; e, ok = reader.next() {
			told = append(told, e.String()+" "+e.data.ResourceVersion)
		}
		if got := strings.Join(told, ", "); got != want {
			t.Errorf("after %d: %s, want %s", since, got, want)
		}
	}
}

// The previous version is kept only if a watcher may have to be told that the object disappears for them: if its spec
// has changed.
func TestEventLogDropsWhatNoSubscriberReceives(t *testing.T) {
	log := newEventLog(10)
	log.start(10, nil)
	version := func(spec, status int64) *fleet.Entry {
		return &fleet.Entry{Object: &api.Placement{}, SpecRevision: spec, StatusRevision: status}
	}
	batch := fleet.Batch{Revision: 12, Changes: []fleet.Change{
		{Key: api.Key{Name: "decided"}, Old: version(5, 6), New: version(5, 12)},
		{Key: api.Key{Name: "written"}, Old: version(5, 6), New: version(12, 6)},
		{Key: api.Key{Name: "gone"}, Old: version(5, 6)},
		{Key: api.Key{Name: "new"}, New: version(12, 0)},
	}}
	log.append(batch)
	for i, want := range []bool{false, true, true, false} {
		if c := log.last.changes[i]; (c.Old != nil) != want || c.New != batch.Changes[i].New {
			t.Errorf("%s: got %+v", c.Key.Name, c)
		}
	}
	if batch.Changes[0].Old == nil {
		t.Error("the log modified a change that other readers use")
	}
}

func TestEventLogIsBoundedByItsChanges(t *testing.T) {
	log := newEventLog(1000)
	log.start(10, nil)
	log.append(fleet.Batch{Revision: 11, Changes: make([]fleet.Change, keepChanges/2)})
	log.append(fleet.Batch{Revision: 12, Changes: make([]fleet.Change, keepChanges/2)})
	if _, ok := log.after(10); !ok {
		t.Error("revision 10 was forgotten too early")
	}
	log.append(fleet.Batch{Revision: 13, Changes: make([]fleet.Change, 1)})
	if _, ok := log.after(10); ok || log.changes != keepChanges/2+1 {
		t.Errorf("%d changes are stored", log.changes)
	}
	log.append(fleet.Batch{Revision: 14, Changes: make([]fleet.Change, keepChanges+1)})
	if _, ok := log.after(13); ok || log.length != 0 || log.changes != 0 {
		t.Errorf("%d publications with %d changes are stored, want none", log.length, log.changes)
	}
	log.append(fleet.Batch{Revision: 15, Changes: make([]fleet.Change, 1)})
	if at, ok := log.after(14); !ok || at.next.revision != 15 {
		t.Error("the log does not continue after an oversized publication")
	}
}

// deadlineRecorder is a recorder that accepts deadlines.
type deadlineRecorder struct{ *httptest.ResponseRecorder }

func (deadlineRecorder) SetWriteDeadline(time.Time) error { return nil }

// If the stream breaks off in the middle of a batch, the whole batch must be sent again. So only its last event
// advances the position of the reader.
func TestOnlyTheLastEventOfAPieceCarriesItsRevision(t *testing.T) {
	s := startServer(t)
	w := &watchStream{watches: s.watches, kinds: map[api.Kind]bool{api.KindCluster: true}, who: auth.Identity{Role: auth.RoleAdmin}}
	recorder := &deadlineRecorder{httptest.NewRecorder()}
	w.w, w.control = recorder, http.NewResponseController(recorder)
	entry := func(name string) *fleet.Entry {
		return &fleet.Entry{Object: &api.Cluster{Kind: api.KindCluster, Metadata: api.Metadata{Name: name}}}
	}
	err := w.write(&event{revision: 42, from: 41, changes: []fleet.Change{
		{Key: api.Key{Kind: api.KindCluster, Name: "a"}, New: entry("a")},
		{Key: api.Key{Kind: api.KindPlacement, Name: "p"}, New: entry("p")},
		{Key: api.Key{Kind: api.KindCluster, Name: "b"}, New: entry("b")},
		{Key: api.Key{Kind: api.KindPlacement, Name: "q"}, New: entry("q")},
	}}, 41)
	reader := &watchReader{t: t, lines: bufio.NewScanner(recorder.Body)}
	if err != nil {
		t.Fatal(err)
	}
	events := reader.expect("put a", "put b")
	if events[0].id != "" || events[0].data.ResourceVersion != "41" || events[1].id != "42" || events[1].data.ResourceVersion != "42" {
		t.Errorf("ids %q and %q, versions %s and %s", events[0].id, events[1].id, events[0].data.ResourceVersion, events[1].data.ResourceVersion)
	}
}

func TestShutdownWakesAllWaiters(t *testing.T) {
	s := startServer(t)
	path, placementKey := "/v1/namespaces/shop/placements/web", api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	version := decodeAs[api.Placement](t, s.mustPut(path, `{"spec":{}}`)).Metadata.ResourceVersion
	waiting := make(chan struct{}, 1)
	s.decisions.mu.Lock()
	s.decisions.settle = func(ctx context.Context, _ int64) error { waiting <- struct{}{}; <-ctx.Done(); return ctx.Err() }
	s.decisions.mu.Unlock()
	watch := s.watch("/v1/watch?resource_version=" + version).started()
	polled, written := make(chan answer, 1), make(chan answer, 1)
	for ch, request := range map[chan answer][]string{
		polled:  {http.MethodGet, path + "?wait=60s&resource_version=" + version, ""},
		written: {http.MethodPut, "/v1/clusters/eu-1?wait=60s", `{"spec":{}}`},
	} {
		go func() {
			a, err := s.try(context.Background(), request[0], request[1], request[2])
			if err != nil {
				t.Error(err)
			}
			ch <- a
		}()
	}
	<-waiting
	eventually.True(t, "the poll has arrived", func() bool { return s.polls(placementKey) == 1 })
	started := time.Now()
	if err := s.stopRun(); err != nil {
		t.Errorf("run: %v", err)
	}
	if took := time.Since(started); took > 50*time.Second { // they would wait for 60 s
		t.Errorf("the shutdown took %s, want the watches closed at once", took)
	}
	if a := <-polled; a.StatusCode != 200 {
		t.Errorf("poll: %d", a.StatusCode)
	}
	if a := <-written; a.StatusCode != 201 {
		t.Errorf("write: %d", a.StatusCode)
	}
	for {
		e, more := watch.next()
		if !more {
			break
		}
		if e.String() != "put eu-1" {
			t.Errorf("event %q", e)
		}
	}
	if failed(s.status.checks()) == nil {
		t.Error("the server is still ready")
	}
}

func TestAChangeIsEncodedOnceForAllWhoSeeItAlike(t *testing.T) {
	log := newEventLog(10)
	e := &event{revision: 1}
	encoded := 0
	use := func(form string) {
		key := encodingKey{event: e, form: form}
		err := log.encoded.use(&watchStream{}, key, func() []byte { encoded++; return []byte(form) }, func(data []byte) error {
			if string(data) != form {
				t.Errorf("form %s: got %s", form, data)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	}
	log.encoded.enter()
	log.encoded.enter()
	for range 100 {
		use("admin")
		use("viewer of shop")
	}
	if encoded != 2 {
		t.Errorf("two forms were encoded %d times, want 2", encoded)
	}
	log.encoded.leave()
	use("admin")
	log.encoded.leave()
	if encoded != 2 || log.encoded.bytes != 0 || log.encoded.order.Len() != 0 || len(log.encoded.pieces) != 0 {
		t.Errorf("without watches, %d bytes in %d pieces are stored", log.encoded.bytes, log.encoded.order.Len())
	}
}

// The memory of all watches together is limited: the one that is still sending the oldest change is closed.
func TestSlowestWatcherIsCutOff(t *testing.T) {
	s := startServer(t)
	log := newEventLog(10)
	log.encoded.enter()
	recorder := &deadlineRecorder{httptest.NewRecorder()}
	slow := &watchStream{watches: s.watches, control: http.NewResponseController(recorder)}
	piece := func() []byte { return make([]byte, maxEncoded/4) }
	err := log.encoded.use(slow, encodingKey{change: 0}, piece, func([]byte) error {
		for i := range 5 {
			if err := log.encoded.use(&watchStream{}, encodingKey{change: i + 1}, piece, func([]byte) error { return nil }); err != nil {
				t.Error(err)
			}
			if log.encoded.bytes > maxEncoded {
				t.Errorf("%d bytes are stored, want at most maxEncoded", log.encoded.bytes)
			}
		}
		return slow.extend()
	})
	if !errors.Is(err, errTooSlow) {
		t.Errorf("the reader of the oldest event continues: %v", err)
	}
	if got := valueOf(t, s.metrics.watchersCut); got != 1 {
		t.Errorf("%v watches were cut off, want 1", got)
	}
}

// Who is too far behind is told from where to go on, and can.
func TestAWatchThatIsTooFarBehindEndsWithItsRevision(t *testing.T) {
	t.Parallel()
	s := startServer(t)
	s.mustPut("/v1/clusters/before?wait=0s", `{"spec":{}}`)
	at := s.watches.events.newest()
	region := strings.Repeat("x", 900_000)
	for i := range maxBehind/len(region) + 2 {
		s.mustPut("/v1/clusters/big", fmt.Sprintf(`{"spec":{"region":"%s%d"}}`, region, i))
	}
	s.mustPut("/v1/clusters/last", `{"spec":{}}`)
	who := auth.Identity{Role: auth.RoleAdmin}
	recorder := &deadlineRecorder{httptest.NewRecorder()}
	stream := &watchStream{
		watches: s.watches, kinds: map[api.Kind]bool{api.KindCluster: true}, who: who, form: who.Form(),
		w: recorder, control: http.NewResponseController(recorder),
	}
	<-at.ready
	// It was up to date when it started, and has fallen behind since.
	upToDate := &event{revision: at.revision, next: at.next, ready: at.ready, position: s.watches.events.newest().position}
	stream.run(t.Context(), upToDate, at.revision)
	body := recorder.Body.String()
	if !strings.Contains(body, "event: error\n") || !strings.Contains(body, `"status":410`) || !strings.Contains(body, "\nid: "+fmt.Sprint(at.revision)+"\n") {
		t.Fatalf("the stream ends with %.500q", body)
	}
	var last sse
	reader := s.watch(fmt.Sprintf("/v1/watch?resource_version=%d", at.revision))
	reader.lines.Buffer(nil, 4<<20)
	for last.data.Object.Metadata.Name != "last" {
		var more bool
		if last, more = reader.next(); !more {
			t.Fatal("the other watch ended, too")
		}
	}
}
