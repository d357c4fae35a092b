package kubernetes

import (
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"log"
	"maps"
	"net"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
)

// object is what the test API server stores.
type object interface {
	runtime.Object
	metav1.Object
}

// change is one event of a watch.
type change struct {
	Type    string          `json:"type"`
	Object  json.RawMessage `json:"object"`
	version int64
}

// collection contains the objects under one path.
type collection struct {
	kind, apiVersion string
	objects          map[string]object
	history          []change
	compacted        int64 // history up to this version is forgotten
	lists, watches   int   // number of requests answered
	largest          int   // largest page
	status           int   // status of every response; 0 = normal
	pages            map[string][]object
	cut              chan struct{} // closed to end the watches
	hang             bool
	expirePages      int // number of further pages that fail with 410
}

// apiServer implements the watched part of the Kubernetes API, over in-memory connections.
type apiServer struct {
	t        *testing.T
	server   *http.Server
	listener *pipes
	down     atomic.Bool // refuses connections

	mu          sync.Mutex
	version     int64
	readyz      int  // status; -1 = hangs
	hangAll     bool // no request is answered
	token       string
	collections map[string]*collection
	types       map[string][]string // kinds by API version
	stale       []string            // API versions that cannot be read
	legacy      bool                // no aggregated discovery
	redirect    string
	open        map[net.Conn]bool
	slow        time.Duration  // duration of a list
	listing     int            // lists in progress
	most        int            // maximum number of concurrent lists
	requests    map[string]int // by path
	tokens      map[string]int // requests by token
	moved       chan struct{}  // closed and replaced at every change
	stopped     chan struct{}
}

const (
	nodesPath       = "/api/v1/nodes"
	podsPath        = "/api/v1/pods"
	definitionsPath = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
	servicesPath    = "/apis/apiregistration.k8s.io/v1/apiservices"
)

// newAPIServer starts a server that runs until stop is called.
func newAPIServer(t *testing.T) *apiServer {
	s := &apiServer{
		t: t, listener: &pipes{accept: make(chan net.Conn), closed: make(chan struct{})},
		version: 100, readyz: http.StatusOK, moved: make(chan struct{}), stopped: make(chan struct{}), open: map[net.Conn]bool{}, requests: map[string]int{}, tokens: map[string]int{},
		types: map[string][]string{"v1": {"Node", "Pod"}, "apps/v1": {"Deployment"}},
		collections: map[string]*collection{
			nodesPath: {kind: "NodeList", apiVersion: "v1"}, podsPath: {kind: "PodList", apiVersion: "v1"},
			definitionsPath: {kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1"},
			servicesPath:    {kind: "PartialObjectMetadataList", apiVersion: "meta.k8s.io/v1"},
		},
	}
	for _, c := range s.collections {
		c.objects, c.pages, c.cut = map[string]object{}, map[string][]object{}, make(chan struct{})
	}
	s.server = &http.Server{Handler: s, TLSConfig: &tls.Config{Certificates: []tls.Certificate{identity}}, ErrorLog: log.New(io.Discard, "", 0), ConnState: func(c net.Conn, state http.ConnState) {
		s.mu.Lock()
		defer s.mu.Unlock()
		if state == http.StateNew {
			s.open[c] = true
			if s.down.Load() { // the request was in progress when the server started to refuse
				_ = c.Close()
			}
		}
		if state == http.StateClosed {
			delete(s.open, c)
		}
	}}
	go func() { _ = s.server.ServeTLS(s.listener, "", "") }()
	return s
}

func (s *apiServer) stop() {
	close(s.stopped)
	_ = s.server.Close()
}

// refuse makes the server refuse connections, and closes existing ones.
func (s *apiServer) refuse(refuse bool) {
	s.down.Store(refuse)
	s.mu.Lock()
	defer s.mu.Unlock()
	for c := range s.open {
		_ = c.Close()
	}
}

// do changes the state of the server.
func (s *apiServer) do(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	f()
	close(s.moved)
	s.moved = make(chan struct{})
}

func (s *apiServer) apply(path, verb string, o object) {
	s.do(func() {
		c := s.collections[path]
		s.version++
		o.SetResourceVersion(strconv.FormatInt(s.version, 10))
		if o.GetUID() == "" {
			o.SetUID(types.UID("uid-of-" + o.GetName()))
		}
		if verb == "DELETED" {
			delete(c.objects, o.GetName())
		} else {
			c.objects[o.GetName()] = o
		}
		data, err := json.Marshal(o)
		if err != nil {
			s.t.Error(err)
		}
		c.history = append(c.history, change{verb, data, s.version})
	})
}

func (s *apiServer) put(objects ...object) {
	for _, o := range objects {
		path := pathOf(o)
		verb := "ADDED"
		s.mu.Lock()
		if s.collections[path].objects[o.GetName()] != nil {
			verb = "MODIFIED"
		}
		s.mu.Unlock()
		s.apply(path, verb, o)
	}
}

func (s *apiServer) remove(o object) { s.apply(pathOf(o), "DELETED", o) }

func pathOf(o object) string {
	switch o.(type) {
	case *corev1.Node:
		return nodesPath
	case *corev1.Pod:
		return podsPath
	}
	return definitionsPath
}

// compact drops the history, as etcd does after some minutes.
func (s *apiServer) compact() {
	s.do(func() {
		for _, c := range s.collections {
			c.compacted, c.history = s.version, nil
		}
	})
}

// bookmark sends a bookmark to the watches.
func (s *apiServer) bookmark(path string) {
	s.do(func() {
		s.version++
		c := s.collections[path]
		kind := strings.TrimSuffix(c.kind, "List")
		data := fmt.Sprintf(`{"kind":%q,"apiVersion":%q,"metadata":{"resourceVersion":"%d"}}`, kind, c.apiVersion, s.version)
		c.history = append(c.history, change{"BOOKMARK", json.RawMessage(data), s.version})
	})
}

// cutWatches ends every watch abruptly.
func (s *apiServer) cutWatches() {
	s.do(func() {
		for _, c := range s.collections {
			close(c.cut)
			c.cut = make(chan struct{})
		}
	})
}

func (s *apiServer) counted(path string) (lists, watches, largest int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	c := s.collections[path]
	return c.lists, c.watches, c.largest
}

func (s *apiServer) asked(path string) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.requests[path]
}

