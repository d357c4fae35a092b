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

// Leader determines which of several servers on one store decides.
type Leader interface {
	// Leads reports whether this server leads.
	Leads() bool
	// URL returns the address of the leader. The error says why it is unknown.
	URL(ctx context.Context) (*url.URL, error)
	// Servers returns all servers in the order in which they lead, as far as known.
	Servers(ctx context.Context) []api.ServerMember
	// Revision returns the current revision of the store, whoever wrote it.
	Revision(ctx context.Context) (int64, error)
	// Transport connects to the other servers.
	Transport() http.RoundTripper
}

// forwardedHeader is set on requests that another server forwarded, so that they are not forwarded
// again. Its value is encrypted with the servers' key: in a request of anybody else it means
// nothing.
const forwardedHeader = "Scheduler-Forwarded"

// forwardedSeal is what the value of forwardedHeader is bound to.
var forwardedSeal = api.Key{Kind: "forwarded"}

// isForwarded reports whether another server forwarded a request.
func isForwarded(codec Codec, r *http.Request) bool {
	value := r.Header.Get(forwardedHeader)
	if value == "" {
		return false
	}
	_, err := codec.Unseal(forwardedSeal, "request", value)
	return err == nil
}

const settledPath = "/v1/settled"

// leading implements what a server does for and through the leader. A single server leads itself.
type leading struct {
	leader   Leader // nil if there are no other servers
	waits    *waits
	sessions *auth.Sessions
	codec    Codec
	logger   *slog.Logger
	// together are requests that catch up together instead of each asking the store.
	together gather[chan<- struct{}]
}

func newLeading(o Options, w *waits, sessions *auth.Sessions) *leading {
	l := &leading{leader: o.Leader, waits: w, sessions: sessions, codec: o.Codec, logger: o.Logger}
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

// elsewhere forwards a request that only the leader can serve, and reports whether it has done so
// or has responded with an error.
func (l *leading) elsewhere(w http.ResponseWriter, r *http.Request) bool {
	if l.leads() {
		return false
	}
	if isForwarded(l.codec, r) {
		problem.Write(w, noLeader(errors.New("another server considered this one the leader")))
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
			p.Out.Header.Set(forwardedHeader, l.codec.Seal(forwardedSeal, "request", id))
			p.Out.Header.Set("X-Request-Id", id)
		},
		ModifyResponse: func(answer *http.Response) error {
			answer.Header.Del("X-Request-Id") // already set
			note.server, note.picture = "", time.Time{}
			return nil
		},
		ErrorHandler: func(w http.ResponseWriter, _ *http.Request, err error) {
			problem.Write(w, noLeader(fmt.Errorf("the leader at %s does not respond: %w", to.Redacted(), err)))
		},
		ErrorLog: log.New(io.Discard, "", 0), // reported by the error handler
	}
	proxy.ServeHTTP(w, r)
	return true
}

// noLeader returns the problem if only the leader could respond.
func noLeader(err error) *problem.Problem {
	return problem.Unavailable(fmt.Sprintf("there is no leader at the moment (%s): repeat the request", err))
}

// credentialsKey is the context key of a request's credentials, which this server uses to ask the
// leader on its behalf.
type credentialsKey struct{}

// keepCredentials stores the credentials of every request in its context, for settle.
func (l *leading) keepCredentials(next http.Handler) http.Handler {
	if l.leader == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), credentialsKey{}, r.Header.Get("Authorization"))))
	})
}

// settled is the response of settledPath.
type settled struct {
	// ResourceVersion is a store revision that shows all resulting decisions.
	ResourceVersion string `json:"resource_version"`
}

// awaitSettled serves other servers on behalf of whoever wrote through one of them: everybody with
// access to anything may ask how far decisions have come. It is not part of the API.
func (l *leading) awaitSettled(a *operation.API) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		shown, err := l.shownSettled(r)
		if err != nil {
			problem.Write(w, a.Problem(r.Context(), err))
			return
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(operation.EncodeJSON(settled{strconv.FormatInt(shown, 10)})) // fails if the client has gone away
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
		return 0, noLeader(errors.New("another server considered this one the leader"))
	}
	l.waits.tracer.Caused(r.Context(), revision)
	bounded, cancel := l.waits.bounded(r.Context(), wait)
	defer cancel()
	if err := l.waits.settle(bounded, revision); err != nil {
		return 0, problem.Unavailable(fmt.Sprintf("the decisions that follow from revision %d have not been made yet: %s", revision, err))
	}
	return l.waits.fleet.Snapshot().Revision(), nil
}

// again is the delay before asking the leader again if it does not respond.
const again = 100 * time.Millisecond

// settle waits until the leader has decided what follows from a revision, and returns the revision
// that shows it. The error is that of ctx, with the reason why nobody responded.
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
		if l.leads() { // this server leads by now
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

// ask sends a request to the leader, and decodes its response.
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
		return fmt.Errorf("the response of %s cannot be read: %w", to.Redacted(), err)
	}
	return nil
}

// currentWait is the maximum time that a request waits for what was written before it through any
// server. Without the store, it reads what is in memory; the response contains its age.
const currentWait = 3 * time.Second

// current makes a request see everything that was acknowledged before it began, by any server.
func (l *leading) current(next http.Handler) http.Handler {
	if l.leader == nil {
		return next
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !isOpen(r.URL.Path) {
			if isHeartbeat(r) {
				l.catchUpTogether(r.Context())
			} else {
				l.catchUp(r.Context())
			}
			// The token may just have been revoked through another server.
			if err := l.sessions.Check(r.Context()); err != nil {
				problem.Write(w, problem.Unauthorized(err.Error()))
				return
			}
		}
		next.ServeHTTP(w, r)
	})
}

// behind catches up if other servers may have written something that is not known here, and reports
// whether they may have.
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
		l.logger.LogAttrs(ctx, slog.LevelDebug, "a request reads possibly outdated data", slog.String("request_id", requestOf(ctx).id), slog.Any("error", err))
		return
	}
	l.waits.freshen(ctx)
}
