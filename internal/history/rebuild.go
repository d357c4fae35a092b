package history

import (
	"cmp"
	"context"
	"errors"
	"iter"
	"math"
	"slices"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// rebuilt is the fleet as a pass saw it.
type rebuilt struct {
	// revision is that of the fleet, and time for which the pass decided.
	revision int64
	time     time.Time
	// objects are both parts of all objects, specs first, as store.Load yields them. Secrets are null.
	objects []store.Record
	// before are the records that the pass wrote before the revision asked for.
	before []Item
}

// rebuild returns the inputs of the pass that made a decision with this revision: of the last pass that was
// recorded before it. A *GoneError says that they are no longer kept.
func (l *Log) rebuild(ctx context.Context, revision int64) (rebuilt, error) {
	for tries := 0; ; tries++ {
		state, err := l.rebuildAt(ctx, revision)
		if !errors.Is(err, store.ErrCompacted) || tries == 3 {
			return state, err
		}
	}
}

func (l *Log) rebuildAt(ctx context.Context, revision int64) (rebuilt, error) {
	v, err := l.view(ctx, l.inputs)
	if err != nil {
		return rebuilt{}, err
	}
	bases := v.bases()
	n := len(bases) - 1
	for n >= 0 && bases[n].Ended >= revision {
		n--
	}
	if n < 0 {
		return rebuilt{}, v.explained(bases)
	}
	later := v.explained(bases[n+1:])
	r := rebuilding{base: bases[n], before: revision, parts: map[uint64][]piece{}, parted: map[partKey]store.Record{}}
	for _, i := range v.chunks {
		if i.Last <= r.base.From || i.First >= revision {
			continue
		}
		values, err := l.chunk(ctx, l.inputs, i.Number, v.at)
		switch {
		case isDamage(err):
			return rebuilt{}, later
		case err != nil:
			return rebuilt{}, err
		}
		r.read(values)
	}
	r.read(v.hot)
	if r.form != nil {
		return rebuilt{}, r.form
	}
	if len(r.whole) == 0 {
		return rebuilt{}, later
	}
	for item, err := range l.between(ctx, r.base.Revision, revision) {
		switch {
		case errors.As(err, new(*GoneError)):
			return rebuilt{}, later
		case err != nil:
			return rebuilt{}, err
		case item.Gap != nil && item.Gap.damaged:
			return rebuilt{}, later
		case item.Gap == nil:
			r.decided = append(r.decided, item)
		}
	}
	return r.state()
}

// bases returns the complete bases of a journal of inputs after which all records are kept.
func (v *view) bases() []base {
	hot := index{Number: v.span.Next, First: math.MaxInt64, Last: math.MaxInt64}
	for n, value := range v.hot {
		if n == 0 {
			hot.First = value.revision
		}
		if p, _, _, err := decodeHeader(value.data); err == nil {
			hot.Bases = addBase(hot.Bases, p, value.revision)
		}
	}
	return slices.DeleteFunc(completeBases(append(slices.Clone(v.chunks), hot)), func(b base) bool { return b.Revision < max(v.head.Log.Gone, 1) })
}

// explained is the error that says from where on decisions can be explained.
func (v *view) explained(bases []base) *GoneError {
	if len(bases) == 0 {
		return &GoneError{}
	}
	e := &GoneError{Kept: Cursor{bases[0].Ended, math.MaxInt32}, Time: timeOf(v.chunks, bases[0].Ended)}
	for _, value := range v.hot {
		if p, _, _, err := decodeHeader(value.data); err == nil && value.revision == bases[0].Ended {
			e.Time = p.time
		}
	}
	return e
}

// between yields the items of the log after one revision and before another one.
func (l *Log) between(ctx context.Context, after, before int64) iter.Seq2[Item, error] {
	return func(yield func(Item, error) bool) {
		v, err := l.view(ctx, l.log)
		switch {
		case err != nil:
			yield(Item{}, err)
			return
		case after < v.span.Gone:
			yield(Item{}, v.gone())
			return
		}
		for _, i := range v.chunks {
			if i.Last <= after || i.First >= before {
				continue
			}
			values, err := l.chunk(ctx, l.log, i.Number, v.at)
			switch {
			case isDamage(err):
				if !yield(damagedChunk(&i), nil) {
					return
				}
			case err != nil:
				yield(Item{}, err)
				return
			}
			if !yieldBetween(values, after, before, yield) {
				return
			}
		}
		yieldBetween(v.hot, after, before, yield)
	}
}

func yieldBetween(values []value, after, before int64, yield func(Item, error) bool) bool {
	for _, v := range values {
		if v.revision <= after || v.revision >= before {
			continue
		}
		for _, item := range itemsOf(v) {
			if !yield(item, nil) {
				return false
			}
		}
	}
	return true
}

// partKey is one part of an object.
type partKey struct {
	key  api.Key
	part store.Part
}

// rebuilding puts together the fleet of a pass.
type rebuilding struct {
	base   base
	before int64

	parts  map[uint64][]piece // by ID, until the last one is there
	whole  []piece            // of the base
	passes []pass             // after it
	form   error              // that of a piece is unknown
	parted map[partKey]store.Record
	ended  int64 // revision of the last piece of the pass
	// decided are the records after the base, of which those that passes have seen are applied as they see them.
	decided []Item
}

// pass is a complete pass.
type pass struct {
	pieces []piece
	ended  int64
}

// read takes values in the order of their revisions.
func (r *rebuilding) read(values []value) {
	for _, v := range values {
		if v.revision <= r.base.From || v.revision >= r.before {
			continue
		}
		p, err := decodePiece(v.data)
		if errors.Is(err, ErrForm) {
			r.form = err
		}
		if err != nil {
			continue // the pass that it belongs to is incomplete
		}
		if p.whole && !p.isPass && p.id != r.base.ID {
			continue
		}
		pieces := append(r.parts[p.id], p)
		r.parts[p.id] = pieces
		if !complete(pieces) {
			continue
		}
		delete(r.parts, p.id)
		switch {
		case p.id == r.base.ID:
			r.whole = pieces
			if p.isPass {
				r.ended = v.revision
			} else {
				r.ended = p.from
			}
		case p.isPass:
			r.passes = append(r.passes, pass{pieces, v.revision})
		}
	}
}

// complete reports whether all pieces are there, and sorts them.
func complete(pieces []piece) bool {
	slices.SortFunc(pieces, func(a, b piece) int { return cmp.Compare(a.number, b.number) })
	last := pieces[len(pieces)-1]
	return last.last && last.number == len(pieces)-1
}

// state returns the fleet of the last pass.
func (r *rebuilding) state() (rebuilt, error) {
	r.apply(r.whole)
	state := rebuilt{revision: r.whole[0].revision, time: r.whole[0].time}
	for _, p := range r.passes {
		if p.ended <= r.ended || p.pieces[0].revision < state.revision {
			continue // it is part of the base
		}
		state.revision, state.time, r.ended = p.pieces[0].revision, p.pieces[0].time, p.ended
		if err := r.see(state.revision); err != nil {
			return rebuilt{}, err
		}
		if p.pieces[0].whole {
			clear(r.parted)
		}
		r.apply(p.pieces)
	}
	for _, item := range r.decided {
		if tags, err := decodeTags(item.Record); err != nil || tags.NoticesOnly {
			continue // it is not of a decision
		}
		if item.Cursor.Revision > r.ended {
			state.before = append(state.before, item)
		}
	}
	state.objects = make([]store.Record, 0, len(r.parted))
	for _, record := range r.parted {
		state.objects = append(state.objects, record)
	}
	slices.SortFunc(state.objects, func(a, b store.Record) int {
		return cmp.Or(cmp.Compare(a.Part, b.Part), a.Key.Compare(b.Key))
	})
	return state, nil
}

// see applies the statuses in the records up to a revision. Passes leave them out.
func (r *rebuilding) see(revision int64) error {
	n := 0
	for ; n < len(r.decided) && r.decided[n].Cursor.Revision <= revision; n++ {
		key, status, err := decodeStatus(r.decided[n])
		if err != nil {
			return err
		}
		if status != nil {
			own := partKey{key, store.Status}
			r.parted[own] = store.Record{Key: key, Part: store.Status, Value: status, ModRevision: r.decided[n].Cursor.Revision}
		}
	}
	r.decided = r.decided[n:]
	return nil
}

// apply applies the pieces of a pass or of the base.
func (r *rebuilding) apply(pieces []piece) {
	kept := map[api.Key]bool{}
	// Specs first: what is created again begins without a status.
	for _, part := range []store.Part{store.Spec, store.Status} {
		for _, p := range pieces {
			r.put(p.records, part)
		}
	}
	for _, p := range pieces {
		for _, key := range p.keys {
			kept[key] = true
		}
	}
	if !pieces[0].hasKeys {
		return
	}
	for part := range r.parted {
		if !kept[part.key] {
			delete(r.parted, part)
		}
	}
}

// put applies the records of one part.
func (r *rebuilding) put(records []store.Record, part store.Part) {
	for _, record := range records {
		if record.Part != part {
			continue
		}
		own, status := partKey{record.Key, part}, partKey{record.Key, store.Status}
		switch old, there := r.parted[own]; {
		case record.Value == nil:
			delete(r.parted, partKey{record.Key, store.Spec})
			delete(r.parted, status)
			continue
		case len(record.Value) == 0:
			delete(r.parted, own)
			continue
		case part == store.Spec && there && old.CreateRevision != record.CreateRevision:
			delete(r.parted, status)
		}
		r.parted[own] = record
	}
}
