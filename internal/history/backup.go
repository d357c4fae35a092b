package history

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/backoff"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// backupPatience is how long a backup waits for the log to have what the store has.
const backupPatience = 30 * time.Second

// Backup implements store.History. All files but the last one are as they are. If the log does not have
// everything up to the revision, as when its disk is full, the restored one has a gap.
func (l *Log) Backup(ctx context.Context, revision, restored int64) ([]store.HistoryFile, error) {
	waiting, cancel := context.WithTimeout(ctx, backupPatience)
	defer cancel()
	for l.complete() < revision && backoff.Wait(waiting, 10*time.Millisecond) {
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.RLock()
	files, through := slices.Clone(l.files), l.through
	l.mu.RUnlock()
	last := 0
	for last < len(files) && files[last].first <= revision {
		last++
	}
	if last--; last < 0 {
		return nil, nil
	}
	var backup []store.HistoryFile
	for _, f := range files[:last] {
		backup = append(backup, store.HistoryFile{
			Name: f.name(), Size: f.size, Open: func() (io.ReadCloser, error) { return os.Open(l.path(f.name())) },
		})
	}
	mark := restored
	if through < revision {
		mark = through
	}
	end, err := l.until(files[last], revision, mark)
	return append(backup, end), err
}

// until returns a file up to a revision, with a mark at its end. A file that cannot be read is a gap.
func (l *Log) until(f file, revision, mark int64) (store.HistoryFile, error) {
	var text bytes.Buffer
	lines, err := l.read(f)
	if err != nil {
		l.options.Logger.Error("a backup has a gap in the history of decisions", "file", f.name(), "error", err)
		gap, err := encodeLines([]line{{Gap: &api.HistoryGap{After: f.first - 1, Until: revision, Reason: fmt.Sprintf("the file %s was damaged", f.name())}}})
		if err != nil {
			return store.HistoryFile{}, err
		}
		text.Write(gap)
	}
	for _, line := range lines {
		if l, _ := decode(line); l.within(0, revision) {
			text.Write(append(line, '\n'))
		}
	}
	encoded, err := encodeLines([]line{{Through: mark}})
	if err != nil {
		return store.HistoryFile{}, err
	}
	text.Write(encoded)
	f.sealed = false
	return store.HistoryFile{
		Name: f.name(), Size: int64(text.Len()), Open: func() (io.ReadCloser, error) { return io.NopCloser(&text), nil },
	}, nil
}
