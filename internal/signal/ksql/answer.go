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

// errNotKsql says that the answer is not one that a ksqlDB gives.
var errNotKsql = errors.New("the answer is not one of a ksqlDB: does the url point at its REST API?")

// refusal is an error of the statement: a table or column that is not there, or
// a kind of query that this server does not take.
type refusal struct{ message string }

// Error implements error.
func (r *refusal) Error() string { return r.message }

// statusError is any other error that the server answers with.
type statusError struct {
	status  int
	message string // what the server says about it; may be empty
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

// failure is an error as ksqlDB writes it. error_code is the HTTP status and two
// more digits.
type failure struct {
	ErrorCode int    `json:"error_code"`
	Message   string `json:"message"`
}

// err tells what is wrong with the statement from what is wrong with the server.
func (f *failure) err(status int) error {
	if code := f.ErrorCode / 100; code >= 400 && code <= 599 {
		status = code
	}
	// The only other code of 400 is 40004: this path wants HTTP/2.
	if status == http.StatusBadRequest && f.ErrorCode != 40004 && !f.wantsOtherPath() {
		return &refusal{said(f.Message)}
	}
	return &statusError{status: status, message: said(f.Message)}
}

// wantsOtherPath recognizes a server that says where queries go now.
func (f *failure) wantsOtherPath() bool { return strings.Contains(f.Message, "/query-stream") }

// queryName is the name of a query, which is another one each time.
var queryName = regexp.MustCompile(`\btransient_\w+`)

// said is what the server says about an error.
func said(text string) string { return source.OneLine(queryName.ReplaceAllString(text, "transient")) }

// query sends one statement and returns the value column of the first row of
// each metric. What was found before an error is good all the same.
func (s *server) query(ctx context.Context, statement string, metrics []string) (map[string]json.RawMessage, error) {
	s.mu.Lock()
	stream := s.stream
	s.mu.Unlock()
	found, err := s.post(ctx, stream, statement, metrics)
	if !gone(err) {
		return found, err
	}
	// Newer servers have only the one path, older ones only the other.
	found, other := s.post(ctx, !stream, statement, metrics)
	if gone(other) {
		return nil, err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stream = !stream
	return found, other
}

// gone recognizes the answer of a server that has not this path for queries.
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

// failureOf reads an answer whose status is not 200.
func failureOf(resp *http.Response) error {
	text, err := io.ReadAll(io.LimitReader(resp.Body, 256<<10)) // older servers add a stack trace
	if err != nil {
		return err
	}
	var f failure
	if json.Unmarshal(text, &f) != nil || f.ErrorCode == 0 {
		// Not from ksqlDB, but from a proxy, or from something else altogether.
		return &statusError{status: resp.StatusCode}
	}
	return f.err(resp.StatusCode)
}

// info asks the server for its version, to find out whether it is there.
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

// notJSON tells what is not JSON from what broke off.
func notJSON(err error) error {
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	if errors.As(err, &syntax) || errors.As(err, &kind) || errors.Is(err, io.EOF) {
		return errNotKsql
	}
	return err
}
