package spot

import "errors"

// Errors of requests about one cluster. Errors wrap these; their own text names the cluster or
// node.
var (
	// ErrNotEnabled says that spot is not enabled for the cluster.
	ErrNotEnabled = errors.New("spot is not enabled for the cluster")
	// ErrNotConnected says that the content of the cluster is currently unknown: it cannot be
	// reached, or was just connected.
	ErrNotConnected = errors.New("the cluster is not connected")
	// ErrNoNode says that the cluster has no node with this name.
	ErrNoNode = errors.New("the cluster has no such node")
)
