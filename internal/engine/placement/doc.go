// Package placement decides placements: which clusters, how long they stay, and why. It
// writes what the status and the explanation of a placement say.
package placement
