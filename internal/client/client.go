// Package client is the Go client of the scheduling server's REST API. The
// Terraform provider, the command line and the tests use it.
//
// A request is retried when the server asks for it (429, 503) and, if a retry is
// harmless, when the connection breaks. Responses other than success are
// *api.Problem errors.
//
// With several servers on one store, a client uses one until it fails: it refuses or
// drops connections, does not respond in time, returns 503, or reads from a copy of the
// store that is out of date. The client then switches to the next one at once, and waits
// only after it has tried all of them. If all are out of date, it accepts that. Retries are
// harmless on any server, because what makes them so is in the store: conditions on the
// object (If-None-Match, If-Match), a preview that is committed once, an object that is
// already as it was sent or already deleted. If a condition fails after an attempt
// without a response, the client compares the stored object with what it sent. A
// request that would do something twice (Reschedule, Call with POST) is retried only if
// it certainly did not arrive.
package client

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/hashicorp/go-retryablehttp"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// Defaults of Options.
const (
	DefaultEndpoint         = "http://127.0.0.1:8665"
	DefaultRequestTimeout   = 30 * time.Second
	DefaultMaxRetries       = 4
	defaultMaxResponseBytes = 64 << 20
)

const (
	firstRetryDelay = 200 * time.Millisecond
	maxRetryDelay   = 15 * time.Second
	// serverWait is how long the server by default delays the response to a write until the
	// resulting decision is made.
	serverWait = 10 * time.Second
)

// Options configures a Client. The zero value connects to a server on this machine.
type Options struct {
	// Endpoint is the server's address. Default: DefaultEndpoint.
	Endpoint string
	// Endpoints are the addresses of several servers that share a store. They replace Endpoint.
	Endpoints []string
	// Token is sent as a bearer token, unless it is empty.
	Token api.Secret
	// Tokens supplies the bearer token of each request, in place of Token, for tokens that
	// expire. Nil = Token is sent.
	Tokens TokenSource
	// CACertFile holds PEM certificates of authorities for the server's certificate. Default: those
	// of the operating system.
	CACertFile string
	// ClientCertFile and ClientKeyFile hold the PEM client certificate and key. Both or neither
	// must be set.
	ClientCertFile string
	ClientKeyFile  string
	// RequestTimeout is the timeout of one attempt, in addition to the time that the request asks
	// the server to wait. 0 = DefaultRequestTimeout.
	RequestTimeout time.Duration
	// MaxRetries is how often a request is retried, with several servers at each of them. 0 =
	// DefaultMaxRetries, negative = never.
	MaxRetries int
	// MaxResponseBytes is the maximum size of a response. 0 = defaultMaxResponseBytes.
	MaxResponseBytes int64
	// UserAgent names the program. "" = Go's default.
	UserAgent string
	// GiveUp makes all further calls fail at once with a *LostError after the server is lost: when
	// it cannot be reached despite retries, or rejects the token. It suits a run that cannot
	// continue without the server.
	GiveUp bool
	// Observe is called for every attempt of a request, with the request's context. It may be nil.
	Observe func(context.Context, Attempt)
}

// Attempt is one attempt of a request and its result.
type Attempt struct {
	Endpoint     string
	Method, Path string
	Status       int    // 0 if there was no response
	Server       string // name of the server that responded; "" if it did not say
	Err          error
	Duration     time.Duration // until the response began
}

// TokenSource supplies bearer tokens. Token is called before every request, by many
// goroutines; it should return the same token until that is about to expire.
type TokenSource interface {
	Token(ctx context.Context) (api.Secret, error)
}

// Client is a client of one or several servers. It is safe for concurrent use.
type Client struct {
	endpoints *endpoints
	opts      Options
	retrying  *retryablehttp.Client
	loss      loss
}

// New returns a client. It reads the certificate files but does not connect.
func New(opts Options) (*Client, error) {
	if opts.RequestTimeout == 0 {
		opts.RequestTimeout = DefaultRequestTimeout
	}
	if opts.MaxRetries == 0 {
		opts.MaxRetries = DefaultMaxRetries
	}
	if opts.MaxResponseBytes == 0 {
		opts.MaxResponseBytes = defaultMaxResponseBytes
	}
	endpoints, err := newEndpoints(opts)
	if err != nil {
		return nil, err
	}
	transport, err := newTransport(opts)
	if err != nil {
		return nil, err
	}
	c := &Client{endpoints: endpoints, opts: opts, retrying: retryablehttp.NewClient()}
	c.retrying.HTTPClient = &http.Client{Transport: attemptTransport{tracing.Peer(transport), endpoints, opts.Observe}}
	c.retrying.Logger = nil
	c.retrying.RetryMax = (max(opts.MaxRetries, 0)+1)*len(endpoints.bases) - 1
	c.retrying.RetryWaitMin = firstRetryDelay
	c.retrying.RetryWaitMax = maxRetryDelay
	c.retrying.CheckRetry = checkRetry
	c.retrying.Backoff = endpoints.backoff
	c.retrying.ErrorHandler = retryablehttp.PassthroughErrorHandler
	return c, nil
}

