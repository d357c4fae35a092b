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
	"github.com/scheduler/terraform-provider-scheduler/internal/fault"
	"github.com/scheduler/terraform-provider-scheduler/internal/fleet"
	"github.com/scheduler/terraform-provider-scheduler/internal/heartbeat"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/operation"
	"github.com/scheduler/terraform-provider-scheduler/internal/httpapi/problem"
)

const (
	// relayPath is where servers hand heartbeats to the one that leads. It is not part
	// of the API. Who may use it shows in that the body is sealed with the servers' key.
	relayPath = "/v1/heartbeats"
	// relayMoment is how long a heartbeat waits for others to go along with.
	relayMoment = 25 * time.Millisecond
	// relayTime is how long the server that leads may take.
	relayTime = 15 * time.Second
	// relayBytes is about how much is handed over at once.
	relayBytes = 1 << 20
)

// relayPause is how long a server waits before it asks the one that leads again which
// heartbeats came through the others. One of an older version never answers.
var relayPause = backoff.Backoff{First: time.Second, Most: 16 * time.Second}

// isHeartbeat reports whether a request is a heartbeat.
func isHeartbeat(r *http.Request) bool {
	ok, _ := path.Match("/v1/clusters/*/heartbeat", r.URL.Path) // the pattern is well-formed
	return ok && r.Method == http.MethodPost
}

// relay shares the load of agents among several servers: one that does not lead decides
// who may report, and hands heartbeats to the one that leads, many at a time. In return
// it learns when clusters were last heard of by others.
type relay struct {
	leading *leading
	signals Signals
	beats   *heartbeat.Times
	fleet   *fleet.Fleet
	codec   Codec
	maxBody int64
	problem func(ctx context.Context, err error) *problem.Problem
	faults  *fault.Component
	// id tells this life of the server from others: of its notes and of what is
	// handed to it.
	id string

	relayed gather[*relayed]
	// reaches says that the server that leads takes what is handed to it: it is
	// reached, and not of an older version.
	reaches atomic.Bool

	mu     sync.Mutex
	leader string // guarded by mu: id of the server that leads
	next   int64  // guarded by mu: number of its note to go on after
}

// relayed is a heartbeat that waits for the answer of the server that leads.
type relayed struct {
	Cluster string `json:"cluster"`
	// Report is as the agent wrote it: nothing and an empty object are two things.
	Report json.RawMessage `json:"report,omitempty"`
	answer chan relayAnswer
}

// relayAnswer is what became of a heartbeat.
type relayAnswer struct {
	Revision int64        `json:"revision,omitempty"`
	Problem  *api.Problem `json:"problem,omitempty"`
}

// relayRequest is what is sealed.
type relayRequest struct {
	// Leader is who it is for. It takes no heartbeats that were meant for another.
	Leader     string     `json:"leader"`
	After      int64      `json:"after"`
	Heartbeats []*relayed `json:"heartbeats,omitempty"`
}

type relayResponse struct {
	Leader  string                    `json:"leader"`
	Next    int64                     `json:"next"`
	Answers []relayAnswer             `json:"answers,omitempty"`
	Beats   map[string]heartbeat.Beat `json:"beats,omitempty"`
}

func newRelay(l *leading, o Options, problemOf func(context.Context, error) *problem.Problem) *relay {
	r := &relay{
		leading: l, signals: o.Signals, beats: o.Beats, fleet: o.Fleet, codec: o.Codec, maxBody: o.MaxBodyBytes,
		problem: problemOf, faults: o.Faults.Component("heartbeats"), id: rand.Text(),
	}
	r.relayed.moment, r.relayed.hand = relayMoment, r.hand
	return r
}

// takes reports whether heartbeats are taken here, to be handed over or not.
func (r *relay) takes() bool { return r.leading.leads() || r.reaches.Load() }

// heartbeat takes the report in the body of a heartbeat, on whichever server.
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

