package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// attempts is what the attempts of one call share. Attempts run one after the
// other, so it needs no lock.
type attempts struct {
	endpoints *endpoints
	path      string        // of the API
	timeout   time.Duration // of one attempt; 0 = none
	// at is the endpoint of the attempt under way, and failures are what came of the
	// last attempt at each that got no answer.
	at         int
	failures   []error
	count      int // of attempts that failed
	repeatable bool
	// uncertain is set when an attempt broke off: the server may have carried it
	// out all the same.
	uncertain bool
	// lost returns an error once the server is lost, which ends all repetition.
	lost func() error
	// once says that there is one attempt, impatient that one without an answer in
	// time is the last.
	once, impatient bool
}

// failed notes that an attempt at an endpoint did not succeed, and goes on with the
// next one. It reports whether one of the others has not been tried since the last
// pause.
func (a *attempts) failed(err error) (more bool) {
	a.failures[a.at] = err
	a.count++
	a.endpoints.leave(a.at)
	return a.count%len(a.endpoints.bases) != 0
}

// over reports that nothing is tried any more.
func (a *attempts) over() bool { return a.lost() != nil }

type attemptsKey struct{}

func withAttempts(ctx context.Context, a *attempts) context.Context {
	return context.WithValue(ctx, attemptsKey{}, a)
}

func attemptsOf(ctx context.Context) *attempts {
	a, _ := ctx.Value(attemptsKey{}).(*attempts)
	return a
}

// checkRetry decides whether another attempt is made.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	a := attemptsOf(ctx)
	if err == nil {
		return a.afterAnswer(resp), nil
	}
	return a.afterError(ctx, err)
}

// afterError decides whether another attempt follows one that got no answer.
func (a *attempts) afterError(ctx context.Context, err error) (bool, error) {
	delivered, more := !notDelivered(err), a.failed(err)
	a.uncertain = a.uncertain || delivered
	switch {
	case delivered && !a.repeatable, a.over():
		return false, nil
	case more:
		return true, nil
	}
	// The library knows the errors that stay: a certificate nobody trusts, a
	// malformed address.
	passes, why := retryablehttp.DefaultRetryPolicy(ctx, nil, err)
	return passes && !a.once && (!a.impatient || !errors.Is(err, context.DeadlineExceeded)), why
}

// afterAnswer decides whether another attempt follows an answer.
func (a *attempts) afterAnswer(resp *http.Response) bool {
	if a.over() || loginRefused(resp) {
		return false
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return !a.once // by all servers alike: the next one is not asked in its place
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		again := a.failed(nil) || !a.once
		if resp.StatusCode == http.StatusServiceUnavailable && !unconfirmed(resp) {
			return again
		}
		// The store did not confirm the write, or a proxy lost the server, perhaps after
		// it had passed the request on.
		a.uncertain = true
		return again && a.repeatable
	}
	return false
}

// unconfirmed reports the answer of a server whose store did not say whether it has
// written: it may have.
func unconfirmed(resp *http.Response) bool {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	resp.Body = &readBody{io.MultiReader(bytes.NewReader(data), resp.Body), resp.Body}
	var problem api.Problem
	return err == nil && json.Unmarshal(data, &problem) == nil && problem.Type == api.ProblemUnconfirmed
}

// readBody is a body of which a part was read before.
type readBody struct {
	io.Reader
	io.Closer
}

// notDelivered reports that the request certainly never reached the server.
func notDelivered(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || (errors.As(err, &op) && op.Op == "dial")
}

// backoff is how long to wait before the next attempt: not at all while one of several
// servers is left to try, then exponentially longer, or what the server asks for with
// Retry-After, but never longer than maxRetryDelay: the user's own time limit decides
// the rest.
func (e *endpoints) backoff(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	busy := resp != nil && resp.StatusCode == http.StatusTooManyRequests
	if n := len(e.bases); (attempt+1)%n != 0 && !busy {
		return 0
	}
	return min(retryablehttp.DefaultBackoff(least, most, attempt/len(e.bases), resp), most)
}

// attemptTransport sends every attempt to the endpoint that is in use, and gives it its
// own time limit, the reading of the answer included.
type attemptTransport struct {
	next      http.RoundTripper
	endpoints *endpoints
	observe   func(context.Context, Attempt)
}

// RoundTrip implements http.RoundTripper.
func (t attemptTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	a := attemptsOf(req.Context())
	if a == nil {
		return t.next.RoundTrip(req)
	}
	ctx, cancel := req.Context(), context.CancelFunc(func() {})
	if a.timeout > 0 {
		ctx, cancel = context.WithTimeout(ctx, a.timeout)
	}
	req = req.Clone(ctx)
	if a.timeout > 0 {
		req.Header.Set(api.RequestTimeoutHeader, timeLeft(ctx).String())
	}
	if req.Response == nil { // else it goes where a server has sent it
		a.at = t.endpoints.current()
		target := t.endpoints.bases[a.at].JoinPath(a.path)
		target.RawQuery = req.URL.RawQuery
		req.URL, req.Host = target, ""
	}
	resp, err := t.observed(req, a)
	if err != nil {
		cancel()
		return nil, err
	}
	resp.Body = &cancelingBody{resp.Body, cancel}
	return resp, nil
}

// timeLeft is how long the server may take: until the attempt ends, or the caller
// gives up before.
func timeLeft(ctx context.Context) time.Duration {
	deadline, _ := ctx.Deadline() // every attempt has one
	return max(time.Until(deadline), time.Millisecond).Round(time.Millisecond)
}

func (t attemptTransport) observed(req *http.Request, a *attempts) (*http.Response, error) {
	if t.observe == nil {
		return t.next.RoundTrip(req)
	}
	started := time.Now()
	resp, err := t.next.RoundTrip(req)
	attempt := Attempt{
		Endpoint: t.endpoints.names[a.at], Method: req.Method, Path: req.URL.Path, Err: err, Duration: time.Since(started),
	}
	if resp != nil {
		attempt.Status, attempt.Server = resp.StatusCode, resp.Header.Get(api.ServerHeader)
	}
	t.observe(req.Context(), attempt)
	return resp, err
}

// CloseIdleConnections lets http.Client reach the transport below.
func (t attemptTransport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close ends the attempt.
func (b *cancelingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
