package httpapi

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

type objectList struct {
	Items           []anyObject `json:"items"`
	Continue        string      `json:"continue"`
	ResourceVersion string      `json:"resource_version"`
}

func (l objectList) paths() []string {
	var paths []string
	for _, item := range l.Items {
		paths = append(paths, api.Key{Namespace: item.Metadata.Namespace, Name: item.Metadata.Name}.Path())
	}
	slices.Sort(paths)
	return paths
}

func metricBody(labels string) string {
	return `{"metadata":{"labels":{` + labels + `}},"spec":{"min":0,"max":1,"metrics_provider":{"name":"p","metric":"m"}}}`
}

func TestLists(t *testing.T) {
	s := startServer(t)
	s.mustPut("/v1/metrics/global", metricBody(`"tier":"prod"`))
	s.mustPut("/v1/namespaces/a/metrics/one", metricBody(`"tier":"prod","old":""`))
	s.mustPut("/v1/namespaces/a/metrics/two", metricBody(`"tier":"test"`))
	s.mustPut("/v1/namespaces/a-b/metrics/one", metricBody(``))
	s.mustPut("/v1/namespaces/a/placements/web", `{"spec":{}}`)
	s.mustPut("/v1/namespaces/b/placements/web", `{"spec":{}}`)
	s.mustPut("/v1/clusters/eu", `{"spec":{"namespace":"a"}}`)
	tests := []struct {
		path string
		want string
	}{
		{"/v1/metrics", "global"},
		{"/v1/metrics?all=true", "a-b/one a/one a/two global"},
		{"/v1/metrics?all=true&limit=1", "a-b/one a/one a/two global"},
		{"/v1/metrics?limit=1", "global"},
		{"/v1/namespaces/a/metrics", "a/one a/two"},
		{"/v1/namespaces/a/metrics?limit=1", "a/one a/two"},
		{"/v1/namespaces/nothing/metrics", ""},
		{"/v1/placements", "a/web b/web"},
		{"/v1/placements?limit=1", "a/web b/web"},
		{"/v1/placements?limit=100000", "a/web b/web"},
		{"/v1/clusters", "eu"},
		{"/v1/metrics-providers", ""},
		{"/v1/metrics?all=true&label_selector=tier%3Dprod", "a/one global"},
		{"/v1/metrics?all=true&label_selector=tier+in+(prod,test),!old", "a/two global"},
		{"/v1/metrics?all=true&limit=1&label_selector=tier+in+(prod,test),!old", "a/two global"},
		{"/v1/metrics?all=true&label_selector=!tier", "a-b/one"},
		{"/v1/metrics?all=true&field_selector=metadata.namespace=a", "a/one a/two"},
		{"/v1/metrics?all=true&limit=1&field_selector=metadata.namespace=a", "a/one a/two"},
		{"/v1/metrics?all=true&field_selector=metadata.namespace!=a,metadata.name=one", "a-b/one"},
		{"/v1/metrics?all=true&limit=1&label_selector=tier&field_selector=metadata.name!=one", "a/two global"},
		{"/v1/namespaces/a/metrics?field_selector=spec.metrics_provider.name=p", "a/one a/two"},
		{"/v1/clusters?field_selector=spec.namespace=a,kind=cluster", "eu"},
		{"/v1/clusters?field_selector=spec.namespace=b", ""},
	}
	for _, test := range tests {
		t.Run(test.path, func(t *testing.T) {
			var all objectList
			for next := ""; ; {
				path := test.path
				if next != "" {
					path += "&continue=" + url.QueryEscape(next)
				}
				a := s.do(http.MethodGet, path, "")
				if a.StatusCode != http.StatusOK {
					t.Fatalf("got %d %s, want 200", a.StatusCode, a.body)
				}
				page := decodeAs[objectList](t, a)
				if page.Items == nil || page.ResourceVersion == "" {
					t.Errorf("incomplete list: %s", a.body)
				}
				all.Items = append(all.Items, page.Items...)
				if next = page.Continue; next == "" {
					break
				}
			}
			if got := strings.Join(all.paths(), " "); got != test.want {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

func TestListRejects(t *testing.T) {
	s := startServer(t)
	for _, name := range []string{"a", "b", "c"} {
		s.mustPut("/v1/clusters/"+name, `{"spec":{}}`)
	}
	token := decodeAs[objectList](t, s.do(http.MethodGet, "/v1/clusters?limit=1", "")).Continue
	if token == "" {
		t.Fatal("no second page")
	}
	// A revision that the store has never reached counts as expired, like one that has been compacted.
	gone := pageToken{Revision: 1 << 40, After: "-/a", Kind: api.KindCluster, Everywhere: false}.String()
	tests := []struct {
		path   string
		status int
		field  string
	}{
		{"/v1/clusters?limit=0", 422, "limit"},
		{"/v1/clusters?limit=-1", 422, "limit"},
		{"/v1/clusters?limit=many", 422, "limit"},
		{"/v1/clusters?label_selector=a%20b%20c", 422, "label_selector"},
		{"/v1/clusters?label_selector=%00", 422, "label_selector"},
		{"/v1/clusters?field_selector=spec.regoin=eu", 422, "field_selector"},
		{"/v1/clusters?field_selector=spec.region", 422, "field_selector"},
		{"/v1/clusters?field_selector=" + strings.Repeat("a", 1001), 422, "field_selector"},
		{"/v1/clusters?labels=a", 422, "labels"},
		{"/v1/clusters?continue=nonsense", 400, ""},
		{"/v1/clusters?continue=%ff%fe", 400, ""},
		{"/v1/metrics?continue=" + token, 400, ""},
		{"/v1/clusters?label_selector=a&continue=" + token, 400, ""},
		{"/v1/clusters?field_selector=metadata.name=a&continue=" + token, 400, ""},
		{"/v1/clusters?continue=" + gone, 410, ""},
	}
	for _, test := range tests {
		a := s.do(http.MethodGet, test.path, "")
		if a.StatusCode != test.status {
			t.Errorf("%s: got %d %s, want %d", test.path, a.StatusCode, a.body, test.status)
			continue
		}
		if p := a.problem(t); test.field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != test.field) {
			t.Errorf("%s: errors %v, want one of %s", test.path, p.Errors, test.field)
		}
	}
}

// A page whose selector matches few objects ends after some work, and the list continues, from memory as from the store.
func TestPagesEndAfterSomeWork(t *testing.T) {
	for name, between := range map[string]time.Duration{"from memory": 0, "from the store": 2 * listRest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := &clock{at: time.Now()}
			s := startServer(t, func(o *Options) { o.Now = now.now })
			for i := range 2*maxRounds + 2 {
				s.mustPut(fmt.Sprintf("/v1/clusters/c%02d?wait=0s", i), `{"spec":{"region":"eu"}}`)
			}
			s.mustPut("/v1/clusters/d", `{"spec":{"region":"us"}}`)
			s.mustPut("/v1/clusters/e", `{"spec":{"region":"eu"}}`)
			path, pages := "/v1/clusters?limit=1&field_selector=spec.region=us", 1
			page := decodeAs[objectList](t, s.do(http.MethodGet, path, ""))
			for ; page.Continue != "" && len(page.Items) == 0; pages++ {
				now.advance(between)
				page = decodeAs[objectList](t, s.do(http.MethodGet, path+"&continue="+page.Continue, ""))
			}
			// In memory it is known at once that nothing follows.
			if got := strings.Join(page.paths(), " "); got != "d" || pages != 3 || page.Continue != "" && between == 0 {
				t.Errorf("page %d has %q, and continues at %q", pages, got, page.Continue)
			}
		})
	}
}

func TestPagesShowOneRevision(t *testing.T) {
	for name, between := range map[string]time.Duration{"from memory": 0, "from the store": 2 * listRest} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := &clock{at: time.Now()}
			s := startServer(t, func(o *Options) { o.Now = now.now })
			const objects = 25
			for i := range objects {
				s.mustPut(fmt.Sprintf("/v1/clusters/c%02d?wait=0s", i), `{"spec":{"region":"before"}}`)
			}
			first := decodeAs[objectList](t, s.do(http.MethodGet, "/v1/clusters?limit=4", ""))
			all := first
			for i, page := 0, first; page.Continue != ""; i++ {
				// Between two pages, objects are changed, deleted and created.
				s.mustPut(fmt.Sprintf("/v1/clusters/c%02d?wait=0s", (i*7)%objects), `{"spec":{"region":"after"}}`)
				s.do(http.MethodDelete, fmt.Sprintf("/v1/clusters/c%02d?wait=0s", (i*11+20)%objects), "")
				s.mustPut(fmt.Sprintf("/v1/clusters/c%02dx?wait=0s", i), `{"spec":{"region":"new"}}`)
				now.advance(between)
				page = decodeAs[objectList](t, s.do(http.MethodGet, "/v1/clusters?limit=4&continue="+page.Continue, ""))
				if page.ResourceVersion != first.ResourceVersion {
					t.Errorf("page %d shows revision %s, the first %s", i, page.ResourceVersion, first.ResourceVersion)
				}
				all.Items = append(all.Items, page.Items...)
			}
			if len(all.Items) != objects {
				t.Errorf("%d objects, want %d: %v", len(all.Items), objects, all.paths())
			}
			for _, item := range all.Items {
				if item.Spec["region"] != "before" {
					t.Errorf("%s is from a later revision", item.Metadata.Name)
				}
			}
			// Once the revision has been compacted and forgotten, the list must start over.
			page := decodeAs[objectList](t, s.do(http.MethodGet, "/v1/clusters?limit=4", ""))
			s.mustPut("/v1/clusters/last", `{"spec":{}}`)
			revision, err := s.store.Revision(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			if err := s.store.Compact(context.Background(), revision); err != nil {
				t.Fatal(err)
			}
			now.advance(2 * listRest)
			if a := s.do(http.MethodGet, "/v1/clusters?limit=4&continue="+page.Continue, ""); a.StatusCode != http.StatusGone {
				t.Errorf("after compaction: got %d %s, want 410", a.StatusCode, a.body)
			}
		})
	}
}

