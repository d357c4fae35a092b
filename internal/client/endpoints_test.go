package client_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/faketime"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/proxytest"
)

// store is shared by several servers. It holds one cluster and counts the writes.
type store struct {
	mu      sync.Mutex
	cluster *api.Cluster
	version int
	writes  int
}

func (s *store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch r.Method {
	case http.MethodPut:
		tag := fmt.Sprintf("%q", fmt.Sprint(s.version))
		if match := r.Header.Get("If-Match"); r.Header.Get("If-None-Match") == "*" && s.cluster != nil || match != "" && (s.cluster == nil || match != tag) {
			problem(w, api.Problem{Title: "Precondition Failed", Status: http.StatusPreconditionFailed})
			return
		}
		written := &api.Cluster{}
		_ = json.NewDecoder(r.Body).Decode(written) // an error shows in the response
		s.version++
		s.writes++
		written.Metadata.ResourceVersion = fmt.Sprint(s.version)
		s.cluster = written
		answer(w, http.StatusOK, s.cluster)
	case http.MethodDelete:
		if s.cluster == nil {
			problem(w, api.Problem{Title: "Not Found", Status: http.StatusNotFound})
			return
		}
		s.cluster = nil
		s.writes++
		w.WriteHeader(http.StatusNoContent)
	case http.MethodPost:
		s.writes++
		answer(w, http.StatusOK, east())
	default:
		if s.cluster == nil {
			problem(w, api.Problem{Title: "Not Found", Status: http.StatusNotFound})
			return
		}
		answer(w, http.StatusOK, s.cluster)
	}
}

// written returns the number of writes.
func (s *store) written() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.writes
}

// gone lists the ways in which a client can lose a server. The client gets what handler does instead of a response.
var gone = []struct {
	name string
	// carriesOut says that the server carries out the request before it fails.
	carriesOut bool
	handle     func(w http.ResponseWriter, r *http.Request, server http.Handler)
}{
	{"refuses connections", false, nil},
	{"is stopping", false, func(w http.ResponseWriter, _ *http.Request, _ http.Handler) {
		problem(w, api.Problem{Title: "Service Unavailable", Status: http.StatusServiceUnavailable})
	}},
	{"cuts the connection before it does anything", false, func(http.ResponseWriter, *http.Request, http.Handler) { panic(http.ErrAbortHandler) }},
	{"cuts the connection before the answer", true, func(_ http.ResponseWriter, r *http.Request, server http.Handler) {
		server.ServeHTTP(httptest.NewRecorder(), r)
		panic(http.ErrAbortHandler)
	}},
	{"cuts the connection within the answer", true, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		answered := httptest.NewRecorder()
		server.ServeHTTP(answered, r)
		w.Header().Set("Content-Length", fmt.Sprint(answered.Body.Len()+1))
		w.WriteHeader(answered.Code)
		_, _ = w.Write(answered.Body.Bytes())
		panic(http.ErrAbortHandler)
	}},
	{"never answers", true, func(_ http.ResponseWriter, r *http.Request, server http.Handler) {
		server.ServeHTTP(httptest.NewRecorder(), r)
		<-r.Context().Done()
	}},
	{"does not know whether it has written", true, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		server.ServeHTTP(httptest.NewRecorder(), r)
		problem(w, api.Problem{Type: api.ProblemUnconfirmed, Title: "Service Unavailable", Status: http.StatusServiceUnavailable})
	}},
	{"is behind a proxy that lost it", true, func(w http.ResponseWriter, r *http.Request, server http.Handler) {
		server.ServeHTTP(httptest.NewRecorder(), r)
		w.WriteHeader(http.StatusBadGateway)
	}},
}

