package client

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// Explain returns the explanation of a placement or workload.
func (c *Client) Explain(ctx context.Context, key api.Key) (*api.Explanation, error) {
	return c.ExplainAt(ctx, key, "")
}

// ExplainAt is Explain at a store revision or a time (RFC 3339), while the store keeps that. "" is now.
func (c *Client) ExplainAt(ctx context.Context, key api.Key, at string) (*api.Explanation, error) {
	explanation := &api.Explanation{}
	q := &call{method: http.MethodGet, path: key.URLPath() + "/explanation", repeatable: true}
	if at != "" {
		q.query = url.Values{"at": {at}}
	}
	if err := c.read(ctx, q, explanation); err != nil {
		return nil, err
	}
	return explanation, nil
}

// Reschedule requests a new decision for a placement or workload and returns the object with it.
func (c *Client) Reschedule(ctx context.Context, key api.Key) (api.Object, error) {
	object, err := newObject(key.Kind)
	if err != nil {
		return nil, err
	}
	q := &call{method: http.MethodPost, path: key.URLPath() + "/reschedule", wait: serverWait}
	if err := c.read(ctx, q, object); err != nil {
		return nil, err
	}
	return object, nil
}

// Preview requests the decision that a placement or workload would get, or those of the workloads
// of a propagation policy, and makes the server keep it. The object needs its namespace, if it has
// one, and its name; it need not exist. A retry may create a second preview, which is harmless.
func (c *Client) Preview(ctx context.Context, object api.Object) (*api.Preview, error) {
	body, err := Encode(object)
	if err != nil {
		return nil, err
	}
	preview := &api.Preview{}
	q := &call{method: http.MethodPost, path: "/v1/previews", body: body, repeatable: true}
	if err := c.read(ctx, q, preview); err != nil {
		return nil, err
	}
	return preview, nil
}

// GetPreview reads a preview. A 404 *api.Problem says that it is no longer kept.
func (c *Client) GetPreview(ctx context.Context, id string) (*api.Preview, error) {
	preview := &api.Preview{}
	q := &call{method: http.MethodGet, path: "/v1/previews/" + id, repeatable: true}
	if err := c.read(ctx, q, preview); err != nil {
		return nil, err
	}
	return preview, nil
}

// Heartbeat reports that a cluster is alive, and its resources.
func (c *Client) Heartbeat(ctx context.Context, cluster string, heartbeat api.Heartbeat) (*api.Cluster, error) {
	body, err := json.Marshal(heartbeat)
	if err != nil {
		return nil, fmt.Errorf("heartbeat of cluster %q: %w", cluster, err)
	}
	answer := &api.Cluster{}
	key := api.Key{Kind: api.KindCluster, Name: cluster}
	q := &call{method: http.MethodPost, path: key.URLPath() + "/heartbeat", body: body, wait: serverWait, repeatable: true}
	if err := c.read(ctx, q, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// ReportHealth reports the health of a workload on one of its clusters, and returns the workload
// with the resulting decision.
func (c *Client) ReportHealth(ctx context.Context, workload api.Key, report api.HealthReport) (*api.Workload, error) {
	body, err := json.Marshal(report)
	if err != nil {
		return nil, fmt.Errorf("health of %s: %w", workload, err)
	}
	answer := &api.Workload{}
	q := &call{method: http.MethodPut, path: workload.URLPath() + "/health", body: body, wait: serverWait, repeatable: true}
	if err := c.read(ctx, q, answer); err != nil {
		return nil, err
	}
	return answer, nil
}

// Simulate asks what the server would decide. It changes nothing, so it is retried like a read.
func (c *Client) Simulate(ctx context.Context, simulation api.Simulation) (*api.SimulationResult, error) {
	body, err := json.Marshal(simulation)
	if err != nil {
		return nil, fmt.Errorf("simulation: %w", err)
	}
	var answer struct {
		Objects      []json.RawMessage `json:"objects"`
		Explanations []api.Explanation `json:"explanations"`
		Changes      []api.Change      `json:"changes"`
	}
	q := &call{method: http.MethodPost, path: "/v1/simulations", body: body, repeatable: true}
	if err := c.read(ctx, q, &answer); err != nil {
		return nil, err
	}
	result := &api.SimulationResult{Explanations: answer.Explanations, Changes: answer.Changes}
	for _, data := range answer.Objects {
		object, err := decodeObject(data)
		if err != nil {
			return nil, err
		}
		result.Objects = append(result.Objects, object)
	}
	return result, nil
}

// Server describes the server.
func (c *Client) Server(ctx context.Context) (*api.ServerInfo, error) {
	info := &api.ServerInfo{}
	if err := c.read(ctx, &call{method: http.MethodGet, path: "/v1/server", repeatable: true}, info); err != nil {
		return nil, err
	}
	return info, nil
}

// FinishUpgrade migrates the store to the newest format, which older programs cannot read, and
// returns its state.
func (c *Client) FinishUpgrade(ctx context.Context) (*api.StoreInfo, error) {
	info := &api.StoreInfo{}
	if err := c.read(ctx, &call{method: http.MethodPost, path: "/v1/upgrade/finish", repeatable: true}, info); err != nil {
		return nil, err
	}
	return info, nil
}
