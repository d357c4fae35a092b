package client

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"iter"
	"net/http"
	"net/url"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Watch yields the changes of some kinds after a resource_version ("" = from
// now on), until the context ends or the connection breaks; the error, io.EOF
// where the server ended the stream, comes last. To go on, watch again from the
// last event's ResourceVersion.
func (c *Client) Watch(ctx context.Context, resourceVersion string, kinds ...api.Kind) iter.Seq2[api.Event, error] {
	return func(yield func(api.Event, error) bool) {
		names := make([]string, len(kinds))
		for i, kind := range kinds {
			names[i] = string(kind)
		}
		query := url.Values{"kinds": {strings.Join(names, ",")}}
		if resourceVersion != "" {
			query.Set("resource_version", resourceVersion)
		}
		resp, err := c.send(ctx, &call{
			method: http.MethodGet, path: "/v1/watch", query: query,
			header:     http.Header{"Accept": {"text/event-stream"}},
			repeatable: true, stream: true,
		})
		if err != nil {
			yield(api.Event{}, err)
			return
		}
		defer resp.Body.Close()
		stream := newEventStream(resp.Body, c.opts.MaxResponseBytes)
		for {
			event, err := stream.next()
			if err != nil {
				if cause := context.Cause(ctx); cause != nil {
					err = cause
				}
				yield(api.Event{}, err)
				return
			}
			if !yield(event, nil) {
				return
			}
		}
	}
}

// eventStream reads server-sent events. It is our own: forty lines that bound an event
// over all of its lines are no reason for another dependency of the provider binary.
type eventStream struct {
	lines *bufio.Scanner
	limit int // of an event, in bytes
}

func newEventStream(r io.Reader, maxBytes int64) *eventStream {
	limit := int(maxBytes)
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, min(limit, 64<<10)), limit)
	return &eventStream{lines, limit}
}

// next returns the next event that carries an object. Comments keep the
// connection alive and say nothing.
func (s *eventStream) next() (api.Event, error) {
	var name string
	var data bytes.Buffer
	for s.lines.Scan() {
		line := s.lines.Text()
		if line == "" {
			if data.Len() > 0 {
				return decodeEvent(name, data.Bytes())
			}
			name = ""
			continue
		}
		field, value, _ := strings.Cut(line, ":")
		value = strings.TrimPrefix(value, " ")
		switch field {
		case "event":
			name = value
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
		return api.Event{}, fmt.Errorf("the watch broke: %w", err)
	}
	return api.Event{}, io.EOF
}

func decodeEvent(name string, data []byte) (api.Event, error) {
	if name != string(api.EventPut) && name != string(api.EventDelete) {
		problem := &api.Problem{}
		if err := json.Unmarshal(data, problem); err == nil && problem.Title != "" {
			return api.Event{}, problem
		}
		return api.Event{}, fmt.Errorf("the watch sent %q, which is not an event of an object", name)
	}
	var wire struct {
		ResourceVersion string          `json:"resource_version"`
		Object          json.RawMessage `json:"object"`
	}
	if err := json.Unmarshal(data, &wire); err != nil {
		return api.Event{}, fmt.Errorf("the watch sent an event that cannot be read: %w", err)
	}
	object, err := decodeObject(wire.Object)
	if err != nil {
		return api.Event{}, err
	}
	return api.Event{Type: api.EventType(name), ResourceVersion: wire.ResourceVersion, Object: object}, nil
}
