// Package fleet keeps the in-memory picture of the store. One goroutine follows
// the store's watch and publishes immutable snapshots; reads, the reconciler and
// every watch of a client work on those and never ask etcd.
//
// A snapshot costs nothing to take and never changes. Whoever wants to follow
// the changes subscribes: a subscription walks a linked list of batches, so a
// publication costs the same for one subscriber and for ten thousand, and a slow
// one holds up nobody.
package fleet
