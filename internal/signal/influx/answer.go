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

// errNotInflux says that the response is not one of InfluxDB.
var errNotInflux = errors.New("the response is not from an InfluxDB query API: does the url point at InfluxDB?")

// refusal is a response that says that the query is invalid, or that its evaluation failed. Which
// of several queries is at fault is not always known.
type refusal struct {
	message string
	said    string // by the server
}

// Error implements error.
func (r *refusal) Error() string { return r.message }

// statusError is a response with a status other than 200.
type statusError struct {
	status  int
	message string // the server's message; may be empty
}

// Error implements error.
func (e *statusError) Error() string {
	text := fmt.Sprintf("InfluxDB returned status %d", e.status)
	if e.status == http.StatusUnauthorized || e.status == http.StatusForbidden {
		text += ": are token, org and bucket right?"
	}
	return text
}

// failureOf reads a response whose status is not 200. Its body has "error" for 1.x, and "message"
// for 2.x.
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
		said.Message = string(body) // as 1.8 responds if Flux is disabled; pages of a proxy are HTML
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

// doer sends the requests of the official library. It limits the size of responses, and returns
// this package's errors.
type doer struct{ client *http.Client }

// Do implements the library's Doer.
func (d doer) Do(req *http.Request) (*http.Response, error) {
	// The library requests compressed responses and decompresses them without a limit. The
	// transport does it within the limit.
	req.Header.Del("Accept-Encoding")
	req.Header.Set("Accept", "application/csv")
	resp, err := d.client.Do(req) //nolint:gosec // the user's address in spec.influx.url
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

// csvBody is the body of a CSV response. It records why reading failed, which the library does not
// always report.
type csvBody struct {
	io.Closer
	reader *bufio.Reader
	err    error
}

// check checks that the body is empty or starts like annotated CSV: the library treats lines
// without commas as empty.
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
