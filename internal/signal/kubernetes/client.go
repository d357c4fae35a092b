package kubernetes

import (
	"context"
	"io"
	"net/http"

	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/kube"
)

const (
	// requestsPerSecond and requestsAtOnce limit the requests to one cluster. Normally there is one
	// probe per interval.
	requestsPerSecond = 10
	requestsAtOnce    = 20
	// maxAnswer limits the size of a response, except of a watch: the discovery document of a
	// cluster with very many types is a few MiB.
	maxAnswer = 64 << 20
)

// client accesses one cluster, besides the informer of its nodes and pods.
type client struct {
	*kube.Connection
	metadata  metadata.Interface
	discovery *discovery.DiscoveryClient
}

func newClient(clusters *kube.Clusters, cluster string, kubeconfig api.Secret) (*client, error) {
	config, connection, err := clusters.Open(cluster, kubeconfig, maxAnswer)
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = requestsPerSecond, requestsAtOnce
	c := &client{Connection: connection}
	if err := c.equip(config); err != nil {
		connection.Close()
		return nil, kube.Incomplete()
	}
	return c, nil
}

// equip creates the clients.
func (c *client) equip(config *rest.Config) (err error) {
	if c.metadata, err = metadata.NewForConfigAndClient(config, c.HTTP); err != nil {
		return err
	}
	c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, c.HTTP)
	return err
}

// readyz queries the API server's readiness, and returns the status code.
func (c *client) readyz(ctx context.Context) (int, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, c.Base.JoinPath("readyz").String(), nil)
	if err != nil {
		return 0, err
	}
	resp, err := c.HTTP.Do(req)
	if err != nil {
		return 0, err
	}
	defer resp.Body.Close()
	// Read the body so that the connection can be reused, but not more than expected.
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, err
}
