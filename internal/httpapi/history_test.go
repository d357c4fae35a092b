package httpapi

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// keptHistory answers with the entries that the reader may see, and remembers what was asked.
type keptHistory struct {
	entries []api.HistoryEntry
	gaps    []api.HistoryGap
	asked   history.Query
	next    history.Cursor
}

// Read implements History.
func (k *keptHistory) Read(query history.Query) history.Page {
	k.asked = query
	page := history.Page{Items: []api.HistoryEntry{}, Gaps: slices.Clone(k.gaps), Next: k.next, Since: time.Date(2026, 3, 1, 0, 0, 0, 0, time.UTC)}
	for _, e := range k.entries {
		if query.Visible == nil || query.Visible(e.Object) {
			page.Items = append(page.Items, e)
		}
	}
	return page
}

// After implements History: what was decided after a time is in the entries, the oldest last.
func (k *keptHistory) After(at time.Time) (revision int64, known bool) {
	for _, e := range k.entries {
		if e.Time.After(at) {
			revision = e.Revision
		} else {
			return revision, true
		}
	}
	return 0, false
}

// Backup implements store.History.
func (k *keptHistory) Backup(context.Context, int64, int64) ([]store.HistoryFile, error) {
	return nil, nil
}

// Part implements History.
func (k *keptHistory) Part(after, until int64) []byte {
	return fmt.Appendf(nil, "%d to %d", after, until)
}

func TestHistoryShowsOnlyWhatMayBeRead(t *testing.T) {
	web := api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}
	kept := &keptHistory{gaps: []api.HistoryGap{{After: 3, Until: 4, Reason: `the status of placement "vault/secret" was damaged`}}}
	s := startServer(t, authenticated, func(o *Options) { o.History = kept })
	admin, viewer := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "shop")
	s.token = admin
	s.mustPut("/v1/clusters/shared", `{"spec":{}}`)
	s.mustPut("/v1/clusters/hidden", `{"spec":{"namespace":"vault"}}`)
	cause := func(kind api.Kind, namespace, name string) *api.Cause {
		return &api.Cause{Type: api.CauseTaint, Object: &api.Key{Kind: kind, Namespace: namespace, Name: name}, Field: "spec.taints", New: "secret"}
	}
	for _, object := range []api.Key{web, {Kind: api.KindWorkload, Namespace: "shop", Name: "gone"}, {Kind: api.KindPlacement, Namespace: "vault", Name: "web"}} {
		kept.entries = append(kept.entries, api.HistoryEntry{Object: object, Moved: []api.Move{}, Cause: cause(api.KindCluster, "", "shared")})
	}
	for _, c := range []*api.Cause{cause(api.KindCluster, "", "hidden"), cause(api.KindCluster, "", "gone"), cause(api.KindMetric, "vault", "load"), cause(web.Kind, web.Namespace, web.Name)} {
		kept.entries = append(kept.entries, api.HistoryEntry{Object: web, Moved: []api.Move{}, Cause: c})
	}
	actor := &api.Actor{Token: "somebody", RequestID: "r-1"}
	for i := range kept.entries {
		kept.entries[i].Actor, kept.entries[i].Margin = actor, &api.DecisionMargin{From: "shared", To: "hidden", Old: 1, New: 2, Needed: 1}
	}
	read := func(token string) api.HistoryPage {
		s.token = token
		return decodeAs[api.HistoryPage](t, s.do(http.MethodGet, "/v1/history", ""))
	}
	if got := read(admin); !reflect.DeepEqual(got.Items, kept.entries) || !reflect.DeepEqual(got.Gaps, kept.gaps) {
		t.Errorf("an admin sees %+v, %+v", got.Items, got.Gaps)
	}
	withheld := &api.Cause{Type: api.CauseTaint}
	want := []api.HistoryEntry{
		kept.entries[0], kept.entries[1],
		{Object: web, Moved: []api.Move{}, Cause: withheld}, {Object: web, Moved: []api.Move{}, Cause: withheld}, {Object: web, Moved: []api.Move{}, Cause: withheld},
		kept.entries[6],
	}
	for i := range want {
		want[i].Margin = nil // the scores may be those of metrics of others
	}
	got := read(viewer)
	if !reflect.DeepEqual(got.Items, want) {
		t.Errorf("a viewer of shop sees\n%+v, want\n%+v", got.Items, want)
	}
	if len(got.Gaps) != 1 || got.Gaps[0].After != 3 || got.Gaps[0].Until != 4 || got.Gaps[0].Reason != "changes may be missing" {
		t.Errorf("a viewer of shop sees the gaps %+v", got.Gaps)
	}
}

