// Package columns holds the fleet that decisions are made on: immutable, by column, with
// a bitmap for each fact. It says what differs between two versions of it.
//
// A Fleet is never changed: With returns the next version, which shares with the one
// before whatever did not change. So its getters return the columns, maps and sets of
// the fleet itself, without a copy. They are for reading only; whoever writes to one
// changes versions that others still look at. What most fleets are never asked, the rows
// by label and claim and the amounts of resources, is made at its first use, by whoever
// asks first.
//
// The words that are ours alone: a row is a cluster's place in all columns; slots are
// the rows that there are, free ones included; an aspect is something about the fleet
// that can change; a Delta says which aspects of which rows a version changed; the
// standing of a cluster is its merit whoever asks.
package columns
