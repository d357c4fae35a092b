// Package webhook is the HTTPS server that the API servers of clusters call when pods, Deployments
// and StatefulSets are created or changed. New pods get an affinity for the right nodes; invalid
// labels are rejected.
//
// Clusters are configured to continue if the webhook does not respond. This package does the same:
// whatever it cannot read or decide in time is allowed unchanged, and corrected later.
package webhook
