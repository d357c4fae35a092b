package history

import (
	"context"
	"encoding/json"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// maxDropped is how many chunks of a journal are deleted in one transaction.
const maxDropped = 100

// retain deletes the oldest chunks that are too old, or too many, and reports whether there may be more.
func (l *Log) retain(ctx context.Context) (bool, error) {
	h, at, err := l.readHead(ctx, 0)
	if err != nil {
		return false, err
	}
	logs, err := l.indexes(ctx, l.log, h.Log, at)
	if err != nil {
		return false, err
	}
	inputs, err := l.indexes(ctx, l.inputs, h.Inputs, at)
	if err != nil {
		return false, err
	}
	dropLogs, dropInputs := l.dropped(logs, inputs)
	if dropLogs+dropInputs == 0 {
		return false, nil
	}
	dropLogs, dropInputs = min(dropLogs, maxDropped), min(dropInputs, maxDropped)
	change := store.HistoryChange{Key: headKey, At: h.revision, Seen: at, Shrinks: true}
	for _, part := range []struct {
		journal *journal
		chunks  []index
	}{{l.log, logs[:dropLogs]}, {l.inputs, inputs[:dropInputs]}} {
		if len(part.chunks) == 0 {
			continue
		}
		s := h.of(part.journal)
		for _, i := range part.chunks {
			s.First, s.Gone = i.Number+1, i.Last
			s.Bytes = max(s.Bytes-i.Bytes, 0)
			s.Records = max(s.Records-i.Records, 0)
		}
		if s.First == s.Next {
			s.Bytes, s.Records = 0, 0
		}
		first := part.chunks[0].Number
		change.Delete = append(change.Delete,
			store.HistoryRange{From: part.journal.chunkKey(first), To: part.journal.chunkKey(s.First)},
			store.HistoryRange{From: part.journal.indexKey(first), To: part.journal.indexKey(s.First)})
	}
	if !l.Enabled() {
		change.Delete = append(change.Delete, one(recordedKey)) // later passes begin with everything again
	}
	text, err := json.Marshal(h)
	if err != nil {
		return false, err
	}
	change.Put = map[string][]byte{headKey: text}
	return l.apply(ctx, change)
}

// dropped returns how many of the oldest chunks of each journal are to be deleted.
func (l *Log) dropped(logs, inputs []index) (dropLogs, dropInputs int) {
	if !l.Enabled() {
		return len(logs), len(inputs)
	}
	horizon := l.options.Now().Add(-l.options.Retention)
	bytes := int64(0)
	dropLogs = olderThan(logs, horizon)
	// Explanations begin with a base, so the last one before the horizon stays, with the inputs and the records after it.
	bases := completeBases(inputs)
	for _, b := range slices.Backward(bases) {
		if !timeOf(inputs, b.Ended).After(horizon) {
			dropInputs = chunksBefore(inputs, b.From)
			dropLogs = min(dropLogs, chunksBefore(logs, b.Revision))
			break
		}
	}
	if len(bases) == 0 {
		dropInputs = olderThan(inputs, horizon)
	}
	inputBytes := int64(0)
	for _, i := range logs[dropLogs:] {
		bytes += i.Bytes
	}
	for _, i := range inputs[dropInputs:] {
		inputBytes += i.Bytes
	}
	// Explanations go before the records: they take more. They go up to the next base, and if there
	// is none, a little more is kept until there is.
	for bytes+inputBytes > l.options.Size && dropLogs+dropInputs < len(logs)+len(inputs) {
		if inputBytes <= l.options.Size/2 && dropLogs < len(logs) {
			bytes -= logs[dropLogs].Bytes
			dropLogs++
			continue
		}
		next := len(inputs)
		for _, b := range bases {
			if before := chunksBefore(inputs, b.From); before > dropInputs {
				next = min(next, before)
			}
		}
		if next == len(inputs) {
			l.recorder.want()
			if bytes+inputBytes <= l.options.Size+l.options.Size/8 {
				break
			}
		}
		for _, i := range inputs[dropInputs:next] {
			inputBytes -= i.Bytes
		}
		dropInputs = next
	}
	return dropLogs, max(dropInputs, l.unexplained(logs[:dropLogs], inputs, bases))
}

// unexplained returns how many chunks of inputs explain nothing without the records that are deleted.
func (l *Log) unexplained(deleted, inputs []index, bases []base) int {
	if len(deleted) == 0 {
		return 0
	}
	for _, b := range bases {
		if b.Revision >= deleted[len(deleted)-1].Last {
			return chunksBefore(inputs, b.From)
		}
	}
	l.recorder.want()
	return 0
}

// olderThan returns how many chunks have nothing after a time. That of a damaged chunk is unknown:
// it goes with the next one.
func olderThan(chunks []index, horizon time.Time) (n int) {
	for i, c := range chunks {
		if c.Until.After(horizon) {
			break
		}
		if !c.Until.IsZero() {
			n = i + 1
		}
	}
	return n
}

// completeBases returns the bases in chunks of which both the beginning and the end are there, in
// the order of their ends.
func completeBases(chunks []index) []base {
	var open, complete []base
	for _, i := range chunks {
		for _, b := range i.Bases {
			n := len(open) - 1
			for n >= 0 && open[n].ID != b.ID {
				n--
			}
			if n < 0 {
				open = append(open, b)
				n = len(open) - 1
			}
			open[n].Ended = max(open[n].Ended, b.Ended)
			if b.Ended != 0 && open[n].From >= chunks[0].First-1 {
				complete = append(complete, open[n])
			}
		}
	}
	return complete
}

// chunksBefore returns how many chunks have nothing after a revision.
func chunksBefore(chunks []index, revision int64) int {
	n := 0
	for n < len(chunks) && chunks[n].Last <= revision {
		n++
	}
	return n
}

// timeOf returns the latest time in the chunk with a revision.
func timeOf(chunks []index, revision int64) time.Time {
	n := chunksBefore(chunks, revision-1)
	if n == len(chunks) {
		return time.Time{}
	}
	return chunks[n].Until
}
