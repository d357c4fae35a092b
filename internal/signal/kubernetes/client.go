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
	// requestsPerSecond and requestsAtOnce bound what one cluster is asked,
	// whatever it answers. The regular course takes a probe per interval.
	requestsPerSecond = 10
	requestsAtOnce    = 20
	// maxAnswer bounds an answer other than a watch: the discovery
	// document of a cluster with very many types takes a few MiB.
	maxAnswer = 64 << 20
)

// client is the access to one cluster, besides the feed of its nodes and pods.
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

// equip makes the clients for what is asked.
func (c *client) equip(config *rest.Config) (err error) {
	if c.metadata, err = metadata.NewForConfigAndClient(config, c.HTTP); err != nil {
		return err
	}
	c.discovery, err = discovery.NewDiscoveryClientForConfigAndClient(config, c.HTTP)
	return err
}

// readyz asks the API server how it is, and returns the status of the answer.
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
	// Read, so that the connection can be used again; not more than it should be.
	_, err = io.Copy(io.Discard, io.LimitReader(resp.Body, 64<<10))
	return resp.StatusCode, err
}
