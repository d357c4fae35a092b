// Package score rates clusters. Each strategy makes a scorer, and each prioritizer is a
// term of one. A scorer declares what it reads.
//
// Terms of this package: a score has a part that depends only on the cluster, and a part
// that depends on decisions of other placements, which only affects new seats (a scorer
// that minds them). Evenness is the value of an even distribution over domains. A rating
// scores the clusters of one version of the fleet, and a ranking is the resulting order.
package score
