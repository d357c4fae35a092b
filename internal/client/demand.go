package client

import (
	"context"
	"net/http"
	"net/url"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Demand lists the clusters that would satisfy what is open in a namespace, or everywhere if it is
// "".
func (c *Client) Demand(ctx context.Context, namespace string) (*api.DemandList, error) {
	query := url.Values{}
	if namespace != "" {
		query.Set("namespace", namespace)
	}
	list := &api.DemandList{}
	if err := c.read(ctx, &call{method: http.MethodGet, path: "/v1/demand", query: query, repeatable: true}, list); err != nil {
		return nil, err
	}
	return list, nil
}
