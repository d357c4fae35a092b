package httpapi

import (
	"cmp"
	"net/http"
	"strings"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/arktos"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/decisiontable"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/gitops"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile/previewcommit"
	"golang.org/x/sync/semaphore"
)

const openAPIPath = "/v1/openapi.json"

// routes returns the handler behind authentication.
func (s *Server) routes(page *ui) http.Handler {
	mux := http.NewServeMux()
	o := s.options
	s.api = operation.New(mux, s.openAPIConfig(), o.MaxBodyBytes, s.answer)
	s.relay = newRelay(s.waits.leader, o, s.api.Problem)
	if o.Audit != nil { // without a log, requests do not pay for it
		s.api.Audit(s.audit.begin)
	}
	s.api.PassOn(func(w http.ResponseWriter, r *http.Request, repeatable bool) bool {
		if isHeartbeat(r) && s.relay.reaches.Load() {
			return false
		}
		return s.waits.leader.elsewhere(w, r, repeatable)
	})
	rights := auth.NewRights(o.Fleet)
	v := &view{fleet: o.Fleet, rights: rights, decisions: o.Decisions, beats: o.Beats, faults: o.Faults, now: o.Now}
	c := &changes{store: o.Store, codec: o.Codec, fleet: o.Fleet, rights: rights, view: v, waits: s.waits, audit: s.audit}
	s.previews = &previews{
		api: s.api, store: o.Store, codec: o.Codec, fleet: o.Fleet, rights: rights, decisions: o.Decisions,
		commits: &previewcommit.Committer{Decisions: o.Decisions, Fleet: o.Fleet, EncodeStatus: o.Codec.EncodeStatus},
		waits:   s.waits, changes: c, maxPreviews: o.MaxPreviews, logger: o.Logger, now: o.Now,
	}
	s.watches = &watches{
		api: s.api, fleet: o.Fleet, rights: rights, sessions: s.sessions, view: v, waits: s.waits, metrics: s.metrics,
		events: newEventLog(watchBacklog), heartbeat: o.WatchHeartbeat, writeTimeout: o.WatchWriteTimeout,
	}
	s.listed = &listedFleets{now: o.Now}
	s.reports = &reports{api: s.api, fleet: o.Fleet, rights: rights, decisions: o.Decisions, signals: o.Signals, relay: s.relay, view: v, changes: c}
	s.status = &status{
		api: s.api, store: o.Store, history: o.History, fleet: o.Fleet, sessions: s.sessions, faults: o.Faults, version: o.Version, name: o.Name, leading: s.waits.leader,
		more: o.Checks, now: o.Now, logger: o.Logger, stopping: s.waits.stopping, audit: s.audit,
	}
	past := &histories{api: s.api, codec: o.Codec, log: o.History, rights: rights}
	slots := semaphore.NewWeighted(simulationSlots)
	for _, part := range []interface{ routes() }{
		&objects{
			api: s.api, store: o.Store, codec: o.Codec, fleet: o.Fleet, history: o.History, rights: rights, sessions: s.sessions, decisions: o.Decisions,
			view: v, waits: s.waits, events: s.watches.events, changes: c, previews: s.previews, listed: s.listed, network: o.Network, issuers: o.Issuers, now: o.Now, slots: slots,
		},
		&freezes{api: s.api, changes: c, waits: s.waits, now: o.Now},
		&decisionRows{api: s.api, index: decisiontable.New(o.Fleet), rights: rights, view: v},
		past,
		s.reports,
		&nodes{api: s.api, rights: rights, view: v, spot: o.Spot, now: o.Now},
		s.previews,
		&simulations{api: s.api, rights: rights, decisions: o.Decisions, maxBody: o.MaxSimulationBytes, slots: slots},
		s.watches,
		&tokens{api: s.api, store: o.Store, sessions: s.sessions, waits: s.waits, audit: s.audit, now: o.Now},
		&logins{api: s.api, options: o.Logins},
		&members{api: s.api, store: o.Store, audit: s.audit},
		s.status,
	} {
		part.routes()
	}
	gitops.Register(s.api, gitopsBackend{o.Store, v}, o.Fleet)
	arktos.Register(s.api, arktosBackend{view: v, waits: s.waits, changes: c, decisions: o.Decisions, signals: o.Signals, now: o.Now}, o.Fleet, o.Faults)
	describeFreshness(s.api.Document())
	describeDeadline(s.api.Document())
	describeFields(s.api.Document())
	// Generated on first use: it takes longer than everything else at startup.
	document := sync.OnceValue(func() []byte { return operation.EncodeJSON(s.api.Document()) })
	mux.HandleFunc("GET "+openAPIPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/openapi+json")
		_, _ = w.Write(document()) // fails if the client has gone away
	})
	page.register(mux)
	mux.HandleFunc("GET "+backupPath, s.status.backup)
	mux.HandleFunc("GET "+settledPath, s.waits.leader.awaitSettled(s.api))
	mux.HandleFunc("POST "+relayPath, s.relay.serve)
	mux.HandleFunc("GET "+historyPartPath, past.part)
	mux.HandleFunc("GET /healthz", health)
	mux.HandleFunc("GET /readyz", s.status.readiness)
	mux.Handle("GET /metrics", (&metricsPage{api: s.api, fleet: o.Fleet, rights: rights, gatherer: o.Gatherer}).handler())
	return s.dispatch(mux)
}

// dispatch passes a request to its route, and responds with a problem if there is none.
func (s *Server) dispatch(mux *http.ServeMux) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fallback, pattern := mux.Handler(r)
		if pattern == "" {
			// The mux knows whether another method is allowed, but responds with plain text.
			probe := &discardedAnswer{header: http.Header{}}
			fallback.ServeHTTP(probe, r)
			problem.Write(w, noRoute(probe))
			return
		}
		_, route, _ := strings.Cut(pattern, " ")
		requestOf(r.Context()).route = cmp.Or(route, pattern)
		mux.ServeHTTP(w, r)
	})
}

func noRoute(probe *discardedAnswer) *problem.Problem {
	if probe.status == http.StatusMethodNotAllowed {
		allow := probe.header.Get("Allow")
		return problem.New(api.ProblemMethodNotAllowed, "this path takes %s", allow).WithHeader("Allow", allow)
	}
	if probe.status >= 300 && probe.status < 400 {
		return problem.New(api.ProblemUnknownPath, "there is nothing at this path: write it without empty parts, \".\" and \"..\"")
	}
	return problem.New(api.ProblemUnknownPath, "there is nothing at this path; %s describes the API", openAPIPath)
}

// discardedAnswer keeps the status and the headers of a response.
type discardedAnswer struct {
	header http.Header
	status int
}

// Header implements http.ResponseWriter.
func (d *discardedAnswer) Header() http.Header { return d.header }

// WriteHeader implements http.ResponseWriter.
func (d *discardedAnswer) WriteHeader(status int) { d.status = cmp.Or(d.status, status) }

// Write implements http.ResponseWriter.
func (d *discardedAnswer) Write(data []byte) (int, error) { return len(data), nil }
