// Package ledger tracks what decisions use of clusters: reservations, load, and the remaining
// capacity.
//
// The reservation ledger has a hold for every placement or workload on every cluster on which it
// reserves something. A hold counts until a capacity report of the cluster is newer than the
// decision; from then on the report contains it. Room is what the report and the holds leave.
package ledger