func TestHistoryQueries(t *testing.T) {
	cursor := func(token string) history.Cursor {
		c, ok := history.ParseCursor(token)
		if !ok {
			t.Fatalf("%q is no cursor", token)
		}
		return c
	}
	kept := &keptHistory{next: cursor("7.1")}
	s := startServer(t, authenticated, func(o *Options) { o.History = kept })
	admin, viewer := s.addToken(auth.RoleAdmin), s.addToken(auth.RoleViewer, "shop")
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	both := api.HistoryKinds
	for _, test := range []struct {
		query  string
		want   history.Query
		status int // of a refusal
		field  string
	}{
		{query: "", want: history.Query{Kinds: both, Limit: 100}},
		{query: "kind=workload&namespace=shop&name=api&limit=3", want: history.Query{Kinds: []api.Kind{api.KindWorkload}, Namespace: "shop", Name: "api", Limit: 3}},
		{query: "cluster=eu-1&continue=42.3", want: history.Query{Kinds: both, Cluster: "eu-1", Before: cursor("42.3"), Limit: 100}},
		{query: "since=2026-03-01T12:00:00Z&until=2026-03-01T13:00:00%2B00:00", want: history.Query{Kinds: both, Since: at, Until: at.Add(time.Hour), Limit: 100}},
		{query: "kind=cluster", status: http.StatusUnprocessableEntity, field: "kind"},
		{query: "since=yesterday", status: http.StatusUnprocessableEntity, field: "since"},
		{query: "until=2026-03-01", status: http.StatusUnprocessableEntity, field: "until"},
		{query: "since=2026-03-01T12:00:00Z&until=2026-03-01T12:00:00Z", status: http.StatusUnprocessableEntity, field: "until"},
		{query: "limit=0", status: http.StatusUnprocessableEntity, field: "limit"},
		{query: "limit=501", status: http.StatusUnprocessableEntity, field: "limit"},
		{query: "continue=x", status: http.StatusBadRequest},
		{query: "nope=1", status: http.StatusUnprocessableEntity},
	} {
		s.token = admin
		a := s.do(http.MethodGet, "/v1/history?"+test.query, "")
		if test.status != 0 {
			p := a.problem(t)
			if p.Status != test.status || test.field != "" && (len(p.Errors) != 1 || p.Errors[0].Field != test.field) {
				t.Errorf("%s: %+v, want %d for %s", test.query, p, test.status, test.field)
			}
			continue
		}
		page := decodeAs[api.HistoryPage](t, a)
		kept.asked.Since, kept.asked.Until = kept.asked.Since.UTC(), kept.asked.Until.UTC()
		if test.want.Since.IsZero() {
			kept.asked.Since, kept.asked.Until = time.Time{}, time.Time{}
		}
		if !reflect.DeepEqual(kept.asked, test.want) {
			t.Errorf("%s: asked for %+v, want %+v", test.query, kept.asked, test.want)
		}
		if page.Continue != "7.1" || page.Since == nil || page.Since.Year() != 2026 {
			t.Errorf("%s: %+v", test.query, page)
		}
	}
	s.token = viewer
	if a := s.do(http.MethodGet, "/v1/history?namespace=vault", ""); a.StatusCode != http.StatusForbidden {
		t.Errorf("%d for another namespace, want 403", a.StatusCode)
	}
}

// TestPartsOfTheHistoryAreForServers asks as another server, and as anybody else.
func TestPartsOfTheHistoryAreForServers(t *testing.T) {
	s := startServer(t, authenticated, func(o *Options) { o.History = &keptHistory{} })
	at, err := url.Parse(s.url)
	if err != nil {
		t.Fatal(err)
	}
	got, err := FetchHistoryPart(t.Context(), s.client.Transport, s.codec, at, 3, 42)
	if err != nil || string(got) != "3 to 42" {
		t.Errorf("%q, %v", got, err)
	}
	stranger, err := store.NewCodec(bytes.Repeat([]byte{8}, 32))
	if err != nil {
		t.Fatal(err)
	}
	if got, err := FetchHistoryPart(t.Context(), s.client.Transport, stranger, at, 3, 42); err == nil || !strings.Contains(err.Error(), "403") {
		t.Errorf("a server with another key gets %q, %v", got, err)
	}
	sealed := s.codec.Seal(historyPartSeal, "range", historyRange(3, 42))
	s.token = s.addToken(auth.RoleAdmin)
	for query, header := range map[string]string{
		historyRange(3, 42): "", historyRange(3, 43): sealed, "after=3": sealed, "": s.codec.Seal(historyPartSeal, "range", ""),
		historyRange(1, 2): s.codec.Seal(forwardedSeal, "request", historyRange(1, 2)),
	} {
		if a := s.do(http.MethodGet, historyPartPath+"?"+query, "", historyPartHeader, header); a.StatusCode != http.StatusForbidden {
			t.Errorf("%q with %q: %d, want 403", query, header, a.StatusCode)
		}
	}
}
