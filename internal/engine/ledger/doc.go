// Package ledger counts what decisions use of clusters: reservations, load, and the
// remaining capacity.
//
// The reservation ledger has a hold for every placement or workload on every cluster
// that it reserves something on. A hold counts until a capacity report of the cluster is
// newer than the decision: from then on the report speaks for it. Room is what the
// report and the holds leave.
package ledger
