package influx

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/signal/source"
)

// errNotInflux says that the answer is not one that an InfluxDB gives.
var errNotInflux = errors.New("the answer is not one of an InfluxDB query API: does the url point at InfluxDB?")

// refusal is an answer that says that the query is wrong, or that evaluating it
// failed. Whose fault that is, the answer does not always say.
type refusal struct {
	message string
	said    string // by the server
}

// Error implements error.
func (r *refusal) Error() string { return r.message }

// statusError is an answer with a status other than 200.
type statusError struct {
	status  int
	message string // what the server says about it; may be empty
}

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("InfluxDB returned status %d", e.status)
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		text += ": are token, org and bucket right?"
	}
	return text
}

// failureOf reads an answer whose status is not 200. The bodies of 1.x have
// "error", those of 2.x "message".
func failureOf(resp *http.Response) error {
	defer func() { _ = resp.Body.Close() }()
	body, err := io.ReadAll(io.LimitReader(resp.Body, 64<<10))
	if err != nil {
		return err
	}
	var said struct {
		Message, Error string
	}
	if json.Unmarshal(body, &said) != nil && strings.HasPrefix(resp.Header.Get("Content-Type"), "text/plain") {
		said.Message = string(body) // as 1.8 says that Flux is switched off; pages of a proxy are HTML
	}
	e := &statusError{status: resp.StatusCode}
	for _, text := range []string{said.Message, said.Error, resp.Header.Get("X-Influxdb-Error")} {
		if e.message == "" {
			e.message = source.OneLine(text)
		}
	}
	switch resp.StatusCode {
	case http.StatusBadRequest, http.StatusUnprocessableEntity, http.StatusInternalServerError:
		return &refusal{e.Error(), e.message}
	}
	return e
}

// doer is what the official library sends its requests with. It keeps answers
// within our limits and errors in our words.
type doer struct{ client *http.Client }

// Do implements the library's Doer.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	// The library asks for compressed answers and unpacks them without a limit.
	// The transport does it within the limit.
	req.Header.Del("Accept-Encoding")
	req.Header.Set("Accept", "application/csv")
	resp, err := d.client.Do(req) //nolint:gosec // the address is the one that the user writes in spec.influx.url
	if err != nil {
		return nil, err
	}
	if resp.StatusCode != http.StatusOK {
		return nil, failureOf(resp)
	}
	resp.Header.Del("Content-Encoding")
	body := &csvBody{Closer: resp.Body, reader: bufio.NewReader(resp.Body)}
	resp.Body = body
	if err := body.check(); err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return resp, nil
}

// csvBody is the body of an answer in CSV. It remembers why reading it failed,
// which the library does not always tell.
type csvBody struct {
	io.Closer
	reader *bufio.Reader
	err    error
}

// check looks whether the body is empty or begins like annotated CSV: the
// library takes lines without commas for empty ones.
func (b *csvBody) check() error {
	for {
		c, err := b.reader.ReadByte()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case c == '\r' || c == '\n':
		case c == '#' || c == ',':
			return b.reader.UnreadByte()
		default:
			return errNotInflux
		}
	}
}

// Read implements io.Reader.
func (b *csvBody) Read(p []byte) (int, error) {
	n, err := b.reader.Read(p)
	if b.err == nil && err != nil && !errors.Is(err, io.EOF) {
		b.err = err
	}
	return n, err
}

func isRefusal(err error) bool {
	var r *refusal
	return errors.As(err, &r)
}