// endpointOf starts a server for the length of the test. With a nil handler, nothing listens on the address.
func endpointOf(t *testing.T, handler http.Handler) string {
	t.Helper()
	if handler == nil {
		return "http://" + proxytest.FreeAddress(t)
	}
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// However one server fails, a client with several endpoints completes its calls through the next server, and nothing is
// written twice.
func TestNextServer(t *testing.T) {
	present := func(s *store) { s.cluster, s.version = east(), 7; s.cluster.Metadata.ResourceVersion = "7" }
	changed := east()
	changed.Spec.Zones = []string{"a"}
	check := func(t *testing.T, s *store, endpoints []string, do func(*client.Client) error, writes int, deleted bool, through http.RoundTripper) {
		t.Helper()
		var attempts []client.Attempt
		c, err := client.New(client.Options{
			Endpoints: endpoints, MaxRetries: -1, GiveUp: true,
			RequestTimeout: eventually.Limit,
			Observe:        func(_ context.Context, a client.Attempt) { attempts = append(attempts, a) },
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		if through != nil {
			client.Through(c, through)
		}
		if err := do(c); err != nil {
			t.Fatal(err)
		}
		if n := s.written(); n != writes {
			t.Errorf("%d writes, want %d", n, writes)
		}
		if !deleted && c.Endpoint() != endpoints[1] {
			t.Errorf("the client still uses %s", c.Endpoint())
		}
		used := len(attempts)
		_ = get(c) // finds nothing after a deletion
		for _, a := range attempts[used:] {
			if a.Endpoint != endpoints[1] {
				t.Errorf("the next request went to %s", a.Endpoint)
			}
		}
	}
	for _, operation := range []struct {
		name   string
		before func(*store)
		do     func(*client.Client) error
		writes int
	}{
		{"read", present, get, 0},
		{"create", func(*store) {}, func(c *client.Client) error {
			_, err := c.Put(context.Background(), changed, client.PutOptions{Create: true, Wait: new(time.Duration)})
			return err
		}, 1},
		{"update", present, func(c *client.Client) error {
			_, err := c.Put(context.Background(), changed, client.PutOptions{IfMatch: "7", Wait: new(time.Duration)})
			return err
		}, 1},
		{"delete", present, func(c *client.Client) error { return c.Delete(context.Background(), eastKey) }, 1},
	} {
		for _, way := range gone {
			t.Run(operation.name+", the first "+way.name, func(t *testing.T) {
				t.Parallel() // one case waits
				s := &store{}
				operation.before(s)
				var broken http.Handler
				if way.handle != nil {
					broken = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { way.handle(w, r, s) })
				}
				if way.name != "never answers" {
					check(t, s, []string{endpointOf(t, broken), endpointOf(t, s)}, operation.do, operation.writes, operation.name == "delete", nil)
					return
				}
				// The attempt at the first one ends when its time is over, and the next one has as much time again.
				synctest.Test(t, func(t *testing.T) {
					both := http.NewServeMux()
					both.Handle("first.test/", broken)
					both.Handle("second.test/", s)
					check(t, s, []string{"http://first.test", "http://second.test"}, operation.do, operation.writes, operation.name == "delete", faketime.Serve(t, both))
				})
			})
		}
	}
}

// A request that must not be carried out twice is not repeated if it may have arrived.
func TestNoSecondReschedule(t *testing.T) {
	for _, way := range gone {
		t.Run(way.name, func(t *testing.T) {
			s := &store{}
			within, pass := faketime.Deadline(t)
			ctx, cancel := context.WithTimeout(within, eventually.Limit)
			defer cancel()
			done := http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				s.ServeHTTP(w, r)
				if way.name == "never answers" { // and the caller waits no longer
					pass()
				}
			})
			var broken http.Handler
			if way.handle != nil {
				broken = http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { way.handle(w, r, done) })
			}
			c, err := client.New(client.Options{Endpoints: []string{endpointOf(t, broken), endpointOf(t, s)}, MaxRetries: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			_, err = c.Reschedule(ctx, api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"})
			if n := s.written(); n > 1 {
				t.Errorf("written %d times (%v), want at most once", n, err)
			}
			if undone := way.name == "refuses connections" || way.name == "is stopping"; undone && (err != nil || s.written() != 1) {
				t.Errorf("not written by the next server: %v", err)
			}
		})
	}
}

// If no server can be reached, the error says what is wrong with each.
func TestAllServersGone(t *testing.T) {
	first, second := endpointOf(t, nil), endpointOf(t, nil)
	c, err := client.New(client.Options{Endpoints: []string{first, second}, MaxRetries: 1, GiveUp: true})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for _, ask := range []func() error{func() error { _, err := c.Connect(t.Context()); return err }, func() error { return get(c) }} {
		var unreachable *client.UnreachableError
		err := ask()
		if !errors.As(err, &unreachable) || unreachable.Endpoint != first+", "+second {
			t.Fatalf("unexpected error %v", err)
		}
		for _, endpoint := range []string{first, second} {
			if !strings.Contains(err.Error(), endpoint+": dial tcp") {
				t.Errorf("the error does not say why %s did not respond: %v", endpoint, err)
			}
		}
	}
	var lost *client.LostError
	if err := get(c); !errors.As(err, &lost) {
		t.Errorf("the client continues: %v", err)
	}
}

// A caller that gives up before an attempt ends is not held by a server that says
// nothing: its next call goes to another one.
func TestImpatientCallerLeavesASilentServer(t *testing.T) {
	ctx, pass := faketime.Deadline(t)
	silent := endpointOf(t, http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) { pass(); <-r.Context().Done() }))
	c, err := client.New(client.Options{Endpoints: []string{silent, endpointOf(t, &store{cluster: east()})}, RequestTimeout: time.Hour})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Get(ctx, api.KeyOf(east())); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("server that does not respond: %v", err)
	}
	if err := get(c); err != nil {
		t.Errorf("next call: %v", err)
	}
}

// A server that reports that it is busy is asked again after the delay that it requests.
func TestBusyServerOfSeveralIsAskedAgain(t *testing.T) {
	var asked []string
	endpoint := func(name string) string {
		return endpointOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			if asked = append(asked, name); len(asked) == 1 {
				w.Header().Set("Retry-After", "0")
				problem(w, api.Problem{Status: http.StatusTooManyRequests, Title: "busy"})
				return
			}
			answer(w, http.StatusOK, east())
		}))
	}
	c, err := client.New(client.Options{Endpoints: []string{endpoint("first"), endpoint("second")}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := get(c); err != nil || !slices.Equal(asked, []string{"first", "first"}) {
		t.Errorf("requests to %v, error %v", asked, err)
	}
}

// The client follows a server's redirects.
func TestRedirectionIsFollowed(t *testing.T) {
	to := endpointOf(t, http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { answer(w, http.StatusOK, east()) }))
	from := endpointOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, to+r.URL.Path, http.StatusTemporaryRedirect)
	}))
	c, err := client.New(client.Options{Endpoint: from})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := get(c); err != nil {
		t.Error(err)
	}
}

