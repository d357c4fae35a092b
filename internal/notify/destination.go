package notify

import (
	"bytes"
	"context"
	"crypto/x509"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound"
	"github.com/scheduler/terraform-provider-scheduler/internal/outbound/netpolicy"
)

// destination is a type of destinations. To add one, add a file with it, and a line to destinations.
type destination struct {
	// name is that of its block in the spec.
	name string
	// each says that every event is sent on its own.
	each bool
	// divisible says that the destination takes in each event, and so may refuse one of them. What only starts something
	// refuses all or nothing.
	divisible bool
	// timeout limits one attempt.
	timeout time.Duration
	// send makes one attempt. It succeeds if the destination has accepted the delivery.
	send func(ctx context.Context, to *sender, d *delivery) error
}

// usualTimeout limits one attempt.
const usualTimeout = 20 * time.Second

var destinations = []destination{webhook, alertmanager, slack, hcpTerraform, gitHub, gitLab, atlantis}

func destinationOf(n *api.Notification) *destination {
	for i := range destinations {
		if destinations[i].name == n.Spec.Destination() {
			return &destinations[i]
		}
	}
	return nil
}

// sender sends requests to a destination.
type sender struct {
	client *http.Client
	now    func() time.Time
	code   int // of the last answer; 0 if there was none
}

// maxAnswer is how much of an answer is read.
const maxAnswer = 1 << 20

func newSender(n *api.Notification, network *netpolicy.Policy, roundTripper http.RoundTripper, now func() time.Time) (*sender, error) {
	var roots *x509.CertPool
	if n.Spec.CACert != "" {
		roots = x509.NewCertPool()
		if !roots.AppendCertsFromPEM([]byte(n.Spec.CACert)) {
			return nil, errors.New("spec.ca_cert contains no PEM certificate")
		}
	}
	client := outbound.New(network, outbound.Options{
		MaxBody: maxAnswer, RootCAs: roots, InsecureSkipVerify: n.Spec.InsecureSkipVerify, MaxConnsPerHost: 2, RoundTripper: roundTripper,
	})
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	return &sender{client: client, now: now}, nil
}

// answerError is an answer that does not accept a delivery.
type answerError struct {
	code int
	// after is how long the destination asks to wait; 0 if it does not.
	after time.Duration
}

// Error implements error. Nothing that the destination sends is repeated.
func (e *answerError) Error() string {
	text := http.StatusText(e.code)
	switch {
	case e.code >= 300 && e.code < 400:
		return fmt.Sprintf("the destination answered %d %s: redirects are not followed, use the final address", e.code, text)
	case e.code == http.StatusUnauthorized, e.code == http.StatusForbidden:
		return fmt.Sprintf("the destination answered %d %s: check the secret and its rights", e.code, text)
	}
	return strings.TrimSpace(fmt.Sprintf("the destination answered %d %s", e.code, text))
}

// noSecretError says that a secret is missing that is needed.
type noSecretError string

// Error implements error.
func (e noSecretError) Error() string {
	return string(e) + " is not set: without it, the destination accepts nothing"
}

// describe says why an attempt failed, without anything that the destination sent.
func describe(err error) string {
	if answer, ok := errors.AsType[*answerError](err); ok {
		return answer.Error()
	}
	if missing, ok := errors.AsType[noSecretError](err); ok {
		return missing.Error()
	}
	return outbound.Describe(err)
}

// post posts JSON; see request.
func (s *sender) post(ctx context.Context, address string, header http.Header, body any) error {
	text, err := json.Marshal(body)
	if err != nil {
		return fmt.Errorf("encode what is sent: %w", err)
	}
	if header.Get("Content-Type") == "" {
		header.Set("Content-Type", "application/json")
	}
	_, err = s.request(ctx, http.MethodPost, address, header, text)
	return err
}

const (
	// maxDrained and drainTime limit how much of an answer is read that nobody asked for, so that the connection can be used again.
	maxDrained = 64 << 10
	drainTime  = time.Second
)

// request makes a request. Of a GET, it returns the body of the answer; of others, only the status counts, whatever follows it.
// The error is an *answerError if that is not 2xx.
func (s *sender) request(ctx context.Context, method, address string, header http.Header, body []byte) ([]byte, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, method, address, bytes.NewReader(body))
	if err != nil {
		return nil, errors.New("the address of the destination is not one") // it may be a secret
	}
	req.Header = header
	req.Header.Set("User-Agent", "terraform-provider-scheduler")
	s.code = 0
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	s.code = resp.StatusCode
	accepted := resp.StatusCode >= 200 && resp.StatusCode <= 299
	if accepted && method == http.MethodGet {
		return io.ReadAll(resp.Body)
	}
	defer time.AfterFunc(drainTime, cancel).Stop()
	_, _ = io.CopyN(io.Discard, resp.Body, maxDrained) // it is not needed
	if !accepted {
		return nil, &answerError{resp.StatusCode, retryAfter(resp.Header.Get("Retry-After"), s.now())}
	}
	return nil, nil
}

// longestRetryAfter is the longest time that a destination can ask to wait.
const longestRetryAfter = time.Hour

// retryAfter returns how long a header asks to wait: so many seconds, or until a time.
func retryAfter(text string, now time.Time) time.Duration {
	var wait time.Duration
	// A number that is too large is returned as the largest one, with an error.
	if seconds, err := strconv.ParseInt(strings.TrimSpace(text), 10, 64); err == nil || errors.Is(err, strconv.ErrRange) {
		wait = time.Duration(max(min(seconds, int64(longestRetryAfter/time.Second)), 0)) * time.Second
	} else if at, err := http.ParseTime(text); err == nil {
		wait = at.Sub(now)
	}
	return min(max(wait, 0), longestRetryAfter)
}