// A list that started from memory can continue from the store, at any page, and the other way round. Both have the same
// order.
func TestPagesContinueAnywhere(t *testing.T) {
	t.Parallel()
	now := &clock{at: time.Now()}
	s := startServer(t, func(o *Options) { o.Now = now.now })
	var want []string
	for _, namespace := range []string{"a", "a-b", "a-b-c", "a0", "b"} {
		for _, name := range []string{"x", "x-y", "y"} {
			s.mustPut("/v1/namespaces/"+namespace+"/metrics/"+name+"?wait=0s", metricBody(`"tier":"prod"`))
			want = append(want, namespace+"/"+name)
		}
	}
	s.mustPut("/v1/metrics/global", metricBody(`"tier":"prod"`))
	want = append(want, "global")
	slices.Sort(want)
	// Later pages are read after the fleet has changed.
	const path = "/v1/metrics?all=true&limit=1&label_selector=tier"
	for _, forgets := range []int{0, 1, 2, 3} { // how many of the four pages are read from the store
		var list objectList
		for i, next := 0, ""; i == 0 || next != ""; i++ {
			if i%4 < forgets {
				s.mustPut("/v1/clusters/other?wait=0s", fmt.Sprintf(`{"spec":{"region":"r%d"}}`, i))
				now.advance(2 * listRest)
			}
			page := decodeAs[objectList](t, s.do(http.MethodGet, path+"&continue="+next, ""))
			list.Items = append(list.Items, page.Items...)
			next = page.Continue
		}
		if got := list.paths(); !slices.Equal(got, want) {
			t.Errorf("%d of four from the store: %v, want %v", forgets, got, want)
		}
	}
}

