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

// Explain returns the explanation of a placement or workload.
func (c *Client) Explain(ctx context.Context, key api.Key) (*api.Explanation, error) {
	explanation := &api.Explanation{}
	q := &call{method: http.MethodGet, path: key.URLPath() + "/explanation", repeatable: true}
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

// SendTest sends a test event to the destination of a notification, and returns what became of it.
func (c *Client) SendTest(ctx context.Context, key api.Key) (*api.NotificationTest, error) {
	test := &api.NotificationTest{}
	q := &call{method: http.MethodPost, path: key.URLPath() + "/test", wait: serverWait}
	if err := c.read(ctx, q, test); err != nil {
		return nil, err
	}
	return test, nil
}

// Freeze stops all moves that nothing forces, everywhere or in some namespaces.
func (c *Client) Freeze(ctx context.Context, request api.FreezeRequest) error {
	body, err := json.Marshal(request)
	if err != nil {
		return fmt.Errorf("encode the request: %w", err)
	}
	q := &call{method: http.MethodPost, path: "/v1/freeze", body: body, repeatable: true, wait: serverWait}
	return c.read(ctx, q, nil)
}

// Thaw ends the freeze of everything, or those of some namespaces.
func (c *Client) Thaw(ctx context.Context, namespaces []string) error {
	q := &call{method: http.MethodDelete, path: "/v1/freeze", repeatable: true, wait: serverWait}
	if len(namespaces) > 0 {
		q.query = url.Values{"namespaces": {strings.Join(namespaces, ",")}}
	}
	return c.read(ctx, q, nil)
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

// ReportHealth reports the health of a placement or workload on one of its clusters, and returns the
// object with the resulting decision.
func (c *Client) ReportHealth(ctx context.Context, key api.Key, report api.HealthReport) (api.Object, error) {
	return c.tell(ctx, key, &call{method: http.MethodPut, path: key.URLPath() + "/health", wait: serverWait, repeatable: true}, report)
}

// Approve approves steps of the rollout of a placement or workload, and returns the object with the
// resulting decision.
func (c *Client) Approve(ctx context.Context, key api.Key, approval api.RolloutApproval) (api.Object, error) {
	return c.tell(ctx, key, &call{method: http.MethodPost, path: key.URLPath() + "/approve", wait: serverWait}, approval)
}

// tell sends something about an object, and returns the object.
func (c *Client) tell(ctx context.Context, key api.Key, q *call, about any) (api.Object, error) {
	object, err := newObject(key.Kind)
	if err == nil {
		q.body, err = json.Marshal(about)
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", key, err)
	}
	if err := c.read(ctx, q, object); err != nil {
		return nil, err
	}
	return object, nil
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
