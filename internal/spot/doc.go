// Package spot reads what clusters, workloads and nodes say about on-demand and spot
// nodes: settings, labels, and the notice that a node ends. It does no I/O. The rules
// by which pods are split are those of engine/split; the packages below carry them
// out in clusters.
package spot
