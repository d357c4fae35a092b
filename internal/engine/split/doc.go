// Package split has the rules by which a workload's pods are split over on-demand
// and spot nodes: how many go where, what the next pod is for, and which pod is
// replaced. They are functions of what they are given, without I/O and without a
// clock.
package split
