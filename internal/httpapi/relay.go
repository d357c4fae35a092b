package httpapi

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"path"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
	"github.com/scheduler/terraform-provider-scheduler/internal/lastseen"
	"github.com/scheduler/terraform-provider-scheduler/internal/recovery"
	clusterhealth "github.com/scheduler/terraform-provider-scheduler/internal/signal/health"
)

const (
	// relayPath is where servers send heartbeats to the leader. It is not part of the API. Requests
	// are authorized by being encrypted with the servers' key.
	relayPath = "/v1/heartbeats"
	// relayMoment is how long a heartbeat waits to be sent together with others.
	relayMoment = 25 * time.Millisecond
	// relayTime is how long a server tries to hand something to the leader.
	relayTime = 15 * time.Second
	// relayBytes is the approximate maximum size of one request.
	relayBytes = 1 << 20
	// relayWindow is how long a request is valid: the leader rejects older ones, and remembers the
	// nonces of the others.
	relayWindow = 30 * time.Second
)

// relayPause is the backoff before a server asks the leader again which heartbeats came through
// other servers. A leader of an older version never responds.
var relayPause = backoff.Backoff{First: time.Second, Most: 16 * time.Second}

// isHeartbeat reports whether a request is a heartbeat.
func isHeartbeat(r *http.Request) bool {
	ok, _ := path.Match("/v1/clusters/*/heartbeat", r.URL.Path) // the pattern is well-formed
	return ok && r.Method == http.MethodPost
}

// relay shares the load of agents among several servers: a server that does not lead checks
// permissions, and sends heartbeats to the leader in batches. In return it gets the times of
// heartbeats received by others.
type relay struct {
	leading *leaderClient
	signals Signals
	beats   *lastseen.Times
	fleet   *fleet.Fleet
	codec   Codec
	maxBody int64
	problem func(ctx context.Context, err error) *problem.Problem
	faults  *recovery.Component
	// id identifies this run of the server, with its notes and what is sent to it.
	id string
	// began is the zero of this server's clock for requests, which it reads from now.
	began  time.Time
	now    func() time.Time
	nonces nonces

	relayed gather[*relayed]
	// reaches says that the leader accepts batches: it is reachable and not of an older version.
	reaches atomic.Bool

	mu     sync.Mutex
	leader string        // guarded by mu: ID of the leader
	clock  time.Duration // guarded by mu: the leader's clock when it last responded
	next   int64         // guarded by mu: number of the leader's note to continue after
}

// relayed is a heartbeat that waits for the leader's response.
type relayed struct {
	Cluster string `json:"cluster"`
	// Report is as the agent wrote it: an absent report and an empty object are different.
	Report json.RawMessage `json:"report,omitempty"`
	answer chan relayAnswer
}

// relayAnswer is the result of a heartbeat.
type relayAnswer struct {
	Revision int64        `json:"revision,omitempty"`
	Problem  *api.Problem `json:"problem,omitempty"`
}

// relayRequest is the encrypted content.
type relayRequest struct {
	// Leader is the recipient. It accepts no heartbeats meant for another one.
	Leader string `json:"leader"`
	// Clock is the recipient's clock when it last responded, and Nonce is different in every
	// request: a request that somebody recorded is not accepted again.
	Clock      time.Duration `json:"clock"`
	Nonce      string        `json:"nonce"`
	After      int64         `json:"after"`
	Heartbeats []*relayed    `json:"heartbeats,omitempty"`
}

type relayResponse struct {
	Leader string        `json:"leader"`
	Clock  time.Duration `json:"clock"`
	// Again says that nothing was done, because the request was for another leader or is too old.
	// It can be repeated with the leader and the clock of this response.
	Again   bool                     `json:"again,omitempty"`
	Next    int64                    `json:"next"`
	Answers []relayAnswer            `json:"answers,omitempty"`
	Beats   map[string]lastseen.Beat `json:"beats,omitempty"`
}

