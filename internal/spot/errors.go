package spot

import "errors"

// What can be amiss with a question about one cluster. Errors wrap these; their
// own text says which cluster or node it is about.
var (
	// ErrNotEnabled says that nothing is split in the cluster, because it has spot
	// switched off.
	ErrNotEnabled = errors.New("spot is not enabled for the cluster")
	// ErrNotConnected says that what there is in the cluster is not known now: it
	// cannot be reached, or was connected a moment ago.
	ErrNotConnected = errors.New("the cluster is not connected")
	// ErrNoNode says that the cluster has no node of the name.
	ErrNoNode = errors.New("the cluster has no such node")
)