// A server that cannot reach the store shows what it knew. A client with several endpoints believes it only if no other
// one knows more.
func TestOldReads(t *testing.T) {
	const old = "3600000" // an hour, in milliseconds
	for _, test := range []struct {
		name string
		ages []string // of the servers' responses; "" refuses connections
		has  []bool   // which servers have the object
		want int      // status of an error; 0 = none
		// asked is how often each server is asked for two reads.
		asked []int
	}{
		{"the first one is old", []string{old, "2", "2"}, []bool{false, true, true}, 0, []int{1, 2, 0}},
		{"two are old", []string{old, old, "2"}, []bool{false, false, true}, 0, []int{1, 1, 2}},
		{"it is as old as usual", []string{"2500", "2", "2"}, []bool{true, true, true}, 0, []int{2, 0, 0}},
		{"all are old", []string{old, old, old}, []bool{true, true, true}, 0, []int{2, 2, 2}},
		{"all are old and do not have it", []string{old, old, old}, []bool{false, false, false}, 404, []int{2, 2, 2}},
		{"the others are gone", []string{old, "", ""}, []bool{true, false, false}, 0, []int{4, 0, 0}},
		{"a single one", []string{old}, []bool{true}, 0, []int{2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			asked := make([]int, len(test.ages)) // requests come one after the other
			var endpoints []string
			for i, age := range test.ages {
				if age == "" {
					endpoints = append(endpoints, endpointOf(t, nil))
					continue
				}
				s := &store{}
				if test.has[i] {
					s.cluster = east()
				}
				endpoints = append(endpoints, endpointOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					asked[i]++
					w.Header().Set(api.LastContactHeader, age)
					s.ServeHTTP(w, r)
				})))
			}
			c, err := client.New(client.Options{Endpoints: endpoints, MaxRetries: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer c.Close()
			for range 2 {
				if err := get(c); client.StatusOf(err) != test.want || (err == nil) != (test.want == 0) {
					t.Errorf("%v, want %d", err, test.want)
				}
			}
			if !slices.Equal(asked, test.asked) {
				t.Errorf("they were asked %v times, want %v", asked, test.asked)
			}
		})
	}
}

func TestWrongEndpoints(t *testing.T) {
	for want, opts := range map[string]client.Options{
		"not both":       {Endpoint: "http://a", Endpoints: []string{"http://b"}},
		"given twice":    {Endpoints: []string{"http://a", "http://a"}},
		"not an address": {Endpoints: []string{"http://a", ""}},
	} {
		if _, err := client.New(opts); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%+v: %v, want %q", opts, err, want)
		}
	}
}

// A response that breaks off is requested again, whether there is one server or several.
func TestAnswerThatBreaksOff(t *testing.T) {
	requests := 0
	c := serve(t, func(w http.ResponseWriter, _ *http.Request) {
		if requests++; requests == 1 {
			w.Header().Set("Content-Length", "100")
			_, _ = io.WriteString(w, `{"kind":"cluster",`)
			return
		}
		answer(w, http.StatusOK, east())
	})
	if err := get(c); err != nil || requests != 2 {
		t.Errorf("error %v after %d requests, want none after 2", err, requests)
	}
}

// The next server is asked at once, even if the last one requested a delay. The client waits only after it has asked
// all servers, and longer after each round.
func TestPauses(t *testing.T) {
	stopping := &http.Response{StatusCode: http.StatusServiceUnavailable, Header: http.Header{"Retry-After": {"7"}}}
	busy := &http.Response{StatusCode: http.StatusTooManyRequests, Header: http.Header{"Retry-After": {"7"}}}
	for _, test := range []struct {
		name    string
		servers int
		answer  *http.Response
		want    []time.Duration
	}{
		{"one server", 1, nil, []time.Duration{200 * time.Millisecond, 400 * time.Millisecond, 800 * time.Millisecond}},
		{"one server that is stopping", 1, stopping, []time.Duration{7 * time.Second, 7 * time.Second}},
		{"three servers", 3, nil, []time.Duration{0, 0, 200 * time.Millisecond, 0, 0, 400 * time.Millisecond}},
		{"three servers that are stopping", 3, stopping, []time.Duration{0, 0, 7 * time.Second, 0, 0, 7 * time.Second}},
		{"three servers that are busy", 3, busy, []time.Duration{7 * time.Second, 7 * time.Second}},
	} {
		for attempt, want := range test.want {
			if got := client.Pause(test.servers, attempt, test.answer); got != want {
				t.Errorf("%s: pause %[3]s after attempt %[2]d, want %[4]s", test.name, attempt, got, want)
			}
		}
	}
}
