package ksql

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"regexp"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// errNotKsql says that the response is not one of ksqlDB.
var errNotKsql = errors.New("the response is not from a ksqlDB: does the url point at its REST API?")

// refusal is an error of the statement: a missing table or column, or a kind of query that the
// server does not support.
type refusal struct{ message string }

// Error implements error.
func (r *refusal) Error() string { return r.message }

// statusError is any other error response.
type statusError struct {
	status  int
	message string // the server's message; may be empty
}

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("ksqlDB returned status %d", e.status)
	switch e.status {
	case http.StatusUnauthorized, http.StatusForbidden:
		text += ": are the credentials in headers or bearer_token right?"
	case http.StatusNotFound:
		text += ": does the url point at the REST API of ksqlDB?"
	}
	return text
}

// failure is an error in ksqlDB's format. error_code is the HTTP status and two more digits.
type failure struct {
	ErrorCode int    `json:"error_code"`
	Message   string `json:"message"`
}

// err distinguishes an error of the statement from an error of the server.
func (f *failure) err(status int) error {
	if code := f.ErrorCode / 100; code >= 400 && code <= 599 {
		status = code
	}
	// The only other code of 400 is 40004: this path requires HTTP/2.
	if status == http.StatusBadRequest && f.ErrorCode != 40004 && !f.wantsOtherPath() {
		return &refusal{said(f.Message)}
	}
	return &statusError{status: status, message: said(f.Message)}
}

// wantsOtherPath recognizes a server that says where to send queries.
func (f *failure) wantsOtherPath() bool { return strings.Contains(f.Message, "/query-stream") }

// queryName matches the name of a query, which is different each time.
var queryName = regexp.MustCompile(`\btransient_\w+`)

// said returns the server's message about an error.
func said(text string) string { return source.OneLine(queryName.ReplaceAllString(text, "transient")) }

// query sends one statement and returns the value column of the first row of each metric. Values
// found before an error are valid.
func (s *server) query(ctx context.Context, statement string, metrics []string) (map[string]json.RawMessage, error) {
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	found, err := s.post(ctx, stream, statement, metrics)
	if !gone(err) {
		return found, err
	}
	// Newer servers have only one of the paths, older ones only the other.
	found, other := s.post(ctx, !stream, statement, metrics)
	if gone(other) {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = !stream
	return found, other
}

// gone recognizes the response of a server that does not have this path.
func gone(err error) bool {
	var e *statusError
	if !errors.As(err, &e) {
		return false
	}
	switch e.status {
	case http.StatusNotFound, http.StatusMethodNotAllowed, http.StatusGone:
		return true
	}
	return (&failure{Message: e.message}).wantsOtherPath()
}

// post sends one request to /query or /query-stream.
func (s *server) post(ctx context.Context, stream bool, statement string, metrics []string) (map[string]json.RawMessage, error) {
	path, accept := "/query", "application/vnd.ksql.v1+json"
	var body any = struct {
		KSQL       string            `json:"ksql"`
		Properties map[string]string `json:"streamsProperties"`
	}{statement, map[string]string{}}
	if stream {
		path, accept = "/query-stream", "application/vnd.ksqlapi.delimited.v1"
		body = struct {
			SQL        string            `json:"sql"`
			Properties map[string]string `json:"properties"`
		}{statement, map[string]string{}}
	}
	text, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.address+path, bytes.NewReader(text))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Accept", accept)
	resp, err := s.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return nil, failureOf(resp)
	}
	return rows(resp.Body, metrics)
}

// failureOf reads a response whose status is not 200.
func failureOf(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 256<<10)) // older servers append a stack trace
	if err != nil {
		return err
	}
	var f failure
	if json.Unmarshal(text, &f) != nil || f.ErrorCode == 0 {
		// Not from ksqlDB, but from a proxy or another service.
		return &statusError{status: resp.StatusCode}
	}
	return f.err(resp.StatusCode)
}

// info queries the server's version, to check whether it responds.
func (s *server) info(ctx context.Context) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.address+"/info", nil)
	if err != nil {
		return err
	}
	req.Header.Set("Accept", "application/json")
	resp, err := s.client.Do(req)
	if err != nil {
		return err
	}
	defer func() { _ = resp.Body.Close() }()
	if resp.StatusCode != http.StatusOK {
		return failureOf(resp)
	}
	var answer struct {
		KsqlServerInfo *struct{}
	}
	if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
		return notJSON(err)
	}
	if answer.KsqlServerInfo == nil {
		return errNotKsql
	}
	return nil
}

// notJSON distinguishes invalid JSON from a truncated response.
func notJSON(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.EOF) {
		return errNotKsql
	}
	return err
}
