// Package placement decides placements: which clusters are chosen, how long they stay, and why. It
// creates the status and the explanation of a placement.
//
// Terms of this package: a query is a compiled placement; a class is all queries with the same
// checks and scoring; a view is what a class sees of a fleet. The chosen clusters have the seats,
// which are assigned by merit: a current cluster keeps its seat unless another one is better by
// more than min_improvement (hysteresis), and ties are broken by a hash of the placement and the
// cluster.
package placement
