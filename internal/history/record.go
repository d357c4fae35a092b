package history

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

const (
	// maxInputsWrite and maxInputsPieces are how many bytes of inputs, and how many pieces, are written in one transaction. A
	// single piece may be larger.
	maxInputsWrite  = 512 << 10
	maxInputsPieces = 100
	// leastDeltas and deltasPerCheckpoint say when a checkpoint is due: when the passes since the
	// last one take this many times what it takes. So checkpoints are a small part of the inputs,
	// and few passes are read to explain a decision.
	leastDeltas         = 4 << 20
	deltasPerCheckpoint = 4
	// checkpointsPerRetention is how many checkpoints are made in the time for which the history is kept, even if few
	// decisions are made: what is kept begins with one, so that much more than that time is kept.
	checkpointsPerRetention = 10
)

// recordedKey is the key of what was recorded last.
const recordedKey = "recorded"

// recorded is what was recorded last.
type recorded struct {
	// Form is the form of the pieces. What has another one is recorded again.
	Form byte `json:"form"`
	// Revision is that of the fleet of the last pass.
	Revision int64 `json:"revision"`
	// Checkpoint is how many bytes the last complete fleet took, before compression, Deltas how
	// many the passes since, together with the records that have what was decided.
	Checkpoint int64 `json:"checkpoint"`
	Deltas     int64 `json:"deltas"`
	// At is the time of the last complete fleet.
	At time.Time `json:"at"`
}

// recorder writes the inputs of passes.
type recorder struct {
	log *Log

	mu    sync.Mutex
	known bool // that last is what the store has
	last  recorded
	// due are the checkpoints to be made, at most one.
	due chan checkpoint
	// wanted asks for a checkpoint with the next pass.
	wanted bool
}

// checkpoint is a checkpoint to be made of a pass.
type checkpoint struct {
	pass Pass
	from int64 // revision of its last piece
}

// Recorded returns the revision of the last recorded pass, 0 if there is none. The leader calls it
// once at the beginning of its term, and again after an error of Record; in between, it is the revision
// of the last Pass.
func (l *Log) Recorded(ctx context.Context) (int64, error) {
	r := l.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	r.known = false
	err := r.read(ctx)
	return r.last.Revision, err
}

// read reads what was recorded last. mu must be held.
func (r *recorder) read(ctx context.Context) error {
	if r.known {
		return nil
	}
	r.last = recorded{}
	values, _, err := r.log.options.Store.ReadHistory(ctx, one(recordedKey), 1, 0)
	if err != nil {
		return err
	}
	if len(values) > 0 && values[0].Damage == nil {
		if err := json.Unmarshal(values[0].Value, &r.last); err != nil || r.last.Form != plainPiece {
			r.last = recorded{} // as if nothing had been recorded: all of it is, again
		}
	}
	r.known = true
	return nil
}

// Record writes the inputs of a pass. It must have returned before decisions of the pass are written, and
// is needed only before passes whose decisions are written with records. It returns
// store.ErrFenced if another server leads. If it fails otherwise, the decisions may be written all the
// same: they are explained by the pass before.
func (l *Log) Record(ctx context.Context, pass Pass) error {
	if !l.Enabled() {
		return nil
	}
	r := l.recorder
	r.mu.Lock()
	defer r.mu.Unlock()
	if err := r.read(ctx); err != nil {
		return err
	}
	w := r.writer(piece{id: rand.Uint64N(1 << 48), isPass: true, whole: r.last.Revision == 0, hasKeys: pass.Keys != nil, revision: pass.Revision, time: pass.Time})
	next := r.last
	next.Form, next.Revision, next.Deltas = plainPiece, pass.Revision, next.Deltas+pass.Recorded
	from, err := w.write(ctx, pass.Changed, pass.Keys, func() recorded {
		if w.head.whole {
			next.Checkpoint, next.Deltas, next.At = w.written, 0, pass.Time
		} else {
			next.Deltas += w.written
		}
		return next
	})
	if err != nil {
		r.known = false
		l.metrics.failed("record")
		return fmt.Errorf("record what a pass decides on: %w", err)
	}
	r.last = next
	if pass.All != nil && (r.wanted || next.Deltas > max(leastDeltas, deltasPerCheckpoint*next.Checkpoint) ||
		pass.Time.Sub(next.At) > l.options.Retention/checkpointsPerRetention) {
		select {
		case r.due <- checkpoint{pass, from}:
			r.wanted = false
		default: // one is being made
		}
	}
	return nil
}

