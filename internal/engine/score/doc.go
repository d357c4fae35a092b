// Package score rates clusters. Each strategy makes a scorer, and each prioritizer is a
// term of one; a scorer says of itself what it reads.
//
// What is ours alone: a score is a cluster's own, by what is known of it, and then what
// the decisions of other placements say, which only moves new seats (a scorer that minds
// them). Evenness is what an even division over domains is worth. A rating is one look
// at the fleet to score clusters, and a ranking the order that follows from it.
package score
