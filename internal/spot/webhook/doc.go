// Package webhook is the HTTPS server that the API servers of clusters ask about
// pods, Deployments and StatefulSets while these are created or changed. New pods
// get the affinity that steers them to the nodes they are for; labels that would not
// be understood are refused where they are written.
//
// Clusters are told to go on without an answer. So is this package: whatever it
// cannot read or decide in time is allowed as it is, and corrected later.
package webhook
