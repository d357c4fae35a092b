// Package split has the rules for splitting a workload's pods between on-demand and
// spot nodes: how many of each type, the type of the next pod, and which pod to replace.
// They are pure functions, without I/O or a clock.
package split
