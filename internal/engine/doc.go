// Package engine decides placements: pure functions over an immutable, columnar
// picture of the fleet. It does no I/O, reads no clock, starts no goroutine and
// draws no random number, so the same inputs give the same decision, bit for
// bit, on every run and replica. The reconciler, the explanation and the
// simulation call the same functions.
//
// A decision has three steps. Checks, which filters make of a spec, remove clusters
// by bitmap algebra and say of themselves what they depend on (see README.md); the
// scorer rates the survivors; the selection walks a ranking, best first, until
// enough survivors are found: that of the fleet's metrics, or that of a
// prioritizer policy. What queries of one Class share stands in a View, which
// follows the fleet row by row. A cluster of the present decision is
// looked at on its own, because staying is judged by other rules than coming:
// it may be paused, and its own reservation does not count against it.
//
// A workload is bound in the same way, by a Propagation: the filters say which
// clusters of an affinity group fit, package division chooses among them and
// divides the replicas, and Bind puts both into the order that the policy asks
// for: group by group, with failover, fail-back and eviction.
package engine