// slowReader reads a response in pieces, and calls a function after the first one.
type slowReader struct {
	header http.Header
	text   bytes.Buffer
	begun  func() error
}

func (r *slowReader) Header() http.Header { return r.header }
func (r *slowReader) WriteHeader(int)     {}
func (r *slowReader) Write(p []byte) (int, error) {
	r.text.Write(p)
	if begun := r.begun; begun != nil && r.text.Len() >= pageBytes {
		r.begun = nil
		return len(p), begun()
	}
	return len(p), nil
}

// If the client of a list disconnects, or loses access, the list breaks off. The incomplete response must not be valid
// JSON.
func TestListBreaksOff(t *testing.T) {
	t.Parallel()
	now := &clock{at: time.Now()}
	s := startServer(t, authenticated, func(o *Options) { o.Now = now.now })
	s.token = s.addToken(auth.RoleAdmin)
	const objects = 200
	for i := range objects {
		s.mustPut(fmt.Sprintf("/v1/clusters/c%03d?wait=0s", i), `{"spec":{"description":"`+strings.Repeat("x", 1000)+`"}}`)
	}
	for name, test := range map[string]struct {
		begun func(token string) error
		whole bool
	}{
		"read to the end":   {begun: func(string) error { return nil }, whole: true},
		"the reader leaves": {begun: func(string) error { return io.ErrClosedPipe }},
		"the token ends": {begun: func(id string) error {
			revision, err := auth.RevokeToken(t.Context(), s.store, id)
			if err == nil {
				_, err = s.fleet.WaitRevision(t.Context(), revision)
			}
			return err
		}},
	} {
		text, token, revision, err := auth.CreateToken(t.Context(), s.store, auth.TokenRequest{Role: auth.RoleViewer}, auth.Roles{}, now.now())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := s.fleet.WaitRevision(t.Context(), revision); err != nil {
			t.Fatal(err)
		}
		reader := &slowReader{header: http.Header{}, begun: func() error { return test.begun(token.ID) }}
		r := httptest.NewRequest(http.MethodGet, "/v1/clusters", nil)
		r.Header.Set("Authorization", "Bearer "+text)
		broken := func() (cause any) {
			defer func() { cause = recover() }()
			s.handler.ServeHTTP(reader, r)
			return nil
		}()
		var list objectList
		err = json.Unmarshal(reader.text.Bytes(), &list)
		if test.whole {
			if broken != nil || err != nil || len(list.Items) != objects {
				t.Errorf("%s: the answer ends with %v, decoded with %v, %d objects", name, broken, err, len(list.Items))
			}
			continue
		}
		if broken != http.ErrAbortHandler || err == nil { //nolint:errorlint // what net/http sees
			t.Errorf("%s: the answer ends with %v, and was decoded as %d objects", name, broken, len(list.Items))
		}
		if reader.text.Len() > 4*pageBytes {
			t.Errorf("%s: %d bytes were written, although the token ended", name, reader.text.Len())
		}
	}
}

