package client

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Call makes a request that has no method of its own, such as those for tokens. in is sent as JSON
// unless it is nil; the response is decoded into out unless that is nil.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	q := &call{method: method, path: path, repeatable: method != http.MethodPost}
	if in != nil {
		var err error
		if q.body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	err := c.read(ctx, q, out)
	if method == http.MethodDelete && IsNotFound(err) && q.attempts.uncertain {
		return nil // deleted by an attempt whose connection broke
	}
	return err
}

// Backup writes an archive of the server's store. If one of several servers is lost before the end,
// it starts over with the next one, after again has discarded what was written; if again is nil, it
// fails instead.
func (c *Client) Backup(ctx context.Context, w io.Writer, again func() error) error {
	q := &call{
		method: http.MethodGet, path: "/v1/backup", header: http.Header{"Accept": {"application/x-tar"}},
		repeatable: true, stream: true,
	}
	for lost := 1; ; lost++ {
		resp, err := c.send(ctx, q)
		if err != nil {
			return err
		}
		from := &noted{Reader: resp.Body}
		_, err = io.Copy(w, from)
		_ = resp.Body.Close() // everything has been read
		if err == nil {
			return nil
		}
		if from.err == nil || ctx.Err() != nil || again == nil || lost == len(c.endpoints.bases) {
			return fmt.Errorf("fetch the backup: %w", err)
		}
		c.endpoints.leave(q.attempts.at)
		if err := again(); err != nil {
			return fmt.Errorf("fetch the backup: %w", err)
		}
	}
}

// noted is a reader that records its error, to distinguish read errors from write errors.
type noted struct {
	io.Reader
	err error
}

// Read implements io.Reader.
func (n *noted) Read(p []byte) (int, error) {
	count, err := n.Reader.Read(p)
	if !errors.Is(err, io.EOF) {
		n.err = err
	}
	return count, err
}
