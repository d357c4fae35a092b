package client

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// endpoints are the addresses of the servers of one store. All requests go to one of them until it
// fails, then to the next.
type endpoints struct {
	names []string // as given
	bases []*url.URL
	at    atomic.Int64
}

func newEndpoints(opts Options) (*endpoints, error) {
	texts := opts.Endpoints
	switch {
	case len(texts) > 0 && opts.Endpoint != "":
		return nil, errors.New("give either endpoint or endpoints, not both")
	case len(texts) == 0 && opts.Endpoint == "":
		texts = []string{DefaultEndpoint}
	case len(texts) == 0:
		texts = []string{opts.Endpoint}
	}
	e := &endpoints{names: texts}
	for i, text := range texts {
		if slices.Contains(texts[:i], text) {
			return nil, &EndpointError{i, fmt.Errorf("endpoint %q is given twice", api.Redact(text))}
		}
		base, err := parseEndpoint(text)
		if err != nil {
			return nil, &EndpointError{i, err}
		}
		e.bases = append(e.bases, base)
	}
	return e, nil
}

// EndpointError says what is wrong with an address.
type EndpointError struct {
	Index int // among the addresses given
	Err   error
}

// Error describes the mistake.
func (e *EndpointError) Error() string { return e.Err.Error() }

// Unwrap returns the mistake.
func (e *EndpointError) Unwrap() error { return e.Err }

func parseEndpoint(text string) (*url.URL, error) {
	base, err := url.Parse(text)
	if err != nil || (base.Scheme != "http" && base.Scheme != "https") || base.Host == "" {
		return nil, fmt.Errorf("endpoint %q is not an address: write http://host:port or https://host:port", api.Redact(text))
	}
	if !api.PossiblePort(base) {
		return nil, fmt.Errorf("endpoint %q has an invalid port: it must be a number from 1 to 65535", api.Redact(text))
	}
	if base.User != nil || base.RawQuery != "" || base.Fragment != "" {
		return nil, fmt.Errorf("the endpoint must have neither user, query nor fragment: write %s://%s", base.Scheme, base.Host)
	}
	if base.Path == "" {
		base.Path = "/" // otherwise JoinPath omits it
	}
	return base, nil
}

// several reports whether there are several endpoints.
func (e *endpoints) several() bool { return len(e.bases) > 1 }

// current returns the index of the endpoint in use.
func (e *endpoints) current() int { return int(e.at.Load()) }

// leave switches to the next endpoint, unless another call has already done so.
func (e *endpoints) leave(i int) { e.at.CompareAndSwap(int64(i), int64((i+1)%len(e.bases))) }

// String returns all names.
func (e *endpoints) String() string { return strings.Join(e.names, ", ") }

// severalErrors are the errors of several servers that did not respond.
type severalErrors []error

// Error joins the errors.
func (s severalErrors) Error() string {
	texts := make([]string, len(s))
	for i, err := range s {
		texts[i] = err.Error()
	}
	return strings.Join(texts, "; ")
}

// Unwrap returns the errors.
func (s severalErrors) Unwrap() []error { return s }
