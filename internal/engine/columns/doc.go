// Package columns holds the fleet that decisions are made on: immutable and stored in
// columns, with a bitmap for each fact. It computes the differences between versions.
//
// A Fleet is never changed: With returns the next version, which shares everything that
// did not change with the previous one. Its getters return the columns, maps and sets of
// the fleet itself, without copying. They are read-only: writing to one would change
// versions that others still use. Indexes that most fleets never need, such as the rows
// by label and claim and the amounts of resources, are built on first use.
//
// Terms of this package: a row is a cluster's position in all columns; slots are all
// rows, including free ones; an aspect is something about the fleet that can change; a
// Delta lists the aspects and rows that a version changed; the standing of a cluster is
// the part of its merit that is the same for all queries.
package columns
