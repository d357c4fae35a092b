// Package score rates clusters. Each strategy makes a scorer, and each prioritizer is a
// term of one; a scorer says of itself what it reads.
package score
