package history

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

const (
	// sealBytes is how large hot values become before they are sealed, and what is sealed at once,
	// before compression. They are sealed earlier if the oldest is sealAge old, or if there are many:
	// sealLogs, or sealInputs, which are larger.
	sealBytes  = 4 << 20
	sealAge    = 24 * time.Hour
	sealLogs   = 4096
	sealInputs = 256
	// maxSealed is the size of a chunk, with which a transaction is well below etcd's limit of requests.
	maxSealed = 1 << 20
)

// seal replaces the oldest hot values of a journal by a chunk, if there are enough of them, and
// reports whether it did.
func (l *Log) seal(ctx context.Context, j *journal) (bool, error) {
	h, _, err := l.readHead(ctx, 0)
	if err != nil {
		return false, err
	}
	hot, _, err := l.options.Store.ReadHistory(ctx, store.HistoryUnder(j.hot), j.most, 0)
	if err != nil || !l.due(j, hot) {
		return false, err
	}
	if len(hot) == j.most {
		hot = beforeRevision(hot, hot[len(hot)-1].Revision) // of which there may be more
	}
	for n := len(hot); n > 0; {
		chosen := l.choose(hot[:n])
		n = len(beforeRevision(chosen, chosen[len(chosen)/2].Revision)) // for the next try
		s := l.sealing(j, h, hot, chosen)
		if n > 0 && (len(s.packed) > maxSealed || len(s.change.Delete) > store.MaxHistoryRanges) {
			continue
		}
		done, err := l.apply(ctx, s.change)
		if done || err != nil {
			return done, err
		}
		// Either the head has changed, or a value with a later revision is between those that are sealed.
		if again, _, err := l.readHead(ctx, 0); err != nil || again.revision != h.revision {
			return false, err
		}
	}
	return false, fmt.Errorf("%w: the oldest value of the %s of the history cannot be sealed", store.ErrUnavailable, j.name)
}

// apply makes a change of what is sealed. It is false if something else was changed in the meantime.
func (l *Log) apply(ctx context.Context, change store.HistoryChange) (bool, error) {
	_, err := l.options.Store.ChangeHistory(ctx, change)
	if errors.Is(err, store.ErrHistoryChanged) {
		return false, nil
	}
	return err == nil, err
}

// due reports whether hot values are to be sealed.
func (l *Log) due(j *journal, hot []store.HistoryValue) bool {
	if len(hot) == 0 {
		return false
	}
	bytes := 0
	for _, v := range hot {
		bytes += len(v.Value)
	}
	oldest := j.index(0, plain(hot[:1])).Since
	return len(hot) >= j.most || bytes >= l.sealBytes || !oldest.IsZero() && l.options.Now().Sub(oldest) >= min(sealAge, l.options.Retention)
}

// choose returns the first values that make a chunk: complete revisions. What is compressed already does not become smaller.
func (l *Log) choose(hot []store.HistoryValue) []store.HistoryValue {
	bytes, packed := 0, 0
	for n, v := range hot {
		bytes += len(v.Value)
		if isPacked(v.Value) {
			packed += len(v.Value)
		}
		if n > 0 && (bytes > l.sealBytes || packed > maxSealed*3/4) {
			if chosen := beforeRevision(hot[:n], v.Revision); len(chosen) > 0 {
				return chosen
			}
		}
	}
	return hot
}

// isPacked reports whether a hot value is compressed. The first byte says so, and is another one in each journal.
func isPacked(value []byte) bool {
	return len(value) > 0 && (value[0] == packedPiece || value[0] == store.PackedRecords)
}

// beforeRevision returns the values with lower revisions.
func beforeRevision(hot []store.HistoryValue, revision int64) []store.HistoryValue {
	n, _ := slices.BinarySearchFunc(hot, revision, func(v store.HistoryValue, revision int64) int { return cmp.Compare(v.Revision, revision) })
	return hot[:n]
}

// sealing is a chunk and the change that seals it.
type sealing struct {
	packed []byte
	change store.HistoryChange
}

// sealing makes the chunk of the chosen values, which are the first of the hot ones.
func (l *Log) sealing(j *journal, h head, hot, chosen []store.HistoryValue) sealing {
	values := plain(chosen)
	s := h.of(j)
	i := j.index(s.Next, values)
	packed := packChunk(values)
	i.Bytes = int64(len(packed) + len(i.words) + indexOverhead)
	encoded, _ := i.encode() // it has no value that JSON does not have
	s.Next++
	s.Bytes += i.Bytes
	s.Records += i.Records
	text, _ := json.Marshal(h) // likewise
	return sealing{packed, store.HistoryChange{
		Key: headKey, At: h.revision,
		Put:    map[string][]byte{j.chunkKey(i.Number): packed, j.indexKey(i.Number): encoded, headKey: text},
		Delete: runs(hot, len(chosen)), Seen: chosen[len(chosen)-1].Revision,
	}}
}

// indexOverhead is about what an index takes besides its words, and both values besides their contents.
const indexOverhead = 512

// runs are the ranges of the keys of the first hot values, without those of the others.
func runs(hot []store.HistoryValue, chosen int) []store.HistoryRange {
	type keyed struct {
		key    string
		chosen bool
	}
	keys := make([]keyed, len(hot))
	for n, v := range hot {
		keys[n] = keyed{v.Key, n < chosen}
	}
	slices.SortFunc(keys, func(a, b keyed) int { return cmp.Compare(a.key, b.key) })
	var ranges []store.HistoryRange
	open := false
	for _, k := range keys {
		switch {
		case !k.chosen:
			open = false
		case open:
			ranges[len(ranges)-1].To = k.key + "\x00"
		default:
			ranges, open = append(ranges, one(k.key)), true
		}
	}
	return ranges
}

// isDamage reports whether an error is of stored data, as opposed to reading it.
func isDamage(err error) bool { return errors.Is(err, store.ErrDamaged) }
