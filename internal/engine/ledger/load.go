package ledger

import (
	"cmp"
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Load counts the decisions that chose each cluster, for all placements. Like Reservations, it is
// mutable: it belongs to the goroutine that decides and must not be shared without a lock. The
// result of Freeze may be shared. The nil Load counts nothing.
type Load struct {
	names map[string]int32 // by cluster name, including clusters that do not exist
	// before returns the initial count of a thawed Load, for clusters that are not in names.
	before func(cluster string) int32
	counts []int32        // by row
	known  columns.Bitmap // rows that counts and tally include
	tally  tally          // of the known rows
	// version changes whenever a count does.
	version int
	// frozen is the last result of Freeze, or nil if something has changed since.
	frozen *Load
	// was are the previous counts of the changes since the last Shift, in order, and top is the highest
	// count then.
	was []counted
	top tallied
}

// NewLoad returns an empty Load.
func NewLoad() *Load { return &Load{names: map[string]int32{}} }

// Freeze returns an immutable snapshot of the counts. The copy is made only at the first change
// after it.
func (l *Load) Freeze() *Load {
	if l.frozen == nil {
		l.frozen = &Load{counts: l.counts, known: l.known, tally: l.tally, version: l.version}
	}
	return l.frozen
}

// Thaw returns an independent Load that starts from a frozen one. on returns how many of the
// counted decisions chose a cluster.
func (l *Load) Thaw(on func(cluster string) int32) *Load {
	return &Load{names: map[string]int32{}, before: on, counts: l.counts, known: l.known, tally: l.tally, frozen: l, top: l.tally.top()}
}

// of returns the count of a cluster.
func (l *Load) of(cluster string) int32 {
	if count, counted := l.names[cluster]; counted || l.before == nil {
		return count
	}
	return l.before(cluster)
}

// own makes the counts modifiable.
func (l *Load) own() {
	if l.frozen == nil {
		return
	}
	l.frozen = nil
	l.counts, l.known, l.tally = slices.Clone(l.counts), slices.Clone(l.known), slices.Clone(l.tally)
}

// Add counts a decision for a cluster; Drop undoes it.
func (l *Load) Add(f *columns.Fleet, cluster string) { l.change(f, cluster, 1) }

// Drop undoes Add.
func (l *Load) Drop(f *columns.Fleet, cluster string) { l.change(f, cluster, -1) }

func (l *Load) change(f *columns.Fleet, cluster string, by int32) {
	count := l.of(cluster) + by
	if count > 0 || l.before != nil {
		l.names[cluster] = count
	} else {
		delete(l.names, cluster)
	}
	if row, ok := f.Row(cluster); ok && row < len(l.counts) && l.known.Has(row) {
		l.put(row, count)
	}
}

// put sets the count of a known row.
func (l *Load) put(row int, count int32) {
	if l.counts[row] == count {
		return
	}
	l.own()
	l.version++
	l.remember(row)
	l.tally = l.tally.with(l.counts[row], -1)
	l.counts[row] = count
	l.tally = l.tally.with(count, 1)
}

// Sync applies a new version of the fleet: a changed row may belong to another cluster.
func (l *Load) Sync(f *columns.Fleet, delta columns.Delta) {
	if slots := f.Slots(); len(l.counts) < slots {
		l.own()
		l.counts = append(l.counts, make([]int32, slots-len(l.counts))...)
		l.known = l.known.Grown(slots)
	}
	for _, row := range delta.Rows {
		live := f.Cluster(row) != nil
		if was := l.known.Has(row); was != live {
			l.own()
			l.version++
			l.remember(row)
			if was {
				l.tally = l.tally.with(l.counts[row], -1)
			} else {
				l.tally = l.tally.with(0, 1)
			}
			l.counts[row] = 0
			l.known.Assign(row, live)
		}
		if live {
			l.put(row, l.of(f.Name(row)))
		}
	}
}

// counted is the count of a row.
type counted struct {
	row   int
	count int32
}

// remember keeps the count of a row for the next Shift.
func (l *Load) remember(row int) { l.was = append(l.was, counted{row, l.counts[row]}) }

// Shift is how the counts have changed.
type Shift struct {
	// More are the rows that more decisions chose than before, and Fewer those that fewer did.
	More, Fewer []int

	was, is tallied // the highest count
	top     bool    // other rows have it
}

// Empty reports whether no count has changed.
func (s *Shift) Empty() bool { return len(s.More) == 0 && len(s.Fewer) == 0 && s.was == s.is }

// Rescales reports whether the highest count may be another one for any placement, which does not
// count its own decision.
func (s *Shift) Rescales() bool { return s.was.count != s.is.count || s.top }

// RescalesFor is Rescales for a placement that chose n clusters.
func (s *Shift) RescalesFor(n int) bool {
	return s.was.count != s.is.count || s.top && n >= int(min(s.was.clusters, s.is.clusters))
}

// Shift returns how the counts have changed since the last call.
func (l *Load) Shift() Shift {
	s := Shift{was: l.top, is: l.tally.top()}
	slices.SortStableFunc(l.was, func(a, b counted) int { return cmp.Compare(a.row, b.row) })
	for i, was := range l.was {
		if i > 0 && l.was[i-1].row == was.row {
			continue // a later change
		}
		is := l.at(was.row)
		s.top = s.top || was.count == s.was.count || is == s.is.count
		switch {
		case is > was.count:
			s.More = append(s.More, was.row)
		case is < was.count:
			s.Fewer = append(s.Fewer, was.row)
		}
	}
	l.Forget()
	return s
}

// Forget makes the next Shift start from the present counts.
func (l *Load) Forget() { l.was, l.top = l.was[:0], l.tally.top() }

// At returns the count of a row.
func (l *Load) at(row int) int32 {
	if l == nil || row >= len(l.counts) {
		return 0
	}
	return l.counts[row]
}

// bounds returns the lowest and the highest count of any cluster.
func (l *Load) bounds() (low, high int32) {
	if l == nil || len(l.tally) == 0 {
		return 0, 0
	}
	return l.tally[0].count, l.tally.top().count
}

// tally is how many clusters have each count, for the counts that occur, the lowest first. It is
// as long as counts differ, however many decisions are counted.
type tally []tallied

type tallied struct{ count, clusters int32 }

func (t tally) find(count int32) (at int, found bool) {
	return slices.BinarySearchFunc(t, count, func(e tallied, count int32) int { return cmp.Compare(e.count, count) })
}

// of returns how many clusters have a count.
func (t tally) of(count int32) int32 {
	if at, found := t.find(count); found {
		return t[at].clusters
	}
	return 0
}

// top returns the highest count.
func (t tally) top() tallied {
	if len(t) == 0 {
		return tallied{}
	}
	return t[len(t)-1]
}

// with returns the tally after some more, or fewer, clusters have a count. It changes the
// receiver.
func (t tally) with(count, by int32) tally {
	at, found := t.find(count)
	if !found {
		t = slices.Insert(t, at, tallied{count: count})
	}
	if t[at].clusters += by; t[at].clusters == 0 {
		t = slices.Delete(t, at, at+1)
	}
	return t
}

// LoadSeen is the load from the point of view of one placement: without its own decision.
type LoadSeen struct {
	load      *Load
	few       []int          // rows of its own decision
	hint      uint64         // Bloom filter of few: a bit for the lowest bits of each row
	many      columns.Bitmap // replaces few if there are many rows
	Low, High int32
}

// manyRows is the number of rows above which a bitmap is faster to search.
const manyRows = 16

// Without returns the load without a decision that chose the given rows. It keeps the slice.
func (l *Load) Without(rows []int, slots int) LoadSeen {
	s := LoadSeen{load: l}
	s.Low, s.High = l.bounds()
	if l == nil || len(rows) == 0 {
		return s
	}
	if len(rows) > manyRows {
		s.many = columns.NewBitmap(slots)
	} else {
		s.few = rows
		for _, row := range rows {
			s.hint |= 1 << (row & 63)
		}
	}
	full := int32(0)
	for i, row := range rows {
		if l.at(row) == 0 || s.many == nil && slices.Contains(rows[:i], row) || s.many != nil && s.many.Has(row) {
			continue
		}
		if s.many != nil {
			s.many.Set(row)
		}
		if l.at(row) == s.High {
			full++
		}
		s.Low = min(s.Low, l.at(row)-1)
	}
	if s.High > 0 && full == l.tally.of(s.High) {
		s.High-- // every cluster with the highest count is in the own decision
	}
	return s
}

// Of returns the underlying load and its version. As long as both are the same, so are all counts.
func (s *LoadSeen) Of() (load *Load, version int) {
	if s.load == nil {
		return nil, 0
	}
	return s.load, s.load.version
}

// Whole returns the load including the own decision.
func (s *LoadSeen) Whole() LoadSeen { return s.load.Without(nil, 0) }

// At returns the count of a row without the own decision.
func (s *LoadSeen) At(row int) int32 {
	n := s.load.at(row)
	if n > 0 && s.isOwn(row) {
		n--
	}
	return n
}

func (s *LoadSeen) isOwn(row int) bool {
	if s.many != nil {
		return s.many.Has(row)
	}
	return s.hint>>(row&63)&1 != 0 && slices.Contains(s.few, row)
}

// Bindings returns where workloads run, for workloads with affinity or anti-affinity to others.
type Bindings interface {
	// ClustersOf returns the clusters of a workload, or none if it does not exist.
	ClustersOf(workload api.Key) []api.WorkloadCluster
}

// Others is the combined effect of the decisions of other placements.
type Others struct {
	Reserved *Reservations
	Load     *Load
	Bindings Bindings // nil: no workload runs anywhere
}