// Endpoint returns the address of the server that requests go to.
func (c *Client) Endpoint() string { return c.endpoints.names[c.endpoints.current()] }

// Endpoints returns the addresses of all servers: "http://a or http://b".
func (c *Client) Endpoints() string { return strings.Join(c.endpoints.names, " or ") }

// Several reports whether there are several servers.
func (c *Client) Several() bool { return c.endpoints.several() }

// Close closes idle connections.
func (c *Client) Close() { c.retrying.HTTPClient.CloseIdleConnections() }

// call is one request, regardless of the number of attempts.
type call struct {
	method string
	path   string
	query  url.Values
	header http.Header
	body   []byte
	// wait is how long the server was asked to delay the response.
	wait time.Duration
	// repeatable says that the request may be delivered twice without harm.
	repeatable bool
	// stream says that the response has no end, so no timeout applies.
	stream bool
	// connecting says that the call only checks whether the server responds: it is sent even if the
	// server counts as lost, and not retried if it times out. once says that it is retried only if
	// the connection is reset.
	connecting, once bool

	attempts *attempts
}

// send sends the request and returns the successful response, whose body the caller closes.
func (c *Client) send(ctx context.Context, q *call) (*http.Response, error) {
	target := c.endpoints.bases[0].JoinPath(q.path)
	// A name such as ".." or "" would address something else, which would be mistaken for the
	// object.
	if strings.HasSuffix(q.path, "/") || !strings.HasSuffix("/"+target.EscapedPath(), q.path) {
		return nil, fmt.Errorf("%s is not a path of the API: a name in it is empty or has invalid characters", q.path)
	}
	target.RawQuery = q.query.Encode()
	var body any
	if q.body != nil {
		body = q.body
	}
	if err := c.loss.err(); err != nil && !q.connecting {
		return nil, err
	}
	q.attempts = &attempts{
		endpoints: c.endpoints, path: q.path, repeatable: q.repeatable, lost: c.loss.err, once: q.once, impatient: q.connecting,
		failures: make([]error, len(c.endpoints.bases)), uncertain: q.attempts != nil && q.attempts.uncertain,
	}
	switch {
	case q.connecting:
		q.attempts.timeout = min(c.opts.RequestTimeout, connectTimeout)
	case !q.stream:
		q.attempts.timeout = c.opts.RequestTimeout + q.wait
	}
	req, err := retryablehttp.NewRequestWithContext(withAttempts(ctx, q.attempts), q.method, target.String(), body)
	if err != nil {
		return nil, fmt.Errorf("%s %s: %w", q.method, q.path, err)
	}
	for name, values := range q.header {
		req.Header[name] = values
	}
	if q.body != nil {
		req.Header.Set("Content-Type", "application/json")
	}
	if req.Header.Get("Accept") == "" {
		req.Header.Set("Accept", "application/json")
	}
	// A check may be the only request, so its connection is not kept open.
	req.Close = q.connecting
	if c.opts.UserAgent != "" {
		req.Header.Set("User-Agent", c.opts.UserAgent)
	}
	token := c.opts.Token
	if c.opts.Tokens != nil {
		if token, err = c.opts.Tokens.Token(ctx); err != nil {
			return nil, fmt.Errorf("%s %s: there is no token for the request: %w", q.method, q.path, err)
		}
	}
	if !token.IsZero() {
		req.Header.Set("Authorization", "Bearer "+token.Reveal())
	}
	resp, err := c.retrying.Do(req)
	if err != nil {
		return nil, c.settle(ctx, q, c.unreachable(ctx, q, err))
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		err := readProblem(resp)
		if loginRefused(resp) {
			err = &LoginError{err}
		}
		return nil, c.settle(ctx, q, err)
	}
	return resp, nil
}

// unreachable returns the error of a request without a response.
func (c *Client) unreachable(ctx context.Context, q *call, err error) error {
	if cause := context.Cause(ctx); cause != nil {
		return fmt.Errorf("%s %s: %w", q.method, q.path, cause)
	}
	if !c.endpoints.several() {
		return &UnreachableError{c.endpoints.String(), q.unanswered(err)}
	}
	var why severalErrors
	for i, err := range q.attempts.failures {
		if err != nil {
			why = append(why, fmt.Errorf("%s: %w", c.endpoints.names[i], q.unanswered(err)))
		}
	}
	if why == nil {
		why = severalErrors{q.unanswered(err)}
	}
	return &UnreachableError{c.endpoints.String(), why}
}

