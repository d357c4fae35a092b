package columns

import (
	"maps"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// ScoreBundle holds the placement scores with one name, of all clusters. Immutable.
type ScoreBundle struct {
	blocks  []*scoreBlock // 64 rows each; nil if none has the score
	rows    *RowSet       // clusters that have it
	Expired *RowSet       // those of rows whose score has expired
	columns map[string]scoreColumn
	next    time.Time // first time after which another score expires; zero = never
}

// scoreBlock holds the objects of 64 rows, so that a new score of one cluster copies a block rather
// than a whole column.
type scoreBlock struct {
	objects [64]*api.PlacementScore
	next    time.Time // earliest valid_until of unexpired scores; zero = none
}

// scoreColumn holds one score by row; 0 if missing or expired.
type scoreColumn struct {
	values []int8
	n      int // clusters whose object lists the score, expired or not
}

// Object returns the placement score of a row, or nil.
func (s *ScoreBundle) Object(row int) *api.PlacementScore {
	if s == nil || row>>6 >= len(s.blocks) || s.blocks[row>>6] == nil {
		return nil
	}
	return s.blocks[row>>6].objects[row&63]
}

// ScoreColumn returns a score of all clusters by row, 0 if missing or expired. It may be shorter
// than Slots, and is nil if no cluster has the score.
func (f *Fleet) ScoreColumn(resource, score string) []int8 {
	if s := f.scores[resource]; s != nil {
		return s.columns[score].values
	}
	return nil
}

// ScoreState returns a cluster's score for explanations: the value as written, whether there is
// one, and whether it has expired and therefore counts as 0.
func (f *Fleet) ScoreState(resource, score string, row int) (value int8, has, expired bool) {
	s := f.scores[resource]
	object := s.Object(row)
	if object == nil {
		return 0, false, false
	}
	v, has := object.Spec.Scores[score]
	return int8(v), has, s.Expired.Has(row)
}

// Expired returns the clusters whose placement score with this name has expired.
func (f *Fleet) Expired(resource string) *RowSet {
	if s := f.scores[resource]; s != nil {
		return s.Expired
	}
	return nil
}

// NextExpiry returns when a placement score next expires.
func (f *Fleet) NextExpiry() time.Time {
	var next time.Time
	for _, s := range f.scores {
		if !s.next.IsZero() && (next.IsZero() || s.next.Before(next)) {
			next = s.next
		}
	}
	if next.IsZero() {
		return next
	}
	return next.Add(1) // valid up to and including
}

// Expiry returns when a score of a row expires. It is zero if it never does, or already has.
func (f *Fleet) Expiry(resource, score string, row int) time.Time {
	s := f.scores[resource]
	object := s.Object(row)
	if object == nil || object.Spec.ValidUntil == nil || s.Expired.Has(row) {
		return time.Time{}
	}
	if _, has := object.Spec.Scores[score]; !has {
		return time.Time{}
	}
	return object.Spec.ValidUntil.Add(1) // valid up to and including
}

// bundleEdit is a ScoreBundle that is being modified.
type bundleEdit struct {
	ScoreBundle
	old     *ScoreBundle
	owned   []bool          // blocks that have been copied
	columns map[string]bool // columns that have been copied
	touched Bitmap          // rows to evaluate again
}

// bundle returns the edit for the placement scores with this name.
func (b *edit) bundle(resource string) *bundleEdit {
	if e, ok := b.bundles[resource]; ok {
		return e
	}
	e := &bundleEdit{columns: map[string]bool{}}
	if e.old = b.scores[resource]; e.old == nil {
		e.old = &ScoreBundle{}
	}
	e.ScoreBundle = *e.old
	slots := b.writer.slots // more clusters may be added
	e.blocks = make([]*scoreBlock, (slots+63)/64)
	copy(e.blocks, e.old.blocks)
	e.owned = make([]bool, len(e.blocks))
	e.ScoreBundle.columns = maps.Clone(e.old.columns)
	if e.ScoreBundle.columns == nil {
		e.ScoreBundle.columns = map[string]scoreColumn{}
	}
	e.touched = NewBitmap(slots)
	if b.bundles == nil {
		b.bundles = map[string]*bundleEdit{}
	}
	b.bundles[resource] = e
	return e
}

// set replaces the object of a row; nil removes it.
func (e *bundleEdit) set(row int, object *api.PlacementScore) {
	at := row >> 6
	if !e.owned[at] {
		e.owned[at] = true
		block := &scoreBlock{}
		if e.blocks[at] != nil {
			*block = *e.blocks[at]
		}
		e.blocks[at] = block
	}
	e.blocks[at].objects[row&63] = object
	e.touched.Set(row)
}

// leaveScores moves the scores of a removed cluster from its row to waiting, in case the cluster
// comes back.
func (b *edit) leaveScores(name string, row int) {
	for resource, s := range b.scores {
		if object := s.Object(row); object != nil {
			b.bundle(resource).set(row, nil)
			b.waitingOf(name)[resource] = object
		}
	}
}

// meetScores assigns the waiting scores of a new cluster to its row.
func (b *edit) meetScores(name string, row int) {
	if len(b.waiting) == 0 || len(b.waiting[name]) == 0 {
		return
	}
	for resource, object := range b.waiting[name] {
		b.bundle(resource).set(row, object)
	}
	b.cloneWaiting()
	delete(b.waiting, name)
}

// waitingOf returns a cluster's waiting scores, for modification.
func (b *edit) waitingOf(cluster string) map[string]*api.PlacementScore {
	b.cloneWaiting()
	own := maps.Clone(b.waiting[cluster])
	if own == nil {
		own = map[string]*api.PlacementScore{}
	}
	b.waiting[cluster] = own
	return own
}

func (b *edit) cloneWaiting() {
	if !b.ownWaiting {
		b.ownWaiting = true
		b.waiting = maps.Clone(b.waiting)
		if b.waiting == nil {
			b.waiting = map[string]map[string]*api.PlacementScore{}
		}
	}
}

// changeScores applies changed placement scores. Clusters must have been changed before.
func (b *edit) changeScores(changes map[api.Key]*api.PlacementScore) {
	for key, object := range changes {
		if row, ok := b.index[key.Namespace]; ok {
			b.bundle(key.Name).set(row, object)
			continue
		}
		if object == nil && b.waiting[key.Namespace][key.Name] == nil {
			continue
		}
		waiting := b.waitingOf(key.Namespace)
		if object != nil {
			waiting[key.Name] = object
			continue
		}
		delete(waiting, key.Name)
		if len(waiting) == 0 {
			delete(b.waiting, key.Namespace)
		}
	}
}

// judgeScores determines which scores are valid at the time of the fleet, for the rows whose object
// changed and those whose expiry has passed.
func (b *edit) judgeScores() {
	back := b.now.Before(b.old.now)
	for resource, s := range b.scores {
		if back || !s.next.IsZero() && s.next.Before(b.now) {
			b.bundle(resource).ageInto(b.now, back)
		}
	}
	if len(b.bundles) == 0 {
		return
	}
	b.scores = maps.Clone(b.scores)
	if b.scores == nil {
		b.scores = map[string]*ScoreBundle{}
	}
	for resource, e := range b.bundles {
		s := e.judge(b.now, &b.writer, b.rated)
		if s.Expired != e.old.Expired {
			b.delta.Fleet |= ScoreValues
		}
		if s.rows.Len() > 0 {
			b.scores[resource] = s
		} else {
			delete(b.scores, resource)
		}
	}
}

// ageInto adds the rows whose score may have expired, or all of them if the time went back.
func (e *bundleEdit) ageInto(now time.Time, back bool) {
	for i, block := range e.blocks {
		if block == nil || !back && (block.next.IsZero() || !block.next.Before(now)) {
			continue
		}
		for j, object := range block.objects {
			if object != nil {
				e.touched.Set(i<<6 + j)
			}
		}
	}
}

// judge returns the bundle with the touched rows updated. Rows whose effective scores changed are
// added to rated.
func (e *bundleEdit) judge(now time.Time, w *writer, rated Bitmap) *ScoreBundle {
	e.touched.Each(func(row int) {
		was, is := e.old.Object(row), e.Object(row)
		wasExpired := e.old.Expired.Has(row)
		isExpired := is != nil && is.Expired(now)
		e.rows = w.assigned(e.rows, row, is != nil)
		e.Expired = w.assigned(e.Expired, row, isExpired)
		if was == is && wasExpired == isExpired {
			return
		}
		if (was == nil) != (is == nil) || wasExpired != isExpired ||
			!isExpired && is != nil && !maps.Equal(was.Spec.Scores, is.Spec.Scores) {
			rated.Set(row)
		}
		e.write(row, was, is, isExpired, w.slots)
	})
	e.expect(now)
	out := e.ScoreBundle
	return &out
}

// write updates the columns of a row.
func (e *bundleEdit) write(row int, was, is *api.PlacementScore, expired bool, slots int) {
	if was != nil {
		for name := range was.Spec.Scores {
			if is == nil {
				e.put(name, row, 0, -1, slots)
			} else if _, ok := is.Spec.Scores[name]; !ok {
				e.put(name, row, 0, -1, slots)
			}
		}
	}
	if is == nil {
		return
	}
	for name, value := range is.Spec.Scores {
		more := 1
		if was != nil {
			if _, ok := was.Spec.Scores[name]; ok {
				more = 0
			}
		}
		if expired {
			value = 0
		}
		e.put(name, row, int8(value), more, slots)
	}
}

// put sets a score in its column. more is the change in the number of clusters that list it.
func (e *bundleEdit) put(name string, row int, value int8, more, slots int) {
	c := e.ScoreBundle.columns[name]
	before := c.n
	c.n += more
	if c.n == 0 {
		delete(e.ScoreBundle.columns, name)
		delete(e.columns, name)
		return
	}
	if row >= len(c.values) || c.values[row] != value {
		if !e.columns[name] {
			e.columns[name] = true
			values := make([]int8, slots)
			copy(values, c.values)
			c.values, before = values, -1
		}
		c.values[row] = value
	}
	if c.n != before {
		e.ScoreBundle.columns[name] = c
	}
}

// expect computes when a score next expires. It only reads blocks that changed or whose time has
// passed.
func (e *bundleEdit) expect(now time.Time) {
	e.next = time.Time{}
	for i, block := range e.blocks {
		if block == nil {
			continue
		}
		if e.owned[i] || e.touched[i] != 0 {
			next := block.expect(now)
			if !next.Equal(block.next) {
				if !e.owned[i] {
					own := *block
					block = &own
					e.owned[i], e.blocks[i] = true, block
				}
				block.next = next
			}
		}
		if next := block.next; !next.IsZero() && (e.next.IsZero() || next.Before(e.next)) {
			e.next = next
		}
	}
}

// expect returns the earliest valid_until of the unexpired scores.
func (s *scoreBlock) expect(now time.Time) time.Time {
	var next time.Time
	for _, object := range s.objects {
		if object == nil || object.Spec.ValidUntil == nil || object.Expired(now) {
			continue
		}
		if until := *object.Spec.ValidUntil; next.IsZero() || until.Before(next) {
			next = until
		}
	}
	return next
}
