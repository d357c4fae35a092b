// Package history keeps what was decided, when and why. It is a log in etcd, in the order of the
// store's revisions, from which decisions can be read and explained as they were.
//
// # What is written
//
// A record of a decision is written in the transaction that writes the decision
// (store.StatusWrite.History). So whatever crashes or leads: there is exactly one record for each
// decision that happened, and its revision is that of the transaction. Nothing else orders the log.
// If a transaction is not answered, the store does not make it again before it knows whether it has
// happened: the key of its records tells.
//
// What a decision was made on are the inputs: the objects as the pass saw them. Before the decisions
// of a pass are written, Record writes the objects that have changed since the previous recorded
// pass. Now and then it writes all of them, a checkpoint. What was decided is written once: a status
// that is in a record is not among the inputs of later passes. Past puts together the objects that a
// decision was made on: the last complete checkpoint, and the records and passes after it, in the
// order in which the passes saw them. Inputs have no secrets, not even encrypted ones:
// store.Codec.EncodeInputs leaves them out, and records are made of statuses, which have none.
//
// Records and inputs are two journals of the same form:
//
//	/v1/history/log/<term>/<n>         hot: the records of one transaction
//	/v1/history/inputs/<term>/<n>      hot: a piece of a pass or of a checkpoint
//	/v1/history/sealed/<journal>/<n>   a chunk of many hot values, compressed with zstd
//	/v1/history/index/<journal>/<n>    what the chunk contains: revisions, times, and a filter of names
//	/v1/history/head                   the next chunk of each journal, and how much is kept
//	/v1/history/recorded               the last recorded pass
//	/v1/history/led                    written with the beginning of each term; see the last section
//
// # How it is kept small
//
// Sealing takes the hot values with the lowest revisions, and replaces them by a chunk in one
// transaction: what is sealed is either hot or in a chunk, never both or neither. Chunks never
// change. Retention deletes the oldest ones, by age and by size. Explanations begin with a checkpoint,
// so the last one that is old enough to be deleted is kept, with the inputs and records after it; ten
// are made in the time for which records are kept. Both are done by the leader, fenced as every
// derived write, and compared with the last version of the head, so that a transaction that is
// applied late changes nothing.
//
// The history does not count against the quota of the store: the embedded member gets as much more
// as the history may take.
//
// What is damaged costs only itself: it is read as a gap, and what was decided on it, up to the next
// checkpoint, cannot be explained. The head and the indexes are made again from the chunks.
//
// # How it is read
//
// Every server reads it, from etcd, at one revision: first the chunks, then the hot values. A cursor
// is a revision and the number of a record in it. Filters of the chunks tell which of them cannot
// contain a name, so that few are decompressed to find the decisions of an object or cluster.
//
// # Servers of other versions
//
// A server of the previous version reads and watches other prefixes, and writes decisions
// without records while it leads. Every term begins with a write of a key; leaders that record write
// a second one with it, so the first of them after one that does not finds the first key newer than
// the second, and writes a gap into the log: what is missing is known, and what is there is in order.
package history
