package client

import (
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Events reads a stream of events to its end.
func Events(r io.Reader) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		s := newEventStream(r, 1<<20)
		for {
			event, err := s.next()
			if !yield(event, err) || err != nil {
				return
			}
		}
	}
}

// Through sends all requests of a client through a transport.
func Through(c *Client, next http.RoundTripper) {
	c.retrying.HTTPClient.Transport = attemptTransport{next, c.endpoints, c.opts.Observe}
}

// Pause returns how long a client with this many servers waits after an attempt.
func Pause(servers, attempt int, answer *http.Response) time.Duration {
	return (&endpoints{bases: make([]*url.URL, servers)}).backoff(firstRetryDelay, maxRetryDelay, attempt, answer)
}

// EncodeSecrets encodes an object with secrets the way the client sends it.
func EncodeSecrets(object api.Object) ([]byte, error) { return encodeSecrets(object, nil) }
