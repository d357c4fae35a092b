// Package columns holds the fleet that decisions are made on: immutable, by column, with
// a bitmap for each fact. It says what differs between two versions of it.
package columns
