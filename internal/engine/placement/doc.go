// Package placement decides placements: which clusters, how long they stay, and why. It
// writes what the status and the explanation of a placement say.
//
// What is ours alone: a query is a placement made ready to decide, a class all queries
// that admit and rate alike, and a view what a class sees of a fleet. The chosen
// clusters have the seats. The merit of a cluster is what seats are taken by: a present
// one keeps its seat unless another is better by more than min_improvement (hysteresis),
// and ties are broken by a hash of the placement and the cluster.
package placement
