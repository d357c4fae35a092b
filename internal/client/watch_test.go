package client_test

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

const stream = ": hello\n\n" +
	"event: put\nid: 8\ndata: {\"type\":\"put\",\"resource_version\":\"8\",\ndata: \"object\":{\"kind\":\"cluster\",\"metadata\":{\"name\":\"east\"},\"spec\":{\"newer_than_us\":1}}}\n\n" +
	": still here\n\n" +
	"event: delete\nid: 9\ndata: {\"resource_version\":\"9\",\"object\":{\"kind\":\"cluster\",\"metadata\":{\"name\":\"east\"}}}\n\n"

func TestWatch(t *testing.T) {
	var query string
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		query = r.URL.RawQuery
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, stream)
	})
	var got []api.Event
	var last error
	for event, err := range c.Watch(t.Context(), "7", api.KindCluster, api.KindMetric) {
		if err != nil {
			last = err
			break
		}
		got = append(got, event)
	}
	if query != "kinds=cluster%2Cmetric&resource_version=7" {
		t.Errorf("unexpected query %s", query)
	}
	if !errors.Is(last, io.EOF) {
		t.Errorf("the stream ended with %v, want EOF", last)
	}
	if len(got) != 2 || got[0].Type != api.EventPut || got[1].Type != api.EventDelete || got[1].ResourceVersion != "9" || api.KeyOf(got[0].Object) != eastKey {
		t.Errorf("unexpected events %+v", got)
	}
}

// A watch of several servers goes on at the next one after the last whole piece that it
// was told, and tells nothing twice, however the next server divides its pieces.
func TestWatchGoesOnAtTheNextServer(t *testing.T) {
	put := func(name, version, id string) string {
		if id != "" {
			id = "id: " + id + "\n"
		}
		return fmt.Sprintf("event: put\n%sdata: {\"resource_version\":\"%s\",\"object\":{\"kind\":\"cluster\",\"metadata\":{\"name\":\"%s\",\"resource_version\":\"%s\"}}}\n\n", id, version, name, version)
	}
	var asked []string
	endpoint := func(name string, pieces ...string) string {
		connections := 0
		return endpointOf(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			asked = append(asked, name+" "+cmp.Or(r.Header.Get("Last-Event-ID"), r.URL.Query().Get("resource_version")))
			if connections++; connections > len(pieces) {
				problem(w, api.Problem{Title: "Gone", Status: http.StatusGone})
				return
			}
			w.Header().Set("Content-Type", "text/event-stream")
			_, _ = io.WriteString(w, pieces[connections-1])
			if name == "first" {
				_ = http.NewResponseController(w).Flush()
				panic(http.ErrAbortHandler)
			}
		}))
	}
	c, err := client.New(client.Options{MaxRetries: 1, Endpoints: []string{
		endpoint("first", ": alive\nid: 3\n\n"+put("a", "4", "4")+put("b", "5", "")+put("c", "6", "")),
		endpoint("second", ": alive\nid: 4\n\n"+put("b", "5", "5")+put("c", "6", "")+put("d", "7", "7")),
		endpoint("third", ": alive\nid: 7\n\n: alive\nid: 8\n\n"+put("e", "9", "9")),
	}})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var told []string
	for event, err := range c.Watch(t.Context(), "3", api.KindCluster) {
		if err != nil {
			if client.StatusOf(err) != http.StatusGone {
				t.Errorf("the watch ended with %v, want 410", err)
			}
			break
		}
		told = append(told, event.Object.Meta().Name)
	}
	if got := strings.Join(told, " "); got != "a b c d e" {
		t.Errorf("events %s, want a b c d e", got)
	}
	if got := strings.Join(asked, ", "); got != "first 3, second 4, third 7, first 9, second 9, third 9" {
		t.Errorf("unexpected requests %s", got)
	}
}

func TestWatchEnds(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	c := serve(t, func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.WriteString(w, stream)
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	})
	count := 0
	for _, err := range c.Watch(ctx, "") {
		if err != nil {
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error %v, want Canceled", err)
			}
			break
		}
		if count++; count == 2 {
			cancel()
		}
	}
	cancel()
}

func TestWatchFaults(t *testing.T) {
	for name, test := range map[string]struct{ body, want string }{
		"no JSON":       {"event: put\ndata: {\n\n", "cannot be read"},
		"no event":      {"event: party\ndata: {}\n\n", "not an event"},
		"a problem":     {"event: error\ndata: {\"title\":\"Gone\",\"status\":410}\n\n", "Gone"},
		"unknown kind":  {"event: put\ndata: {\"object\":{\"kind\":\"ship\"}}\n\n", "not a kind"},
		"a line of 8 K": {"data: " + strings.Repeat("x", 8192) + "\n", "too long"},
	} {
		t.Run(name, func(t *testing.T) {
			c := serve(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, test.body) },
				func(o *client.Options) { o.MaxResponseBytes = 4096 })
			for _, err := range c.Watch(t.Context(), "", api.KindCluster) {
				if err == nil || !strings.Contains(err.Error(), test.want) {
					t.Errorf("error %v, want %q", err, test.want)
				}
			}
		})
	}
}

func FuzzEventStream(f *testing.F) {
	f.Add(stream)
	f.Add("data")
	f.Add("event: put\ndata: null\n\n")
	f.Fuzz(func(t *testing.T, text string) {
		for event, err := range client.Events(strings.NewReader(text)) {
			if (event.Object == nil) == (err == nil) {
				t.Fatalf("event %+v with error %v", event, err)
			}
		}
	})
}
