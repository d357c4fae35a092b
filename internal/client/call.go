package client

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
)

// Call makes a request that has no method of its own here, such as those of
// tokens. in is sent as JSON unless it is nil; the answer is decoded into out
// unless that is nil.
func (c *Client) Call(ctx context.Context, method, path string, in, out any) error {
	q := &call{method: method, path: path, repeatable: method != http.MethodPost}
	if in != nil {
		var err error
		if q.body, err = json.Marshal(in); err != nil {
			return fmt.Errorf("%s %s: %w", method, path, err)
		}
	}
	return c.read(ctx, q, out)
}

// Backup writes an archive of the server's store.
func (c *Client) Backup(ctx context.Context, w io.Writer) error {
	q := &call{
		method: http.MethodGet, path: "/v1/backup", header: http.Header{"Accept": {"application/x-tar"}},
		repeatable: true, stream: true,
	}
	resp, err := c.send(ctx, q)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if _, err := io.Copy(w, resp.Body); err != nil {
		return fmt.Errorf("fetch the backup: %w", err)
	}
	return nil
}
