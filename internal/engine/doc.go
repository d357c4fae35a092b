// Package engine makes scheduling decisions: pure functions over an immutable, columnar copy of the
// fleet. It does no I/O, reads no clock, starts no goroutines and uses no randomness, so the same
// inputs give the same decision, bit for bit, in every run and on every replica. The reconciler,
// explanations and simulations call the same functions.
//
// A decision has three steps. First, checks, which filters compile from a spec, remove clusters by
// bitmap algebra and declare what they depend on (see README.md). Then a scorer rates the remaining
// clusters. Finally, the selection walks a ranking, best first, until it has found enough clusters:
// the ranking of the fleet's metrics or of a prioritizer policy. Queries of one Class share a View,
// which is updated row by row as the fleet changes. Clusters of the current decision are checked
// separately, because they may stay under conditions under which they would not be chosen: they may
// be paused, and their own reservation does not count against them.
//
// Workloads are bound in the same way, by a Propagation: filters determine which clusters of an
// affinity group fit, package division chooses among them and divides the replicas, and Bind
// applies the policy's order: group by group, with failover, fail-back and eviction.
package engine
