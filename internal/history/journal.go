package history

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strconv"
	"sync"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// journal is one of the two sequences of values that the history consists of.
type journal struct {
	name  string
	hot   string // prefix of the values that are not sealed yet
	index func(number int64, values []value) index
	most  int // number of hot values that are sealed at once

	mu     sync.Mutex
	chunks []index // of the chunks that were read last, in order
}

func newJournals() (log, inputs *journal) {
	return &journal{name: "log", hot: store.HistoryLog, index: indexLog, most: sealLogs},
		&journal{name: "inputs", hot: inputsPrefix, index: indexInputs, most: sealInputs}
}

// inputsPrefix is that of hot inputs.
const inputsPrefix = "inputs/"

func (j *journal) chunkKey(number int64) string {
	return fmt.Sprintf("sealed/%s/%012d", j.name, number)
}
func (j *journal) indexKey(number int64) string { return fmt.Sprintf("index/%s/%012d", j.name, number) }

// headKey is the key of the head, which every change of what is sealed rewrites.
const headKey = "head"

// head says what is sealed.
type head struct {
	Log    span `json:"log"`
	Inputs span `json:"inputs"`

	revision int64 // of its last change; 0 if there is none yet
}

// span is what is sealed of a journal.
type span struct {
	// First is the number of the oldest chunk, Next that of the next one.
	First int64 `json:"first"`
	Next  int64 `json:"next"`
	// Bytes is what the chunks and their indexes take.
	Bytes int64 `json:"bytes"`
	// Records is how many they have.
	Records int64 `json:"records"`
	// Gone is the revision up to which nothing is kept anymore.
	Gone int64 `json:"gone"`
}

func (h *head) of(j *journal) *span {
	if j.hot == inputsPrefix {
		return &h.Inputs
	}
	return &h.Log
}

// one is the range of a single key.
func one(key string) store.HistoryRange { return store.HistoryRange{From: key, To: key + "\x00"} }

// readHead returns the head at a revision, 0 for the present one, and that revision.
func (l *Log) readHead(ctx context.Context, at int64) (head, int64, error) {
	values, at, err := l.options.Store.ReadHistory(ctx, one(headKey), 1, at)
	if err != nil || len(values) == 0 {
		return head{}, at, err
	}
	var h head
	err = values[0].Damage
	if err == nil {
		err = json.Unmarshal(values[0].Value, &h)
	}
	if err != nil {
		if h, err = l.restoreHead(ctx, at); err != nil {
			return h, at, err
		}
	}
	h.revision = values[0].Revision
	return h, at, nil
}

// restoreHead makes a head from what is there: all it says can be found out.
func (l *Log) restoreHead(ctx context.Context, at int64) (head, error) {
	var h head
	for _, j := range []*journal{l.log, l.inputs} {
		values, _, err := l.options.Store.ReadHistory(ctx, store.HistoryUnder("index/"+j.name+"/"), 0, at)
		if err != nil {
			return h, err
		}
		s := h.of(j)
		for _, v := range values {
			number, err := strconv.ParseInt(path.Base(v.Key), 10, 64)
			if err != nil {
				continue
			}
			i, _ := decodeIndex(v.Value) // zero if it is damaged
			if s.Next == 0 {
				s.First, s.Gone = number, max(i.First-1, 0)
			}
			s.First, s.Next = min(s.First, number), max(s.Next, number+1)
			s.Bytes += i.Bytes
			s.Records += i.Records
		}
	}
	return h, nil
}

// view is a journal at one revision.
type view struct {
	journal *journal
	head    head
	span    span
	chunks  []index
	hot     []value
	at      int64
}

