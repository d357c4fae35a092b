package httpapi

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"log/slog"
	"net/http"
	"net/http/httputil"
	"net/url"
	"strconv"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

// Leader says which of several servers on one store decides.
type Leader interface {
	// Leads reports whether this one does.
	Leads() bool
	// URL is where the one that does is reached. The error says why nobody knows.
	URL(ctx context.Context) (*url.URL, error)
	// Servers are all of them, in the order in which they lead, as far as that can be
	// told.
	Servers(ctx context.Context) []api.ServerMember
	// Revision is the present revision of the store, whoever wrote it.
	Revision(ctx context.Context) (int64, error)
	// Transport connects to the others.
	Transport() http.RoundTripper
}

// forwardedHeader is on requests that another server passes on: they are not passed on
// once more.
const forwardedHeader = "Scheduler-Forwarded"

const settledPath = "/v1/settled"

// leading is what a server does for and by the one that leads. Without others it leads
// itself.
type leading struct {
	leader   Leader // nil where there is no other server
	waits    *waits
	sessions *auth.Sessions
	logger   *slog.Logger
	// together are heartbeats that catch up together: each on its own would ask the
	// store.
	together gather[chan<- struct{}]
}

func newLeading(o Options, w *waits, sessions *auth.Sessions) *leading {
	l := &leading{leader: o.Leader, waits: w, sessions: sessions, logger: o.Logger}
	faults := o.Faults.Component("heartbeats")
	l.together.moment = relayMoment
	l.together.hand = func(all []chan<- struct{}) {
		faults.Go("", func() { l.catchUp(w.stopping) })
		for _, done := range all {
			close(done)
		}
	}
	return l
}

func (l *leading) leads() bool { return l.leader == nil || l.leader.Leads() }

// elsewhere passes a request that only the server that leads can answer on to it,
// and reports whether it has done so, or said why it cannot.
func (l *leading) elsewhere(w http.ResponseWriter, r *http.Request) bool {
	if l.leads() {
		return false
	}
	if r.Header.Get(forwardedHeader) != "" {
		problem.Write(w, noLeader(errors.New("another server took this one for it")))
		return true
	}
	to, err := l.leader.URL(r.Context())
	if err != nil {
		problem.Write(w, noLeader(err))
		return true
	}
	note := requestOf(r.Context())
	id := note.id
	proxy := &httputil.ReverseProxy{
		Transport: l.leader.Transport(),
		Rewrite: func(p *httputil.ProxyRequest) {
			p.SetURL(to)
			p.Out.Header.Set(forwardedHeader, "true")
			p.Out.Header.Set("X-Request-Id", id)
		},
		ModifyResponse: func(answer *http.Response) error {
			answer.Header.Del("X-Request-Id") // stands there already
			note.server, note.picture = "", time.Time{}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			problem.Write(w, noLeader(fmt.Errorf("the server at %s, which leads, does not answer: %w", to.Redacted(), err)))
		},
		ErrorLog: log.New(io.Discard, "", 0), // the error handler says it
	}
	proxy.ServeHTTP(w, r)
	return true
}

// noLeader is the answer where only the server that leads could answer.
func noLeader(err error) *problem.Problem {
	return problem.Unavailable(fmt.Sprintf("there is no leader at the moment (%s): repeat the request", err))
}

// credentials of a request, for what this server asks the one that leads on its behalf.
type credentialsKey struct{}

// keepCredentials is around every request: it lets settle ask as whoever made the
// request.
func (l *leading) keepCredentials(next http.Handler) http.Handler {
	if l.leader == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), credentialsKey{}, r.Header.Get("Authorization"))))
	})
}

// settled is the answer of settledPath.
type settled struct {
	// ResourceVersion is a revision of the store that shows everything that follows.
	ResourceVersion string `json:"resource_version"`
}