// unanswered returns the error of an attempt without a response.
func (q *call) unanswered(err error) error {
	var urlErr *url.Error
	if errors.As(err, &urlErr) {
		err = urlErr.Err // url.Error repeats the method and the address
	}
	if errors.Is(err, context.DeadlineExceeded) {
		err = fmt.Errorf("no response to %s %s within %s: %w", q.method, q.path, q.attempts.timeout, err)
	}
	return err
}

// UnreachableError says that the server, or every one of several servers, did not respond.
type UnreachableError struct {
	Endpoint string // all of them, separated by ", "
	Err      error
}

// Error names the endpoint and the cause.
func (e *UnreachableError) Error() string {
	return "cannot reach the scheduling server at " + e.Endpoint + ": " + e.Err.Error()
}

// Unwrap returns the cause.
func (e *UnreachableError) Unwrap() error { return e.Err }

// read sends the request and decodes the response; into may be nil.
func (c *Client) read(ctx context.Context, q *call, into any) error {
	data, err := c.answer(ctx, q)
	if err != nil {
		return err
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("the answer to %s %s is not what a scheduling server sends: %w", q.method, q.path, err)
	}
	return nil
}

// answer sends the request, again if the connection breaks while reading the response, and returns
// the complete response.
func (c *Client) answer(ctx context.Context, q *call) ([]byte, error) {
	for broken := 0; ; broken++ {
		resp, err := c.send(ctx, q)
		if err != nil {
			return nil, err
		}
		data, err := readLimited(resp, c.opts.MaxResponseBytes)
		_ = resp.Body.Close() // everything has been read
		if err == nil {
			return data, nil
		}
		var tooLong *tooLongError
		if errors.As(err, &tooLong) || ctx.Err() != nil || !q.repeatable || broken == c.retrying.RetryMax {
			return nil, fmt.Errorf("reading the response to %s %s: %w", q.method, q.path, err)
		}
		q.attempts.uncertain = true
		c.endpoints.leave(q.attempts.at)
	}
}

// tooLongError says that a response exceeds the limit.
type tooLongError struct{ limit int64 }

// Error names the limit.
func (e *tooLongError) Error() string { return fmt.Sprintf("it has more than %d bytes", e.limit) }

// readLimited reads an answer. How long it is mostly stands in its header.
func readLimited(resp *http.Response, limit int64) ([]byte, error) {
	var buffer bytes.Buffer
	buffer.Grow(int(min(max(resp.ContentLength, 0), limit, 1<<20)) + bytes.MinRead)
	_, err := buffer.ReadFrom(io.LimitReader(resp.Body, limit+1))
	if err == nil && int64(buffer.Len()) > limit {
		err = &tooLongError{limit}
	}
	return buffer.Bytes(), err
}

// LoginError says that the server rejects the token or requires one. Retrying does not help.
type LoginError struct{ Err error }

// Error returns the server's message.
func (e *LoginError) Error() string { return e.Err.Error() }

// Unwrap returns the *api.Problem.
func (e *LoginError) Unwrap() error { return e.Err }

// loginRefused reports whether a request was rejected because of a wrong or missing token. A server
// that has received too many such requests from one address responds with 429 and, unlike a busy
// server, with WWW-Authenticate.
func loginRefused(resp *http.Response) bool {
	return resp.StatusCode == http.StatusUnauthorized ||
		resp.StatusCode == http.StatusTooManyRequests && resp.Header.Get("WWW-Authenticate") != ""
}

// maxProblemBytes limits how much of an error response is read.
const maxProblemBytes = 1 << 20

// readProblem converts an error response to a *api.Problem, even if a proxy sent it and it is not
// problem JSON.
func readProblem(resp *http.Response) error {
	data, err := io.ReadAll(io.LimitReader(resp.Body, maxProblemBytes))
	problem := &api.Problem{}
	mediaType, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if !strings.HasSuffix(mediaType, "json") || json.Unmarshal(data, problem) != nil {
		text := bytes.TrimSpace(data)
		if strings.Contains(mediaType, "html") {
			text = nil
		}
		problem = &api.Problem{Detail: strings.ToValidUTF8(string(text[:min(len(text), 300)]), "")}
	}
	problem.Status = resp.StatusCode
	if problem.Title == "" {
		problem.Title = http.StatusText(resp.StatusCode)
	}
	if problem.Detail == "" && err != nil {
		problem.Detail = "the response ended early: " + err.Error()
	}
	return problem
}

// StatusOf returns the HTTP status of an error response, or 0 for any other error.
func StatusOf(err error) int {
	var problem *api.Problem
	if errors.As(err, &problem) {
		return problem.Status
	}
	return 0
}

// ProblemOf returns the problem type of an error response, or "" for any other error or a response
// that is not the server's.
func ProblemOf(err error) api.ProblemType {
	var problem *api.Problem
	if errors.As(err, &problem) {
		return problem.Type
	}
	return ""
}

// IsNotFound reports whether the server responded that the object does not exist.
func IsNotFound(err error) bool { return StatusOf(err) == http.StatusNotFound }