// ServeHTTP implements http.Handler.
func (s *apiServer) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	s.requests[r.URL.Path]++
	token := strings.TrimPrefix(r.Header.Get("Authorization"), "Bearer ")
	s.tokens[token]++
	c := s.collections[r.URL.Path]
	hang := s.hangAll || s.readyz == -1 && r.URL.Path == "/readyz" || c != nil && c.hang
	wanted, readyz, redirect := s.token, s.readyz, s.redirect
	var cut chan struct{} // taken at the same time, so that a later cut ends this watch
	if c != nil {
		cut = c.cut
	}
	s.mu.Unlock()
	switch {
	case hang:
		select {
		case <-r.Context().Done():
		case <-s.stopped:
		}
	case redirect != "":
		http.Redirect(w, r, redirect+r.URL.Path, http.StatusFound)
	case wanted != "" && token != wanted:
		refuse(w, http.StatusUnauthorized, "Unauthorized")
	case r.URL.Path == "/readyz":
		w.WriteHeader(readyz)
	case r.URL.Path == "/version":
		answer(w, map[string]string{"major": "1", "minor": "37", "gitVersion": "v1.37.1"})
	case c != nil && r.URL.Query().Get("watch") != "":
		s.watch(w, r, c, cut)
	case c != nil:
		s.list(w, r, c)
	default:
		s.discover(w, r)
	}
}

func answer(w http.ResponseWriter, v any) {
	w.Header().Set("Content-Type", "application/json")
	_ = json.NewEncoder(w).Encode(v)
}

func refuse(w http.ResponseWriter, code int, reason metav1.StatusReason) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(code)
	_ = json.NewEncoder(w).Encode(metav1.Status{
		TypeMeta: metav1.TypeMeta{Kind: "Status", APIVersion: "v1"}, Status: metav1.StatusFailure, Code: int32(code), Reason: reason, Message: "no",
	})
}

func (s *apiServer) list(w http.ResponseWriter, r *http.Request, c *collection) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.listing++
	s.most = max(s.most, s.listing)
	slow := s.slow
	s.mu.Unlock()
	faketime.Sleep(slow)
	s.mu.Lock()
	s.listing--
	if c.status != 0 {
		refuse(w, c.status, reasonOf(c.status))
		return
	}
	limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
	if err != nil {
		s.t.Errorf("list without a limit: %s", r.URL)
	}
	next := r.URL.Query().Get("continue")
	rest, ok := c.pages[next]
	if next == "" {
		for _, name := range slices.Sorted(maps.Keys(c.objects)) {
			rest = append(rest, c.objects[name])
		}
	} else if !ok || c.expirePages > 0 {
		c.expirePages--
		refuse(w, http.StatusGone, metav1.StatusReasonExpired)
		return
	}
	c.lists++
	page := rest[:min(len(rest), limit)]
	c.largest = max(c.largest, len(page))
	list := metav1.ListMeta{ResourceVersion: strconv.FormatInt(s.version, 10)}
	if len(rest) > limit {
		list.Continue = fmt.Sprintf("%s-%d", list.ResourceVersion, len(rest))
		c.pages[list.Continue] = rest[limit:]
	}
	if page == nil {
		page = []object{}
	}
	answer(w, map[string]any{"kind": c.kind, "apiVersion": c.apiVersion, "metadata": list, "items": page})
}

func reasonOf(code int) metav1.StatusReason {
	switch code {
	case http.StatusForbidden:
		return metav1.StatusReasonForbidden
	case http.StatusUnauthorized:
		return metav1.StatusReasonUnauthorized
	}
	return metav1.StatusReasonInternalError
}

