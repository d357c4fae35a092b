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

// OpenStackProjects lists the projects and Magnum cluster templates of a cloud, as
// its OpenStack has them at this moment. Besides what every request may answer, a
// *api.Problem with status 404 says that there is no such cloud, 409 that it has
// no credentials, and 502 that the OpenStack refuses or does not answer.
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
	// It is not repeated on a 502: the OpenStack has refused, and would again.
	if err := c.read(ctx, &call{method: http.MethodGet, path: path, query: query, wait: serverWait}, live); err != nil {
		return nil, err
	}
	return live, nil
}

// ReportCloud pushes the figures of a cloud. changed is false where they were
// known already. A *api.Problem with status 409 says that the report does not
// follow on the last that was taken in: the next one has to be full.
func (c *Client) ReportCloud(ctx context.Context, cloud string, report api.CloudReport) (changed bool, err error) {
	body, err := json.Marshal(report)
	if err != nil {
		return false, fmt.Errorf("report of cloud %q: %w", cloud, err)
	}
	path := api.Key{Kind: api.KindCloud, Name: cloud}.URLPath() + "/resources"
	// Who pushes has no use for the decisions that follow.
	q := &call{method: http.MethodPut, path: path, query: url.Values{"wait": {"0s"}}, body: body, repeatable: true}
	resp, err := c.send(ctx, q)
	if err != nil {
		return false, err
	}
	defer resp.Body.Close()
	// Only a body that was read to its end leaves the connection for the next push.
	if _, err := readLimited(resp.Body, c.opts.MaxResponseBytes); err != nil {
		return false, fmt.Errorf("reading the answer to %s %s: %w", q.method, q.path, err)
	}
	return resp.StatusCode != http.StatusNoContent, nil
}
