// Package binding decides workloads: on which clusters how many replicas run, and when
// they leave. It writes what the status and the explanation of a workload say.
//
// What is ours alone: a propagation is a workload with the policy it follows, made ready
// to decide; its affinity groups are tried in order, and each may have overflow tiers.
// The lack is by how much room has to grow before another answer is possible. Sites are
// regions of OpenStack, to which a workload goes without a policy.
package binding
