// Package spot interprets settings, labels and termination notices of clusters, workloads and nodes
// with regard to on-demand and spot nodes. It does no I/O. The rules for splitting pods are in
// engine/split; the packages below apply them in clusters.
package spot
