package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Interrupt announces that a node of a cluster will be terminated, so that its pods are replaced in
// advance, and returns when. With a zero deadline, the server assumes two minutes. A *api.Problem
// with status 409 says that spot is not enabled for the cluster.
func (c *Client) Interrupt(ctx context.Context, cluster, node string, deadline time.Time) (time.Time, error) {
	var wanted api.Interruption
	if !deadline.IsZero() {
		wanted.Deadline = &deadline
	}
	body, err := json.Marshal(wanted)
	if err != nil {
		return time.Time{}, fmt.Errorf("interruption of node %q of cluster %q: %w", node, cluster, err)
	}
	var answer api.Interruption
	q := &call{method: http.MethodPost, path: interruptionPath(cluster, node), body: body, wait: serverWait, repeatable: true}
	if err := c.read(ctx, q, &answer); err != nil {
		return time.Time{}, err
	}
	if answer.Deadline == nil {
		return time.Time{}, fmt.Errorf("interruption of node %q of cluster %q: the response has no deadline", node, cluster)
	}
	return *answer.Deadline, nil
}

// WithdrawInterruption withdraws the announcement. It succeeds if there is none.
func (c *Client) WithdrawInterruption(ctx context.Context, cluster, node string) error {
	return c.read(ctx, &call{method: http.MethodDelete, path: interruptionPath(cluster, node), wait: serverWait, repeatable: true}, nil)
}

// ListDistributions lists the workloads whose pods are split between on-demand and spot nodes in a
// cluster, ordered by namespace, kind and name. A *api.Problem with status 409 says that spot is
// not enabled for the cluster, 503 that the cluster is not connected.
func (c *Client) ListDistributions(ctx context.Context, cluster string) ([]api.DistributedWorkload, error) {
	var list struct {
		Items []api.DistributedWorkload `json:"items"`
	}
	path := api.Key{Kind: api.KindCluster, Name: cluster}.URLPath() + "/distributions"
	if err := c.read(ctx, &call{method: http.MethodGet, path: path, repeatable: true}, &list); err != nil {
		return nil, err
	}
	return list.Items, nil
}

func interruptionPath(cluster, node string) string {
	return api.Key{Kind: api.KindCluster, Name: cluster}.URLPath() + "/nodes/" + url.PathEscape(node) + "/interruption"
}