func newRelay(l *leaderClient, o Options, problemOf func(context.Context, error) *problem.Problem) *relay {
	r := &relay{
		leading: l, signals: o.Signals, beats: o.Beats, fleet: o.Fleet, codec: o.Codec, maxBody: o.MaxBodyBytes,
		problem: problemOf, faults: o.Faults.Component("heartbeats"), id: rand.Text(), began: o.Now(), now: o.Now,
	}
	r.relayed.moment, r.relayed.hand = relayMoment, r.hand
	return r
}

// takes reports whether heartbeats are taken here, to be handed over or not.
func (r *relay) takes() bool { return r.leading.leads() || r.reaches.Load() }

// heartbeat accepts the report in the body of a heartbeat, on any server.
func (r *relay) heartbeat(ctx context.Context, cluster string, body []byte) (int64, error) {
	report, err := decodeReport(body)
	if err != nil {
		return 0, err
	}
	if r.leading.leads() {
		return r.signals.Heartbeat(ctx, cluster, report)
	}
	one := &relayed{cluster, body, make(chan relayAnswer, 1)}
	r.relayed.add(one)
	select {
	case answer := <-one.answer:
		if answer.Problem != nil && answer.Problem.Status == http.StatusServiceUnavailable {
			return 0, problem.Unavailable(answer.Problem.Detail)
		}
		if answer.Problem != nil {
			return 0, &problem.Problem{Problem: *answer.Problem}
		}
		return answer.Revision, nil
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

// hand sends heartbeats to the leader, and answers all of them.
func (r *relay) hand(all []*relayed) {
	for len(all) > 0 {
		n, size := 0, 0
		for n < len(all) && (n == 0 || size < relayBytes) {
			size += len(operation.EncodeJSON(all[n]))
			n++
		}
		r.handSome(all[:n])
		all = all[n:]
	}
}

func (r *relay) handSome(all []*relayed) {
	answers, err := []relayAnswer(nil), errors.New("it was not forwarded to the leader")
	r.faults.Go("", func() {
		ctx, cancel := r.leading.waiter.bounded(context.Background(), r.leading.patience)
		defer cancel()
		answers, err = r.deliver(ctx, all)
	})
	for i, one := range all {
		if err != nil {
			p := noLeader(err).Problem
			one.answer <- relayAnswer{Problem: &p}
			continue
		}
		one.answer <- answers[i]
	}
}

// deliver hands heartbeats to the leader, or to the next one if it does not respond, which may be
// this server.
func (r *relay) deliver(ctx context.Context, all []*relayed) ([]relayAnswer, error) {
	for {
		answers, err := r.exchange(ctx, all)
		if err == nil || !backoff.Wait(ctx, again) {
			return answers, err
		}
		if r.leading.leads() {
			return r.takeAll(ctx, all), nil
		}
	}
}

// run stays in contact with the leader until ctx is done.
func (r *relay) run(ctx context.Context) {
	if r.leading.others == nil {
		return
	}
	failures := 0
	for {
		failures++
		if r.leading.leads() || r.keepInTouch(ctx) {
			failures = 0
		}
		r.beats.Keep(r.fleet.Snapshot().Len(api.KindCluster), func(cluster string) bool {
			return r.fleet.Snapshot().Get(api.Key{Kind: api.KindCluster, Name: cluster}) != nil
		})
		if !backoff.Wait(ctx, relayPause.After(failures)) {
			return
		}
	}
}

// keepInTouch reports whether the leader responds.
func (r *relay) keepInTouch(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, relayTime)
	defer cancel()
	_, err := r.exchange(ctx, nil)
	return err == nil
}

// exchange sends heartbeats to the leader, and receives the times that it knows from others. A new
// leader first says who it is.
func (r *relay) exchange(ctx context.Context, all []*relayed) ([]relayAnswer, error) {
	for range 2 {
		r.mu.Lock()
		request := relayRequest{Leader: r.leader, Clock: r.clock, Nonce: rand.Text(), After: r.next, Heartbeats: all}
		r.mu.Unlock()
		answer, err := r.ask(ctx, request)
		if err != nil {
			r.reaches.Store(false)
			return nil, err
		}
		for cluster, beat := range answer.Beats {
			r.beats.Note(cluster, beat)
		}
		r.mu.Lock()
		r.leader, r.clock = answer.Leader, answer.Clock
		if !answer.Again {
			r.next = answer.Next
		} else if answer.Leader != request.Leader {
			r.next = 0
		}
		r.mu.Unlock()
		if !answer.Again && answer.Leader == request.Leader && len(answer.Answers) == len(all) {
			r.reaches.Store(true)
			return answer.Answers, nil
		}
	}
	r.reaches.Store(false)
	return nil, errors.New("another server has just become the leader")
}

// relaySeal is what encrypted requests are bound to.
var relaySeal = api.Key{Kind: "heartbeats"}

func (r *relay) ask(ctx context.Context, request relayRequest) (*relayResponse, error) {
	sealed := r.codec.Seal(relaySeal, "request", string(operation.EncodeJSON(request)))
	header := http.Header{"Accept-Encoding": {"identity"}} // compression is not worth the effort
	var response relayResponse
	if err := r.leading.ask(ctx, http.MethodPost, url.URL{Path: relayPath}, header, strings.NewReader(sealed), &response); err != nil {
		return nil, err
	}
	return &response, nil
}

// serve responds to another server's exchange.
func (r *relay) serve(w http.ResponseWriter, req *http.Request) {
	request, err := r.read(w, req)
	if err != nil {
		problem.Write(w, r.problem(req.Context(), err))
		return
	}
	if !r.leading.leads() {
		notLeading(w)
		return
	}
	response, err := r.respond(req.Context(), request)
	if err != nil {
		problem.Write(w, r.problem(req.Context(), err))
		return
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(operation.EncodeJSON(response)) // fails if the other server has gone away
}

// respond does what a request asks for, once.
func (r *relay) respond(ctx context.Context, request *relayRequest) (*relayResponse, error) {
	clock := r.now().Sub(r.began)
	response := &relayResponse{Leader: r.id, Clock: clock}
	if request.Leader != r.id || request.Clock < clock-relayWindow || request.Clock > clock {
		response.Again = true
		return response, nil
	}
	if !r.nonces.isNew(request.Nonce, clock) {
		return nil, problem.New(api.ProblemForbidden, "this request was made before, or has no nonce: each is accepted once")
	}
	response.Answers = r.takeAll(ctx, request.Heartbeats)
	response.Beats, response.Next = r.beats.Since(request.After)
	return response, nil
}

func (r *relay) read(w http.ResponseWriter, req *http.Request) (*relayRequest, error) {
	// Encryption makes a text a third longer.
	sealed, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 2*(relayBytes+r.maxBody)))
	if err != nil {
		return nil, err
	}
	text, err := r.codec.Unseal(relaySeal, "request", string(sealed))
	if err != nil {
		return nil, problem.New(api.ProblemForbidden, "only other servers may send this request")
	}
	var request relayRequest
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		return nil, err
	}
	return &request, nil
}

// takeAll processes heartbeats concurrently, because those with changes are written.
func (r *relay) takeAll(ctx context.Context, all []*relayed) []relayAnswer {
	answers := make([]relayAnswer, len(all))
	var taken sync.WaitGroup
	for i, one := range all {
		taken.Go(func() {
			key := api.Key{Kind: api.KindCluster, Name: one.Cluster}
			err := r.faults.Do(key.String(), func() error {
				report, err := decodeReport(one.Report)
				if err == nil {
					answers[i].Revision, err = r.signals.Heartbeat(ctx, one.Cluster, report)
				}
				return err
			})
			if errors.Is(err, clusterhealth.ErrNotFound) {
				err = problem.NotFound(key, false) // deleted in between
			}
			if err != nil {
				p := r.problem(ctx, err).Problem
				answers[i].Problem = &p
			}
		})
	}
	taken.Wait()
	return answers
}
