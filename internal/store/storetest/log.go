// Package storetest is test code: it makes short-lived stores cheap, and runs an etcd for tests
// that need one.
package storetest

import "go.etcd.io/etcd/server/v3/storage/wal"

// segment is the size of a log file. Most tests write less, and a few start another file.
const segment = 4 << 20

// SmallLogs makes the log files of this process small. etcd allocates two for every store, 64 MB
// each, and reads them at every start: for a store with ten objects that is most of the work. Call
// it in TestMain, before the first store is opened.
func SmallLogs() { wal.SegmentSizeBytes = segment }