// Pictures of lists that do not go on are given up, however many lists begin.
func TestPicturesAreForgotten(t *testing.T) {
	t.Parallel()
	now := &clock{at: time.Now()}
	s := startServer(t, func(o *Options) { o.Now = now.now })
	s.mustPut("/v1/clusters/a", `{"spec":{}}`)
	begin := func() string {
		s.mustPut("/v1/clusters/b", fmt.Sprintf(`{"spec":{"region":"r%d"}}`, now.now().UnixNano()))
		now.advance(time.Millisecond)
		return decodeAs[objectList](t, s.do(http.MethodGet, "/v1/clusters?limit=1", "")).Continue
	}
	kept := func() int {
		s.listed.mu.Lock()
		defer s.listed.mu.Unlock()
		return len(s.listed.kept)
	}
	before := s.fleet.Snapshot()
	begin()
	begin()
	if n := s.fleet.Snapshot().ChangedSince(before); n != 2 {
		t.Errorf("%d changes, want 2", n)
	}
	now.advance(listRest + time.Second)
	if s.do(http.MethodGet, "/v1/clusters", ""); kept() != 0 {
		t.Error("a snapshot is kept for a list without further pages")
	}
	for range 2 * maxListed {
		begin()
	}
	if kept() != maxListed {
		t.Errorf("%d snapshots are kept, want %d", kept(), maxListed)
	}
	next := begin()
	now.advance(listRest + time.Second)
	eventually.True(t, "all snapshots are dropped", func() bool { return kept() == 0 })
	if a := s.do(http.MethodGet, "/v1/clusters?limit=1&continue="+next, ""); a.StatusCode != http.StatusOK {
		t.Errorf("the list does not continue: %d %s", a.StatusCode, a.body)
	}
	// A snapshot that is read all the time is dropped, too.
	begin()
	for range int(listAge/time.Second) + 1 {
		now.advance(time.Second)
		s.listed.mu.Lock()
		for _, k := range s.listed.kept {
			k.used = now.now()
		}
		s.listed.mu.Unlock()
	}
	eventually.True(t, "the snapshot is dropped", func() bool { return kept() == 0 })
}