// want asks for a checkpoint with the next pass.
func (r *recorder) want() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.wanted = true
}

// make writes a checkpoint. Passes go on meanwhile.
func (r *recorder) make(ctx context.Context, c checkpoint) error {
	r.mu.Lock()
	before := r.last.Deltas
	r.mu.Unlock()
	w := r.writer(piece{id: rand.Uint64N(1 << 48), whole: true, revision: c.pass.Revision, time: c.pass.Time, from: c.from})
	w.locked = &r.mu
	_, err := w.write(ctx, c.pass.All, nil, func() recorded {
		next := r.last
		next.Checkpoint, next.Deltas, next.At = w.written, max(next.Deltas-before, 0), c.pass.Time
		r.last = next // if the write fails, the next pass says so as well: a checkpoint is then made later
		return next
	})
	if err != nil {
		return fmt.Errorf("write a checkpoint of the history: %w", err)
	}
	return nil
}

// piecewise writes the pieces of a pass or checkpoint.
type piecewise struct {
	recorder *recorder
	head     piece
	locked   sync.Locker // held for the last transaction; nil = it is already
	written  int64       // bytes, before compression
	put      map[string][]byte
	size     int
	current  []byte // entries of the current piece
	revision int64
}

func (r *recorder) writer(head piece) *piecewise {
	return &piecewise{recorder: r, head: head, put: map[string][]byte{}}
}

// write writes all pieces, the last one with what last returns, and returns the revision of the last one.
func (w *piecewise) write(ctx context.Context, records iter.Seq[store.Record], keys iter.Seq[api.Key], last func() recorded) (int64, error) {
	for record := range records {
		if err := w.add(ctx, func(b []byte) []byte { return appendRecord(b, record) }); err != nil {
			return 0, err
		}
	}
	if keys != nil {
		for key := range keys {
			if err := w.add(ctx, func(b []byte) []byte { return appendKey(b, entryKey, key) }); err != nil {
				return 0, err
			}
		}
	}
	if w.locked != nil {
		w.locked.Lock()
		defer w.locked.Unlock()
	}
	w.head.last = true
	if err := w.close(ctx); err != nil {
		return 0, err
	}
	note, err := json.Marshal(last())
	if err != nil {
		return 0, err
	}
	w.put[recordedKey] = note
	err = w.flush(ctx)
	return w.revision, err
}

// add appends an entry to the current piece, after writing what is full.
func (w *piecewise) add(ctx context.Context, appendTo func([]byte) []byte) error {
	before := len(w.current)
	w.current = appendTo(w.current)
	if before == 0 || len(w.current) <= maxPiece {
		return nil
	}
	// The entry begins the next piece, so that none is larger than its only entry.
	entry := w.current[before:]
	w.current = w.current[:before]
	if err := w.close(ctx); err != nil {
		return err
	}
	w.current = append(w.current, entry...)
	return nil
}

// close ends the current piece, after writing those before it if they would be too many together.
func (w *piecewise) close(ctx context.Context) error {
	value := w.head.encode(w.current)
	if len(w.put) > 0 && (w.size+len(value) > maxInputsWrite || len(w.put) == maxInputsPieces) {
		if err := w.flush(ctx); err != nil {
			return err
		}
	}
	w.put[w.recorder.log.options.Store.HistoryKey(inputsPrefix)] = value
	w.size += len(value)
	w.written += int64(len(w.current))
	w.head.number++
	w.current = w.current[:0]
	return nil
}

// flush writes the pieces that are closed.
func (w *piecewise) flush(ctx context.Context) (err error) {
	w.revision, err = w.recorder.log.options.Store.ChangeHistory(ctx, store.HistoryChange{Put: w.put})
	w.put, w.size = map[string][]byte{}, 0
	return err
}

// run makes the checkpoints that are due until ctx is done.
func (r *recorder) run(ctx context.Context) {
	for {
		select {
		case <-ctx.Done():
			return
		case c := <-r.due:
			if err := r.make(ctx, c); err != nil && ctx.Err() == nil {
				r.log.metrics.failed("checkpoint")
				r.log.options.Logger.Warn("a checkpoint of the history could not be written; the next one is tried later", "error", err)
				r.want()
			}
		}
	}
}
