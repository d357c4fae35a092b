// Package binding decides workloads: on which clusters how many replicas run, and when
// they leave. It writes what the status and the explanation of a workload say.
package binding