// hand hands heartbeats to the server that leads, and answers all of them.
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
	answers, err := []relayAnswer(nil), errors.New("it was not handed over")
	r.faults.Go("", func() {
		ctx, cancel := r.leading.waits.bounded(context.Background(), relayTime)
		defer cancel()
		answers, err = r.exchange(ctx, all)
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

// run keeps in touch with the server that leads, until ctx ends.
func (r *relay) run(ctx context.Context) {
	if r.leading.leader == nil {
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

// keepInTouch reports whether the server that leads answers.
func (r *relay) keepInTouch(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, relayTime)
	defer cancel()
	_, err := r.exchange(ctx, nil)
	return err == nil
}

// exchange gives heartbeats to the server that leads, and takes what it knows of others.
func (r *relay) exchange(ctx context.Context, all []*relayed) ([]relayAnswer, error) {
	r.mu.Lock()
	request := relayRequest{Leader: r.leader, After: r.next, Heartbeats: all}
	r.mu.Unlock()
	answer, err := r.ask(ctx, request)
	known := err == nil && answer.Leader == request.Leader
	r.reaches.Store(known)
	if err != nil {
		return nil, err
	}
	for cluster, beat := range answer.Beats {
		r.beats.Note(cluster, beat)
	}
	r.mu.Lock()
	r.leader, r.next = answer.Leader, answer.Next
	r.mu.Unlock()
	if len(answer.Answers) != len(all) {
		return nil, errors.New("another server leads since a moment ago")
	}
	return answer.Answers, nil
}

// relaySeal is what sealed requests are bound to.
var relaySeal = api.Key{Kind: "heartbeats"}

func (r *relay) ask(ctx context.Context, request relayRequest) (*relayResponse, error) {
	sealed := r.codec.Seal(relaySeal, "request", string(operation.EncodeJSON(request)))
	header := http.Header{"Accept-Encoding": {"identity"}} // compression is not worth the work
	var response relayResponse
	if err := r.leading.ask(ctx, http.MethodPost, url.URL{Path: relayPath}, header, strings.NewReader(sealed), &response); err != nil {
		return nil, err
	}
	return &response, nil
}

// serve answers another server's exchange.
func (r *relay) serve(w http.ResponseWriter, req *http.Request) {
	request, err := r.read(w, req)
	if err != nil {
		problem.Write(w, r.problem(req.Context(), err))
		return
	}
	if !r.leading.leads() {
		problem.Write(w, noLeader(errors.New("another server took this one for it")))
		return
	}
	response := relayResponse{Leader: r.id}
	if request.Leader == r.id {
		response.Answers = r.takeAll(req.Context(), request.Heartbeats)
	} else {
		request.After = 0
	}
	response.Beats, response.Next = r.beats.Since(request.After)
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(operation.EncodeJSON(response)) // the other server went away: there is nobody to tell
}

func (r *relay) read(w http.ResponseWriter, req *http.Request) (*relayRequest, error) {
	// Sealed, a text takes a third more.
	sealed, err := io.ReadAll(http.MaxBytesReader(w, req.Body, 2*(relayBytes+r.maxBody)))
	if err != nil {
		return nil, err
	}
	text, err := r.codec.Unseal(relaySeal, "request", string(sealed))
	if err != nil {
		return nil, problem.New(api.ProblemForbidden, "only the servers themselves may ask this")
	}
	var request relayRequest
	if err := json.Unmarshal([]byte(text), &request); err != nil {
		return nil, err
	}
	return &request, nil
}

// takeAll takes heartbeats side by side: what says something new is written, and that
// takes a while.
func (r *relay) takeAll(ctx context.Context, all []*relayed) []relayAnswer {
	answers := make([]relayAnswer, len(all))
	var taken sync.WaitGroup
	for i, one := range all {
		taken.Go(func() {
			err := r.faults.Do(api.Key{Kind: api.KindCluster, Name: one.Cluster}.String(), func() error {
				report, err := decodeReport(one.Report)
				if err == nil {
					answers[i].Revision, err = r.signals.Heartbeat(ctx, one.Cluster, report)
				}
				return err
			})
			if err != nil {
				p := r.problem(ctx, err).Problem
				answers[i].Problem = &p
			}
		})
	}
	taken.Wait()
	return answers
}
