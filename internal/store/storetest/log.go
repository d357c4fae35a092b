// Package storetest is test code: it makes stores cheap that live for a second, and runs
// an etcd for those that need one.
package storetest

import "go.etcd.io/etcd/server/v3/storage/wal"

// segment is the size of a file of the log. Most tests write less, and a few begin another one.
const segment = 4 << 20

// SmallLogs makes the files of the logs that this process writes small. etcd allocates two for every store, 64 MB
// each, and every start reads them: for a store with ten objects that is most of the work. Call it in TestMain,
// before the first store is opened.
func SmallLogs() { wal.SegmentSizeBytes = segment }
