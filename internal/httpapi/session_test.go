package httpapi

import (
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/testkit/eventually"
)

// A waiting or streaming request ends when its token does, and returns nothing more.
func TestRequestsEndWithTheirToken(t *testing.T) {
	for name, end := range map[string]func(s *testServer, id string, now *clock){
		"revoked": func(s *testServer, id string, _ *clock) {
			if _, err := auth.RevokeToken(t.Context(), s.store, id); err != nil {
				t.Fatal(err)
			}
		},
		"expired": func(_ *testServer, _ string, now *clock) { now.advance(2 * time.Hour) },
		"for another role": func(s *testServer, id string, _ *clock) {
			s.changeToken(id, func(token *auth.Token) { token.Role = auth.RoleViewer })
		},
		"for other namespaces": func(s *testServer, id string, _ *clock) {
			s.changeToken(id, func(token *auth.Token) { token.Namespaces = []string{"other"} })
		},
		"for one more role": func(s *testServer, id string, _ *clock) {
			a := s.do(http.MethodPut, "/v1/role-bindings/more?wait=0s", `{"spec":{"role":"viewer","token_ids":["`+id+`"]}}`, "Authorization", "Bearer "+s.addToken(auth.RoleAdmin))
			if a.StatusCode != http.StatusCreated {
				t.Fatalf("%d %s", a.StatusCode, a.body)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			now := &clock{at: time.Now()}
			s := startServer(t, authenticated, func(o *Options) { o.WatchHeartbeat, o.Now = time.Hour, now.now })
			s.token = s.addToken(auth.RoleAdmin)
			s.mustPut("/v1/namespaces/shop/placements/web", `{"spec":{}}`)
			version := decodeAs[anyObject](t, s.do(http.MethodGet, "/v1/namespaces/shop/placements/web", "")).Metadata.ResourceVersion
			expires := now.now().Add(time.Hour)
			text, token, _, err := auth.CreateToken(t.Context(), s.store, auth.TokenRequest{Role: auth.RoleEditor, Namespaces: []string{"shop"}, ExpiresAt: &expires}, auth.Roles{}, now.now())
			if err != nil {
				t.Fatal(err)
			}
			s.token = text
			eventually.True(t, "the token works", func() bool { return s.do(http.MethodGet, "/v1/placements", "").StatusCode == http.StatusOK })
			s.decisions.mu.Lock()
			s.decisions.settle = func(ctx context.Context, _ int64) error { <-ctx.Done(); return ctx.Err() }
			s.decisions.mu.Unlock()
			s.decisions.simulate = func(ctx context.Context, _ api.Simulation) (*api.SimulationResult, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			}
			watch := s.watch("/v1/watch").started()
			answers := make(chan answer, 3)
			for _, r := range [][3]string{
				{http.MethodGet, "/v1/namespaces/shop/placements/web?wait=60s&resource_version=" + version},
				{http.MethodPut, "/v1/namespaces/shop/placements/other?wait=60s", `{"spec":{}}`},
				{http.MethodPost, "/v1/simulations", `{}`},
			} {
				go func() {
					a, err := s.try(context.Background(), r[0], r[1], r[2])
					if err != nil {
						t.Error(err)
					}
					answers <- a
				}()
			}
			eventually.True(t, "all requests are in progress", func() bool {
				return s.sessions.UnderWay(token.ID) == 4
			})
			end(s, token.ID, now)
			for e, more := watch.next(); more; e, more = watch.next() {
				if e.String() != "put shop/other" { // written before the end of the token
					t.Errorf("the watch continues with %s", e)
				}
			}
			for range cap(answers) {
				if a := <-answers; a.StatusCode != http.StatusUnauthorized || !strings.Contains(string(a.body), "revoked") {
					t.Errorf("waiting request: got %d %s, want 401", a.StatusCode, a.body)
				}
			}
		})
	}
}

// changeToken changes a stored token.
func (s *testServer) changeToken(id string, change func(*auth.Token)) {
	s.t.Helper()
	record, _, err := s.store.Read(context.Background(), api.Key{Kind: auth.KindToken, Name: id})
	if err != nil {
		s.t.Fatal(err)
	}
	var token auth.Token
	if err := json.Unmarshal(record.Value, &token); err != nil {
		s.t.Fatal(err)
	}
	change(&token)
	value, err := json.Marshal(token)
	if err != nil {
		s.t.Fatal(err)
	}
	if _, err := s.store.Commit(context.Background(), store.Write{Key: api.Key{Kind: auth.KindToken, Name: id}, Part: store.Spec, Value: value, Expect: store.Any}); err != nil {
		s.t.Fatal(err)
	}
}
