package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// OpenStackProjects lists the projects and Magnum cluster templates of a cloud, read from OpenStack
// on request. In addition to the usual errors, a *api.Problem with status 404 says that there is no
// such cloud, 409 that it has no credentials, and 502 that OpenStack rejected the request or did
// not respond.
func (c *Client) OpenStackProjects(ctx context.Context, cloud string, options api.LiveOptions) (*api.LiveOpenStack, error) {
	query := url.Values{}
	if len(options.Tags) > 0 {
		query.Set("tags", strings.Join(options.Tags, ","))
	}
	if options.Disabled {
		query.Set("enabled", "false")
	}
	live := &api.LiveOpenStack{}
	path := api.Key{Kind: api.KindCloud, Name: cloud}.URLPath() + "/openstack-projects"
	// Not retried after a 502: OpenStack would fail again.
	if err := c.read(ctx, &call{method: http.MethodGet, path: path, query: query, wait: serverWait}, live); err != nil {
		return nil, err
	}
	return live, nil
}

// ReportCloud pushes the data of a cloud. changed is false if nothing was new. A *api.Problem with
// status 409 says that the report does not follow the last accepted one: the next one must be full.
func (c *Client) ReportCloud(ctx context.Context, cloud string, report api.CloudReport) (changed bool, err error) {
	body, err := json.Marshal(report)
	if err != nil {
		return false, fmt.Errorf("report of cloud %q: %w", cloud, err)
	}
	path := api.Key{Kind: api.KindCloud, Name: cloud}.URLPath() + "/resources"
	// A collector does not need to wait for decisions.
	q := &call{method: http.MethodPut, path: path, query: url.Values{"wait": {"0s"}}, body: body, repeatable: true}
	resp, err := c.send(ctx, q)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	// The connection can be reused only if the body was read to the end.
	if _, err := readLimited(resp, c.opts.MaxResponseBytes); err != nil {
		return false, fmt.Errorf("reading the response to %s %s: %w", q.method, q.path, err)
	}
	return resp.StatusCode != http.StatusNoContent, nil
}