func (s *apiServer) watch(w http.ResponseWriter, r *http.Request, c *collection, cut <-chan struct{}) {
	from, err := strconv.ParseInt(r.URL.Query().Get("resourceVersion"), 10, 64)
	if err != nil {
		s.t.Errorf("watch without a resource version: %s", r.URL)
	}
	seconds, err := strconv.Atoi(r.URL.Query().Get("timeoutSeconds"))
	if err != nil {
		s.t.Errorf("watch without a timeout: %s", r.URL)
	}
	end := time.NewTimer(time.Duration(seconds) * time.Second)
	defer end.Stop()
	s.mu.Lock()
	status, compacted := c.status, c.compacted
	c.watches++
	s.mu.Unlock()
	if status != 0 {
		refuse(w, status, reasonOf(status))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(http.StatusOK)
	out := http.NewResponseController(w)
	_ = out.Flush()
	if from < compacted {
		_, _ = fmt.Fprintln(w, `{"type":"ERROR","object":{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"Expired","code":410,"message":"too old"}}`)
		return
	}
	for {
		s.mu.Lock()
		history, moved := slices.Clone(c.history), s.moved
		s.mu.Unlock()
		for _, change := range history {
			if change.version <= from {
				continue
			}
			from = change.version
			data, err := json.Marshal(change)
			if err != nil {
				s.t.Error(err)
			}
			if _, err := w.Write(append(data, '\n')); err != nil {
				return
			}
		}
		_ = out.Flush()
		select {
		case <-moved:
		case <-cut:
			panic(http.ErrAbortHandler)
		case <-end.C:
			return
		case <-r.Context().Done():
			return
		}
	}
}

// discover returns the API types, in the aggregated form or the old one.
func (s *apiServer) discover(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	groups := map[string][]string{}
	for _, version := range slices.Sorted(maps.Keys(s.types)) {
		group, _, found := strings.Cut(version, "/")
		if !found {
			group = ""
		}
		groups[group] = append(groups[group], version)
	}
	switch {
	case r.URL.Path == "/api" && s.legacy:
		answer(w, map[string]any{"kind": "APIVersions", "versions": []string{"v1"}})
	case r.URL.Path == "/apis" && s.legacy:
		var list []any
		for group, versions := range groups {
			if group == "" {
				continue
			}
			var of []any
			for _, version := range versions {
				of = append(of, map[string]string{"groupVersion": version, "version": version[strings.Index(version, "/")+1:]})
			}
			list = append(list, map[string]any{"name": group, "versions": of})
		}
		answer(w, map[string]any{"kind": "APIGroupList", "apiVersion": "v1", "groups": list})
	case r.URL.Path == "/api", r.URL.Path == "/apis":
		w.Header().Set("Content-Type", "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList")
		var list []any
		for group, versions := range groups {
			if (group == "") != (r.URL.Path == "/api") {
				continue
			}
			var of []any
			for _, version := range versions {
				var resources []any
				for _, kind := range s.types[version] {
					resources = append(resources, map[string]any{
						"resource": strings.ToLower(kind) + "s", "scope": "Namespaced", "verbs": []string{"get"},
						"responseKind": map[string]string{"kind": kind}, "subresources": []any{map[string]any{"subresource": "status", "responseKind": map[string]string{"kind": kind + "Status"}, "verbs": []string{"get"}}},
					})
				}
				freshness := "Current"
				if slices.Contains(s.stale, version) {
					freshness, resources = "Stale", nil
				}
				of = append(of, map[string]any{"version": version[strings.Index(version, "/")+1:], "resources": resources, "freshness": freshness})
			}
			list = append(list, map[string]any{"metadata": map[string]string{"name": group}, "versions": of})
		}
		_ = json.NewEncoder(w).Encode(map[string]any{"kind": "APIGroupDiscoveryList", "apiVersion": "apidiscovery.k8s.io/v2", "items": list})
	default:
		version := strings.TrimPrefix(strings.TrimPrefix(r.URL.Path, "/apis/"), "/api/")
		kinds, ok := s.types[version]
		if !ok || slices.Contains(s.stale, version) {
			refuse(w, http.StatusServiceUnavailable, metav1.StatusReasonServiceUnavailable)
			return
		}
		var resources []any
		for _, kind := range kinds {
			name := strings.ToLower(kind) + "s"
			resources = append(resources, map[string]any{"name": name, "kind": kind, "verbs": []string{"get"}}, map[string]any{"name": name + "/status", "kind": kind + "Status", "verbs": []string{"get"}})
		}
		answer(w, map[string]any{"kind": "APIResourceList", "groupVersion": version, "resources": resources})
	}
}

// pipes is a listener with in-memory connections.
type pipes struct {
	accept chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func (p *pipes) Accept() (net.Conn, error) {
	select {
	case c := <-p.accept:
		return c, nil
	case <-p.closed:
		return nil, net.ErrClosed
	}
}

func (p *pipes) Close() error {
	p.once.Do(func() { close(p.closed) })
	return nil
}

func (p *pipes) Addr() net.Addr { return &net.UnixAddr{Name: "pipes"} }

func (p *pipes) dial() (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case p.accept <- theirs:
		return ours, nil
	case <-p.closed:
		return nil, &net.OpError{Op: "dial", Net: "tcp", Err: syscall.ECONNREFUSED}
	}
}
