package client

import (
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"syscall"
	"time"

	"github.com/hashicorp/go-retryablehttp"
)

// attempts is what the attempts of one call share. Attempts run one after the
// other, so it needs no lock.
type attempts struct {
	timeout    time.Duration // of one attempt; 0 = none
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

// over reports that nothing is repeated, whatever came of an attempt.
func (a *attempts) over() bool { return a.once || a.lost() != nil }

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
	if err != nil {
		delivered := !notDelivered(err)
		a.uncertain = a.uncertain || delivered
		switch {
		case delivered && !a.repeatable, a.over():
			return false, nil
		case a.impatient && errors.Is(err, context.DeadlineExceeded):
			return false, nil
		}
		// The library knows the errors that stay: a certificate nobody trusts, a
		// malformed address.
		return retryablehttp.DefaultRetryPolicy(ctx, nil, err)
	}
	if a.over() || loginRefused(resp) {
		return false, nil
	}
	switch resp.StatusCode {
	case http.StatusTooManyRequests, http.StatusServiceUnavailable:
		return true, nil
	case http.StatusBadGateway, http.StatusGatewayTimeout:
		// A proxy lost the server, perhaps after it had passed the request on.
		a.uncertain = true
		return a.repeatable, nil
	}
	return false, nil
}

// notDelivered reports that the request certainly never reached the server.
func notDelivered(err error) bool {
	var op *net.OpError
	return errors.Is(err, syscall.ECONNREFUSED) || (errors.As(err, &op) && op.Op == "dial")
}

// backoff is exponential, or what the server asks for with Retry-After, but
// never longer than maxRetryDelay: the user's own time limit decides the rest.
func backoff(least, most time.Duration, attempt int, resp *http.Response) time.Duration {
	return min(retryablehttp.DefaultBackoff(least, most, attempt, resp), most)
}

// attemptTransport gives every attempt its own time limit, the reading of the
// answer included.
type attemptTransport struct {
	next    http.RoundTripper
	observe func(context.Context, Attempt)
}

// RoundTrip implements http.RoundTripper.
func (t attemptTransport) RoundTrip(req *http.Request) (*http.Response, error) {
	a := attemptsOf(req.Context())
	if a == nil || a.timeout == 0 {
		return t.observed(req)
	}
	ctx, cancel := context.WithTimeout(req.Context(), a.timeout)
	req = req.Clone(ctx)
	req.Header.Set("Request-Timeout", timeLeft(ctx).String())
	resp, err := t.observed(req)
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

func (t attemptTransport) observed(req *http.Request) (*http.Response, error) {
	if t.observe == nil {
		return t.next.RoundTrip(req)
	}
	started := time.Now()
	resp, err := t.next.RoundTrip(req)
	attempt := Attempt{Method: req.Method, Path: req.URL.Path, Err: err, Duration: time.Since(started)}
	if resp != nil {
		attempt.Status = resp.StatusCode
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
