package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"maps"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
)

// Watch yields the changes of some kinds after a resource_version ("" = now) until the context is
// done or the connection breaks. The error comes last; it is io.EOF if the server ended the stream.
// To continue, watch again from the last event's ResourceVersion. With several servers, a watch
// whose connection breaks continues at the next server, without gaps or duplicates.
func (c *Client) Watch(ctx context.Context, resourceVersion string, kinds ...api.Kind) iter.Seq2[api.Event, error] {
	names := make([]string, len(kinds))
	for i, kind := range kinds {
		names[i] = string(kind)
	}
	query := url.Values{"kinds": {strings.Join(names, ",")}}
	if resourceVersion != "" {
		query.Set("resource_version", resourceVersion)
	}
	return func(yield func(api.Event, error) bool) {
		w := &watch{client: c, query: query, told: map[eventSum]bool{}, again: map[eventSum]bool{}}
		for {
			err := w.follow(ctx, func(event api.Event) bool { return yield(event, nil) })
			if err == nil {
				return
			}
			if cause := context.Cause(ctx); cause != nil {
				err = cause
			} else if w.resume(ctx, err) {
				continue
			}
			yield(api.Event{}, err)
			return
		}
	}
}

// watch is a watch over consecutive connections.
type watch struct {
	client *Client
	query  url.Values
	// position is the revision up to which all events were delivered, "" if there is none. told are
	// the delivered events after it, and again those that the next connection may deliver again.
	position    string
	told, again map[eventSum]bool
	at          int // endpoint of the last connection
	quiet       int // connections since the last progress
}

// follow yields the events of one connection. It returns nil when the consumer stops.
func (w *watch) follow(ctx context.Context, yield func(api.Event) bool) error {
	q := &call{
		method: http.MethodGet, path: "/v1/watch", query: w.query,
		header:     http.Header{"Accept": {"text/event-stream"}},
		repeatable: true, stream: true,
	}
	if w.position != "" {
		q.header.Set("Last-Event-ID", w.position)
	}
	w.quiet++
	resp, err := w.client.send(ctx, q)
	if q.attempts != nil {
		w.at = q.attempts.at
	}
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	stream := newEventStream(resp.Body, w.client.opts.MaxResponseBytes)
	for {
		event, err := stream.next()
		moved := stream.id != "" && stream.id != w.position // also by a bookmark, which is not an event
		if moved {
			w.position, w.quiet = stream.id, 0
			clear(w.told)
		}
		if err != nil {
			return err
		}
		if !moved {
			w.told[stream.sum] = true
		}
		if w.again[stream.sum] {
			delete(w.again, stream.sum)
			continue
		}
		if !yield(event) {
			return nil
		}
	}
}

// resume waits until a watch may continue at the next server, and reports whether it can.
func (w *watch) resume(ctx context.Context, err error) bool {
	e := w.client.endpoints
	broken := errors.Is(err, io.EOF) || errors.As(err, new(*brokenWatchError))
	// A server that has been running longer may still have the history that another one lacks.
	forgotten := StatusOf(err) == http.StatusGone && w.quiet < len(e.bases)
	if !e.several() || w.position == "" || !broken && !forgotten || w.quiet > w.client.retrying.RetryMax {
		return false
	}
	e.leave(w.at)
	maps.Copy(w.again, w.told)
	clear(w.told)
	pause := time.Duration(0)
	if w.quiet > 0 {
		pause = e.backoff(firstRetryDelay, maxRetryDelay, w.quiet-1, nil)
	}
	return backoff.Wait(ctx, pause)
}

// brokenWatchError says that the connection of a watch broke.
type brokenWatchError struct{ err error }

// Error names the cause.
func (e *brokenWatchError) Error() string { return "the watch broke: " + e.err.Error() }

// Unwrap returns the cause.
func (e *brokenWatchError) Unwrap() error { return e.err }

// eventStream reads server-sent events. It is implemented here because forty lines that limit the
// size of a whole event do not justify another dependency of the provider binary.
type eventStream struct {
	lines *bufio.Scanner
	limit int    // of an event, in bytes
	id    string // of the last event or bookmark that had one
	sum   eventSum
}

// eventSum identifies an event by its type and object.
type eventSum [sha256.Size]byte

func newEventStream(r io.Reader, maxBytes int64) *eventStream {
	limit := int(maxBytes)
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, min(limit, 64<<10)), limit)
	return &eventStream{lines: lines, limit: limit}
}

// next returns the next event with an object. Comments only keep the connection alive.
func (s *eventStream) next() (api.Event, error) {
	var name, id string
	var data bytes.Buffer
	for s.lines.Scan() {
		line := s.lines.Text()
		if line == "" {
			s.id = cmp.Or(id, s.id)
			if data.Len() > 0 {
				event, object, err := decodeEvent(name, data.Bytes())
				s.sum = sha256.Sum256(append([]byte(name+"\n"), object...))
				return event, err
			}
			name = ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
		case "id":
			id = value
		case "data":
			if data.Len() > 0 {
				data.WriteByte('\n')
			}
			data.WriteString(value)
			if data.Len() > s.limit {
				return api.Event{}, fmt.Errorf("an event on the watch is too long: it has more than %d bytes", s.limit)
			}
		}
	}
	switch err := s.lines.Err(); {
	case errors.Is(err, bufio.ErrTooLong):
		return api.Event{}, fmt.Errorf("an event on the watch is too long: %w", err)
	case err != nil:
		return api.Event{}, &brokenWatchError{err}
	}
	return api.Event{}, io.EOF
}

// decodeEvent returns an event, and the JSON of its object.
func decodeEvent(name string, data []byte) (api.Event, json.RawMessage, error) {
	if name != string(api.EventPut) && name != string(api.EventDelete) {
		problem := &api.Problem{}
		if err := json.Unmarshal(data, problem); err == nil && problem.Title != "" {
			return api.Event{}, nil, problem
		}
		return api.Event{}, nil, fmt.Errorf("the watch sent %q, which is not an event of an object", name)
	}
	var wire struct {
		ResourceVersion string          `json:"resource_version"`
		Object          json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return api.Event{}, nil, fmt.Errorf("the watch sent an event that cannot be read: %w", err)
	}
	object, err := decodeObject(wire.Object)
	if err != nil {
		return api.Event{}, nil, err
	}
	return api.Event{Type: api.EventType(name), ResourceVersion: wire.ResourceVersion, Object: object}, wire.Object, nil
}
