// Package fleet keeps the in-memory copy of the store. One goroutine follows the
// store's watch and publishes immutable snapshots. Reads, the reconciler and the
// watches of clients use those and never query etcd.
//
// Taking a snapshot costs nothing, and it never changes. To follow changes, subscribe:
// a subscription walks a linked list of batches, so publishing costs the same for one
// subscriber as for ten thousand, and a slow subscriber delays no one.
package fleet