// view reads a journal, except for what is in its chunks, at the present revision.
func (l *Log) view(ctx context.Context, j *journal) (view, error) {
	h, at, err := l.readHead(ctx, 0)
	if err != nil {
		return view{}, err
	}
	v := view{journal: j, head: h, span: *h.of(j), at: at}
	if v.chunks, err = l.indexes(ctx, j, v.span, at); err != nil {
		return v, err
	}
	hot, _, err := l.options.Store.ReadHistory(ctx, store.HistoryUnder(j.hot), 0, at)
	if err != nil {
		return v, err
	}
	v.hot = plain(hot)
	return v, nil
}

// plain are values as they are sealed.
func plain(hot []store.HistoryValue) []value {
	values := make([]value, len(hot))
	for i, h := range hot {
		values[i] = value{h.Revision, h.Value}
	}
	return values
}

// indexes returns the indexes of the chunks of a span, and remembers them.
func (l *Log) indexes(ctx context.Context, j *journal, s span, at int64) ([]index, error) {
	j.mu.Lock()
	known := j.chunks
	j.mu.Unlock()
	from := s.First
	known = slices.Clone(known[firstOf(known, s.First):])
	if n := len(known); n > 0 && known[0].Number == s.First {
		from = known[n-1].Number + 1
	} else {
		known = nil
	}
	if from < s.Next {
		values, _, err := l.options.Store.ReadHistory(ctx, store.HistoryRange{From: j.indexKey(from), To: j.indexKey(s.Next)}, 0, at)
		if err != nil {
			return nil, err
		}
		read := map[string]store.HistoryValue{}
		for _, v := range values {
			read[v.Key] = v
		}
		for number := from; number < s.Next; number++ {
			i, err := decodeIndex(read[j.indexKey(number)].Value)
			if err != nil {
				i, err = l.restoreIndex(ctx, j, number, at)
			}
			if err != nil {
				return nil, err
			}
			known = append(known, i)
		}
		for n := range known {
			bound(known, n)
		}
	}
	j.mu.Lock()
	if n := len(j.chunks); n == 0 || len(known) > 0 && known[len(known)-1].Number >= j.chunks[n-1].Number {
		j.chunks = known
	}
	j.mu.Unlock()
	return known[:firstOf(known, s.Next)], nil
}

// firstOf returns the position of the first chunk with a number or a higher one.
func firstOf(chunks []index, number int64) int {
	n, _ := slices.BinarySearchFunc(chunks, number, func(i index, number int64) int { return int(i.Number - number) })
	return n
}

// restoreIndex makes the index of a chunk again, if its own is damaged or missing. If the chunk is,
// too, it has no revisions: see bound.
func (l *Log) restoreIndex(ctx context.Context, j *journal, number, at int64) (index, error) {
	values, err := l.chunk(ctx, j, number, at)
	switch {
	case isDamage(err):
		return index{Number: number}, nil
	case err != nil:
		return index{}, err
	}
	return j.index(number, values), nil
}

// bound gives a chunk without revisions those between its neighbours.
func bound(chunks []index, n int) {
	if chunks[n].Last != 0 {
		return
	}
	chunks[n].First = 1
	if n > 0 {
		chunks[n].First = chunks[n-1].Last + 1
	}
	chunks[n].Last = chunks[n].First
	if n+1 < len(chunks) && chunks[n+1].First > chunks[n].First {
		chunks[n].Last = chunks[n+1].First - 1
	}
}

// chunk returns the values of a chunk. If the error isDamage, they are lost, and nothing else.
func (l *Log) chunk(ctx context.Context, j *journal, number, at int64) ([]value, error) {
	found, _, err := l.options.Store.ReadHistory(ctx, one(j.chunkKey(number)), 1, at)
	switch {
	case err != nil:
		return nil, err
	case len(found) == 0:
		return nil, fmt.Errorf("%w: chunk %d of the %s of the history is missing", store.ErrDamaged, number, j.name)
	case found[0].Damage != nil:
		return nil, found[0].Damage
	}
	values, err := unpackChunk(found[0].Value)
	if err != nil {
		return nil, fmt.Errorf("chunk %d of the %s of the history: %w", number, j.name, err)
	}
	return values, nil
}
