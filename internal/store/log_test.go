package store

import (
	"os"
	"path/filepath"
	"testing"

	"go.etcd.io/etcd/server/v3/storage/wal"
	"go.etcd.io/etcd/server/v3/storage/wal/walpb"
	"go.etcd.io/raft/v3/raftpb"
	"go.uber.org/zap"
	"google.golang.org/protobuf/proto"
)

// TestLogMayStartWithASnapshot: the oldest remaining file of a log may start with the record of a snapshot that is
// older than its first entry.
func TestLogMayStartWithASnapshot(t *testing.T) {
	t.Parallel()
	member := t.TempDir()
	directory := filepath.Join(member, "wal")
	log, err := wal.Create(zap.NewNop(), directory, []byte("\x08\x01"))
	if err != nil {
		t.Fatal(err)
	}
	defer log.Close()
	files := func() []string {
		list, err := filepath.Glob(filepath.Join(directory, "*.wal"))
		if err != nil {
			t.Fatal(err)
		}
		return list
	}
	last := uint64(0)
	save := func() {
		t.Helper()
		last++
		entry := &raftpb.Entry{Term: proto.Uint64(1), Index: proto.Uint64(last), Type: raftpb.EntryNormal.Enum(), Data: make([]byte, 64<<10)}
		if err := log.Save(&raftpb.HardState{Term: proto.Uint64(1), Vote: proto.Uint64(1), Commit: proto.Uint64(last)}, []*raftpb.Entry{entry}); err != nil {
			t.Fatal(err)
		}
	}
	for len(files()) < 2 {
		save()
	}
	if err := log.SaveSnapshot(&walpb.Snapshot{Index: proto.Uint64(last - 3), Term: proto.Uint64(1), ConfState: &raftpb.ConfState{Voters: []uint64{1}}}); err != nil {
		t.Fatal(err)
	}
	save()
	save()
	if err := log.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(files()[0]); err != nil {
		t.Fatal(err)
	}
	findings, found, err := inspectLog(member)
	if err != nil || len(findings) > 0 || found != last {
		t.Errorf("a sound log ends at %d, want %d, with %v, %v", found, last, findings, err)
	}
}
