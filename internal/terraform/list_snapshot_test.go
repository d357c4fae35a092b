package terraform

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// shelf is a server that has the clusters c0, c1, … and counts its requests.
type shelf struct {
	size         atomic.Int32
	lists, reads atomic.Int32
	broken       atomic.Bool
}

func (s *shelf) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	write := func(status int, v any) {
		w.WriteHeader(status)
		_ = json.NewEncoder(w).Encode(v) // an error shows in the client
	}
	item := func(n int) *api.Cluster {
		return &api.Cluster{Kind: api.KindCluster, Metadata: api.Metadata{Name: fmt.Sprint("c", n)}}
	}
	name, single := strings.CutPrefix(r.URL.Path, "/v1/clusters/c")
	if !single {
		s.lists.Add(1)
		if s.broken.Load() {
			write(http.StatusInternalServerError, api.Problem{Title: "no", Status: 500})
			return
		}
		items := []any{}
		for n := range int(s.size.Load()) {
			items = append(items, item(n))
		}
		write(http.StatusOK, map[string]any{"items": items})
		return
	}
	s.reads.Add(1)
	var n int
	if _, err := fmt.Sscan(name, &n); err != nil || n >= int(s.size.Load()) {
		write(http.StatusNotFound, api.Problem{Title: "Not Found", Status: 404})
		return
	}
	write(http.StatusOK, item(n))
}

func newShelf(t *testing.T, size int32) (*shelf, *listSnapshots) {
	t.Helper()
	s := &shelf{}
	s.size.Store(size)
	server := httptest.NewServer(s)
	c, err := client.New(client.Options{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close(); server.Close() })
	return s, newListSnapshots(c)
}

// readAll reads clusters as Terraform does, ten at a time.
func readAll(t *testing.T, l *listSnapshots, count int) {
	t.Helper()
	var wg sync.WaitGroup
	slots := make(chan struct{}, 10)
	for n := range count {
		slots <- struct{}{}
		wg.Go(func() {
			defer func() { <-slots }()
			key := api.Key{Kind: api.KindCluster, Name: fmt.Sprint("c", n)}
			object, err := l.get(t.Context(), key)
			if err != nil || api.KeyOf(object) != key {
				t.Errorf("%s: got %v, %v", key, object, err)
			}
		})
	}
	wg.Wait()
}

func TestManyReadsAreOneList(t *testing.T) {
	s, l := newShelf(t, 300)
	readAll(t, l, 300)
	if s.reads.Load() != readsBeforeList || s.lists.Load() != 1 {
		t.Errorf("%d reads and %d lists", s.reads.Load(), s.lists.Load())
	}
}

func TestFewReadsAreNoList(t *testing.T) {
	s, l := newShelf(t, 300)
	readAll(t, l, readsBeforeList)
	if s.lists.Load() != 0 {
		t.Error("a small configuration listed a large fleet")
	}
}

func TestListIsReadAgain(t *testing.T) {
	s, l := newShelf(t, 100)
	now := time.Now()
	l.now = func() time.Time { return now }
	readAll(t, l, 100)
	now = now.Add(snapshotAge + 1)
	readAll(t, l, 100)
	if s.lists.Load() != 2 || s.reads.Load() != readsBeforeList {
		t.Errorf("%d lists and %d reads after the first snapshot expired", s.lists.Load(), s.reads.Load())
	}
	l.forget() // as after a write
	readAll(t, l, 100)
	if s.lists.Load() != 3 {
		t.Errorf("%d lists after a write, want 3", s.lists.Load())
	}
}

func TestAbsentFromTheListIsNotGone(t *testing.T) {
	s, l := newShelf(t, 50)
	readAll(t, l, 50)
	s.size.Store(51)
	if _, err := l.get(t.Context(), api.Key{Kind: api.KindCluster, Name: "c50"}); err != nil {
		t.Errorf("object newer than the list: %v", err)
	}
	if _, err := l.get(t.Context(), api.Key{Kind: api.KindCluster, Name: "c99"}); !client.IsNotFound(err) {
		t.Errorf("missing object: error %v, want not found", err)
	}
}

func TestFailedListFallsBackToSingleReads(t *testing.T) {
	s, l := newShelf(t, 50)
	s.broken.Store(true)
	readAll(t, l, 50)
	if s.reads.Load() != 50 {
		t.Errorf("%d reads, want 50", s.reads.Load())
	}
}

// A list that is fetched late in a run is kept as long as the run has lasted until then.
func TestListsLastAsLongAsTheRun(t *testing.T) {
	s, l := newShelf(t, 100)
	now := time.Now()
	l.now = func() time.Time { return now }
	for range 60 { // a minute
		readAll(t, l, 100)
		now = now.Add(time.Second)
	}
	if got := s.lists.Load(); got != 5 { // at 0, 6, 13, 27 and 55 seconds
		t.Errorf("%d lists in a minute, want 5", got)
	}
}

// Objects are listed by namespace, and all together only if many namespaces are read.
func TestListsAreOfTheNamespacesInUse(t *testing.T) {
	var lists []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if strings.HasSuffix(r.URL.Path, "/placements") {
			lists = append(lists, strings.TrimSuffix(r.URL.Path, "/placements"))
			_ = json.NewEncoder(w).Encode(map[string]any{"items": []any{}})
			return
		}
		_ = json.NewEncoder(w).Encode(&api.Placement{Kind: api.KindPlacement})
	}))
	defer server.Close()
	c, err := client.New(client.Options{Endpoint: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l := newListSnapshots(c)
	read := func(namespaces int) {
		for n := range 100 {
			key := api.Key{Kind: api.KindPlacement, Namespace: fmt.Sprint("n", n%namespaces), Name: fmt.Sprint("p", n)}
			if _, err := l.get(t.Context(), key); err != nil {
				t.Fatal(err)
			}
		}
	}
	read(2)
	if got := strings.Join(lists, " "); got != "/v1/namespaces/n0 /v1/namespaces/n1" {
		t.Errorf("unexpected lists %s", got)
	}
	lists = nil
	l.forget()
	read(50)
	if got := strings.Join(lists, " "); got != "/v1" {
		t.Errorf("unexpected lists %s", got)
	}
}
