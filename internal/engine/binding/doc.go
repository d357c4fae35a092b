// Package binding decides workloads: how many replicas run on which clusters, and when
// they leave. It writes the status and the explanation of a workload.
//
// Terms of this package: a propagation is a workload with its policy, ready to be
// decided. Its affinity groups are tried in order, and each may have overflow tiers. The
// lack is how much capacity must grow before a different answer is possible. Sites are
// clusters with a region and a zone, to which a workload can go without a policy.
package binding
