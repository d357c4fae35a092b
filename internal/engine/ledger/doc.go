// Package ledger counts what decisions take of clusters: reservations, load, and the
// room that is left.
package ledger
