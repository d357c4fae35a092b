package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"strconv"
	"syscall"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// attempts is the state shared by the attempts of one call. Attempts are sequential, so it needs no
// lock.
type attempts struct {
	endpoints *endpoints
	path      string        // of the API
	timeout   time.Duration // of one attempt; 0 = none
	// at is the endpoint of the current attempt. failures are the errors of the last attempts at
	// endpoints that did not respond.
	at         int
	failures   []error
	count      int // failed attempts
	repeatable bool
	// uncertain is set when the connection of an attempt broke: the server may have executed the
	// request.
	uncertain bool
	// lost returns an error if the server is lost, which ends all retries.
	lost func() error
	// once allows a single attempt, unless its connection is reset. impatient ends retries after a
	// timeout.
	once, impatient bool
	began           time.Time // of the current attempt
}

// failed records that an attempt at an endpoint failed, and switches to the next one. It reports
// whether there is an endpoint that has not been tried since the last pause.
func (a *attempts) failed(err error) (more bool) {
	a.failures[a.at] = err
	a.count++
	a.endpoints.leave(a.at)
	return a.count%len(a.endpoints.bases) != 0
}

// over reports whether no further attempts are made.
func (a *attempts) over() bool { return a.lost() != nil }

type attemptsKey struct{}

func withAttempts(ctx context.Context, a *attempts) context.Context {
	return context.WithValue(ctx, attemptsKey{}, a)
}

func attemptsOf(ctx context.Context) *attempts {
	a, _ := ctx.Value(attemptsKey{}).(*attempts)
	return a
}

// checkRetry decides whether to retry.
func checkRetry(ctx context.Context, resp *http.Response, err error) (bool, error) {
	a := attemptsOf(ctx)
	if ctx.Err() != nil {
		if err != nil && errors.Is(ctx.Err(), context.DeadlineExceeded) {
			// A caller whose time is shorter than that of an attempt would wait for this
			// server for ever: the next call goes to another one.
			a.endpoints.leave(a.at)
		}
		return false, ctx.Err()
	}
	if err == nil {
		return a.afterAnswer(resp), nil
	}
	return a.afterError(ctx, err)
}

// afterError decides whether to retry after an attempt without a response.
func (a *attempts) afterError(ctx context.Context, err error) (bool, error) {
	delivered, more := !notDelivered(err), a.failed(err)
	a.uncertain = a.uncertain || delivered
	switch {
	case delivered && !a.repeatable, a.over():
		return false, nil
	case more:
		return true, nil
	}
	// The library recognizes permanent errors, such as an untrusted certificate or a malformed
	// address.
	passes, why := retryablehttp.DefaultRetryPolicy(ctx, nil, err)
	return passes && (!a.once || isReset(err)) && (!a.impatient || !errors.Is(err, context.DeadlineExceeded)), why
}

// afterAnswer decides whether to retry after a response.
func (a *attempts) afterAnswer(resp *http.Response) bool {
	if a.over() || loginRefused(resp) {
		return false
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests:
		return !a.once // all servers would respond alike, so the next one is not tried instead
	case http.StatusServiceUnavailable, http.StatusBadGateway, http.StatusGatewayTimeout:
		again := a.failed(nil) || !a.once
		if resp.StatusCode == http.StatusServiceUnavailable && !unconfirmed(resp) {
			return again
		}
		// The store did not confirm the write, or a proxy lost the connection to the server,
		// perhaps after forwarding the request.
		a.uncertain = true
		return again && a.repeatable
	}
	// If no endpoint has newer data, this response is used.
	return a.count < len(a.endpoints.bases) && a.isOld(resp) && a.failed(nil)
}

// maxAge is how old the data of one of several servers may be. With older data, the server cannot reach the store, and
// is not ready either.
const maxAge = 3 * time.Second

// isOld reports whether a response shows older data than another server may have. The next pages of a list show what the
// first one did, at every server.
func (a *attempts) isOld(resp *http.Response) bool {
	if resp.Request.Method != http.MethodGet || resp.Request.URL.Query().Has("continue") {
		return false
	}
	age, err := strconv.ParseInt(resp.Header.Get(api.LastContactHeader), 10, 64)
	return err == nil && time.Duration(age)*time.Millisecond > maxAge+time.Since(a.began)
}

// unconfirmed reports whether a server's store did not confirm whether it has written: it may have.
func unconfirmed(resp *http.Response) bool {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	resp.Body = &readBody{io.MultiReader(bytes.NewReader(data), resp.Body), resp.Body}
	var problem api.Problem
	return err == nil && json.Unmarshal(data, &problem) == nil && problem.Type == api.ProblemUnconfirmed
}

// readBody is a body of which a part has been read.
type readBody struct {
	io.Reader
	io.Closer
}

// isReset reports whether a connection broke off: something listens, and the next one may hold.
func isReset(err error) bool {
	return errors.Is(err, syscall.ECONNRESET) || errors.Is(err, syscall.EPIPE) || errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF)
}

// notDelivered reports whether the request certainly never reached the server.
func notDelivered(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || (errors.As(err, &op) && op.Op == "dial")
}

// backoff returns the delay before the next attempt: none while one of several servers has not been
// tried, otherwise exponentially increasing, or what the server requests with Retry-After, but at
// most maxRetryDelay, because the user's own timeout limits the total.
func (e *endpoints) backoff(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	busy := resp != nil && resp.StatusCode == http.StatusTooManyRequests
	if n := len(e.bases); (attempt+1)%n != 0 && !busy {
		return 0
	}
	return min(retryablehttp.DefaultBackoff(least, most, attempt/len(e.bases), resp), most)
}

// attemptTransport sends every attempt to the endpoint in use, with its own timeout, which includes
// reading the response.
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
	if req.Response == nil { // not a redirect
		a.at, a.began = t.endpoints.current(), time.Now()
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

// timeLeft returns how long the server may take: until the timeout of the attempt or of the caller,
// whichever is earlier.
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

// CloseIdleConnections forwards to the underlying transport.
func (t attemptTransport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

type cancelingBody struct {
	io.ReadCloser
	cancel context.CancelFunc
}

// Close cancels the attempt's context.
func (b *cancelingBody) Close() error {
	defer b.cancel()
	return b.ReadCloser.Close()
}
