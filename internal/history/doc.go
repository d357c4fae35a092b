// Package history keeps what was decided, when and why: every server writes each change of a
// decision that the watch of the store shows to files of its own.
//
// An entry is a function of one change in the store, the status of a placement or workload before
// and after, so all servers on a store have the same entries, numbered by its revisions; only the
// time of a deletion is each server's own.
//
// The files are lines of JSON. A line is an entry, a gap, or a mark that says up to which revision
// the log is complete. Lines are appended to one file; when it is large or old, it is compressed as a
// whole, and another one is begun. Names carry the first revision and time:
//
//	00000000000000000042-1767225600.ndjson.zst   compressed, never changed again
//	00000000000000012345-1769817600.ndjson       lines are appended to it
//
// After a crash, lines behind the last mark are dropped and written again: the store keeps its
// changes for some minutes (keep-revisions). What a server missed while it was away for longer, it
// takes from another server. What none has, such as what happened before the store was restored from a
// backup, is a gap, which readers are told.
//
// The oldest files are deleted by age and by size.
package history