func TestStatusIsShownOnEveryPage(t *testing.T) {
	s := startServer(t)
	for _, name := range []string{"a", "b"} {
		placement := decodeAs[api.Placement](t, s.mustPut("/v1/namespaces/shop/placements/"+name, `{"spec":{}}`))
		placement.Status.Clusters = []string{"eu-" + name}
		s.writeStatus(&placement)
	}
	page := decodeAs[api.List[*api.Placement]](t, s.do(http.MethodGet, "/v1/placements?limit=1", ""))
	next := decodeAs[api.List[*api.Placement]](t, s.do(http.MethodGet, "/v1/placements?limit=1&continue="+page.Continue, ""))
	for _, got := range append(page.Items, next.Items...) {
		if !slices.Equal(got.Status.Clusters, []string{"eu-" + got.Metadata.Name}) {
			t.Errorf("%s: clusters %v", got.Metadata.Name, got.Status.Clusters)
		}
		entry := s.fleet.Snapshot().Get(api.KeyOf(got))
		if got.Metadata.ResourceVersion != fmt.Sprint(entry.Revision()) {
			t.Errorf("%s: resource_version %s, want %d", got.Metadata.Name, got.Metadata.ResourceVersion, entry.Revision())
		}
	}
}

func TestGzip(t *testing.T) {
	s := startServer(t)
	s.client.Transport.(*http.Transport).DisableCompression = true
	for i := range 50 {
		s.mustPut(fmt.Sprintf("/v1/clusters/c%02d?wait=0s", i), `{"spec":{}}`)
	}
	a := s.do(http.MethodGet, "/v1/clusters", "", "Accept-Encoding", "br, gzip;q=0.5")
	if a.Header.Get("Content-Encoding") != "gzip" {
		t.Fatalf("not compressed: %v", a.Header)
	}
	reader, err := gzip.NewReader(strings.NewReader(string(a.body)))
	if err != nil {
		t.Fatal(err)
	}
	var list objectList
	if err := json.NewDecoder(reader).Decode(&list); err != nil || len(list.Items) != 50 {
		t.Errorf("%d objects, %v", len(list.Items), err)
	}
	for _, refused := range []string{"", "gzip;q=0", "gzip; q=0.000", "identity"} {
		if a := s.do(http.MethodGet, "/v1/clusters", "", "Accept-Encoding", refused); a.Header.Get("Content-Encoding") != "" {
			t.Errorf("compressed for Accept-Encoding %q", refused)
		}
	}
	if a := s.do(http.MethodGet, "/v1/clusters/c01", "", "Accept-Encoding", "gzip"); a.Header.Get("Content-Encoding") != "" {
		t.Error("a small answer is compressed")
	}
}