// awaitSettled answers the other servers, as whoever wrote through one of them: anybody
// who may ask for anything may ask how far decisions have come. It is not part of the API.
func (l *leading) awaitSettled(a *operation.API) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown, err := l.shownSettled(r)
		if err != nil {
			problem.Write(w, a.Problem(r.Context(), err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(operation.EncodeJSON(settled{strconv.FormatInt(shown, 10)})) // the client went away: there is nobody to tell
	}
}

func (l *leading) shownSettled(r *http.Request) (int64, error) {
	wait, err := operation.ParseWait(r.URL.Query().Get("wait"), operation.DefaultWait)
	if err != nil {
		return 0, err
	}
	revision, err := operation.ParseRevision("resource_version", r.URL.Query().Get("resource_version"))
	if err != nil {
		return 0, err
	}
	if !l.leads() {
		return 0, noLeader(errors.New("another server took this one for it"))
	}
	bounded, cancel := l.waits.bounded(r.Context(), wait)
	defer cancel()
	if err := l.waits.settle(bounded, revision); err != nil {
		return 0, problem.Unavailable(fmt.Sprintf("the decisions that follow from revision %d have not been made yet: %s", revision, err))
	}
	return l.waits.fleet.Snapshot().Revision(), nil
}

// again is how soon the server that leads is asked again where nobody answers.
const again = 100 * time.Millisecond

// settle waits until the server that leads has decided what follows from a revision,
// and returns the revision that shows it. The error is that of ctx, with why nobody
// answered.
func (l *leading) settle(ctx context.Context, revision int64) (int64, error) {
	for {
		shown, err := l.askSettled(ctx, revision)
		if err == nil {
			return shown, nil
		}
		select {
		case <-ctx.Done():
			return 0, fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(again):
		}
		if l.leads() { // by now it is this one
			return revision, l.waits.settle(ctx, revision)
		}
	}
}

func (l *leading) askSettled(ctx context.Context, revision int64) (int64, error) {
	wait := operation.DefaultWait
	if deadline, ok := ctx.Deadline(); ok {
		wait = time.Until(deadline)
	}
	target := url.URL{Path: settledPath, RawQuery: url.Values{"resource_version": {strconv.FormatInt(revision, 10)}, "wait": {wait.Round(time.Millisecond).String()}}.Encode()}
	header := http.Header{}
	if credentials, ok := ctx.Value(credentialsKey{}).(string); ok && credentials != "" {
		header.Set("Authorization", credentials)
	}
	var answer settled
	if err := l.ask(ctx, http.MethodGet, target, header, nil, &answer); err != nil {
		return 0, err
	}
	return strconv.ParseInt(answer.ResourceVersion, 10, 64)
}

// ask sends the server that leads a request for a path and query, and decodes its answer.
func (l *leading) ask(ctx context.Context, method string, target url.URL, header http.Header, body io.Reader, answer any) error {
	to, err := l.leader.URL(ctx)
	if err != nil {
		return err
	}
	to = to.JoinPath(target.Path)
	to.RawQuery = target.RawQuery
	request, err := http.NewRequestWithContext(ctx, method, to.String(), body)
	if err != nil {
		return err
	}
	request.Header = header
	response, err := l.leader.Transport().RoundTrip(request)
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return fmt.Errorf("%s answers %s", to.Redacted(), response.Status)
	}
	if err := json.NewDecoder(response.Body).Decode(answer); err != nil {
		return fmt.Errorf("%s answers what cannot be read: %w", to.Redacted(), err)
	}
	return nil
}

// currentWait is how long a request waits at most for what was written before it
// began, through whichever server. Without the store it reads what there is; its age is
// on the answer.
const currentWait = 3 * time.Second

// current lets a request see everything that was acknowledged before it began, by any
// server.
func (l *leading) current(next http.Handler) http.Handler {
	if l.leader == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !open[r.URL.Path] {
			if isHeartbeat(r) {
				l.catchUpTogether(r.Context())
			} else {
				l.catchUp(r.Context())
			}
			// The token may have been revoked through another server a moment ago.
			if err := l.sessions.Check(r.Context()); err != nil {
				problem.Write(w, problem.Unauthorized(err.Error()))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// behind catches up where other servers may have written what is not known here, and
// reports whether they may have.
func (l *leading) behind(ctx context.Context) bool {
	if l.leader == nil {
		return false
	}
	l.catchUp(ctx)
	return true
}

// catchUpTogether is catchUp for a request that can wait a moment for others.
func (l *leading) catchUpTogether(ctx context.Context) {
	done := make(chan struct{})
	l.together.add(done)
	select {
	case <-done:
		l.waits.freshen(ctx)
	case <-ctx.Done():
	}
}

func (l *leading) catchUp(ctx context.Context) {
	bounded, cancel := l.waits.bounded(ctx, currentWait)
	defer cancel()
	revision, err := l.leader.Revision(bounded)
	if err == nil {
		_, err = l.waits.fleet.WaitRevision(bounded, revision)
	}
	if err != nil {
		l.logger.LogAttrs(ctx, slog.LevelDebug, "a request reads what may be old", slog.String("request_id", requestOf(ctx).id), slog.Any("error", err))
		return
	}
	l.waits.freshen(ctx)
}
