package ledger

import (
	"slices"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
)

// Load counts, for every cluster, the decisions that chose it, whatever
// placement they belong to. Like Reservations it is mutable; whoever decides
// owns it and must not share it between goroutines without a lock. What Freeze
// returns may be shared. The nil Load counts nothing.
type Load struct {
	names map[string]int32 // by cluster name; clusters that do not exist, too
	// before is what a thawed one begins with, of those that are not in names.
	before func(cluster string) int32
	counts []int32        // by row
	known  columns.Bitmap // rows that counts and tally take account of
	tally  []int          // number of clusters by count
	// version is another whenever a count is.
	version int
	// frozen is what Freeze last returned, nil once something differs.
	frozen *Load
}

// NewLoad returns a count of nothing.
func NewLoad() *Load { return &Load{names: map[string]int32{}} }

// Freeze returns the counts as they are now. They never change, and cost nothing
// until the first change after it.
func (l *Load) Freeze() *Load {
	if l.frozen == nil {
		l.frozen = &Load{counts: l.counts, known: l.known, tally: l.tally, version: l.version}
	}
	return l.frozen
}

// Thaw returns a count that begins with a frozen one, and goes its own way from
// there. on says how many decisions chose a cluster, as they are counted already.
func (l *Load) Thaw(on func(cluster string) int32) *Load {
	return &Load{names: map[string]int32{}, before: on, counts: l.counts, known: l.known, tally: l.tally, frozen: l}
}

// of is the count of a cluster.
func (l *Load) of(cluster string) int32 {
	if count, counted := l.names[cluster]; counted || l.before == nil {
		return count
	}
	return l.before(cluster)
}

// own makes the counts writable.
func (l *Load) own() {
	if l.frozen == nil {
		return
	}
	l.frozen = nil
	l.counts, l.known, l.tally = slices.Clone(l.counts), slices.Clone(l.known), slices.Clone(l.tally)
}

// Add counts a decision for a cluster; Drop takes it back.
func (l *Load) Add(f *columns.Fleet, cluster string) { l.change(f, cluster, 1) }

// Drop takes back what Add counted.
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
	l.tally[l.counts[row]]--
	l.counts[row] = count
	for int(count) >= len(l.tally) {
		l.tally = append(l.tally, 0)
	}
	l.tally[count]++
	for last := len(l.tally) - 1; last > 0 && l.tally[last] == 0; last-- {
		l.tally = l.tally[:last]
	}
}

// Sync follows a fleet to its next version: a changed row may belong to another
// cluster now.
func (l *Load) Sync(f *columns.Fleet, delta columns.Delta) {
	if slots := f.Slots(); len(l.counts) < slots {
		l.own()
		l.counts = append(l.counts, make([]int32, slots-len(l.counts))...)
		l.known = l.known.Grown(slots)
	}
	if l.tally == nil {
		l.own()
		l.tally = make([]int, 1)
	}
	for _, row := range delta.Rows {
		live := f.Cluster(row) != nil
		if was := l.known.Has(row); was != live {
			l.own()
			l.version++
			if was {
				l.tally[l.counts[row]]--
			} else {
				l.tally[0]++
			}
			l.counts[row] = 0
			l.known.Assign(row, live)
		}
		if live {
			l.put(row, l.of(f.Name(row)))
		}
	}
}

// At is the count of a row.
func (l *Load) at(row int) int32 {
	if l == nil || row >= len(l.counts) {
		return 0
	}
	return l.counts[row]
}

// Bounds are the lowest and the highest count of any cluster.
func (l *Load) bounds() (low, high int32) {
	if l == nil || len(l.tally) == 0 {
		return 0, 0
	}
	for int(low) < len(l.tally)-1 && l.tally[low] == 0 {
		low++
	}
	for i := len(l.tally) - 1; i >= 0; i-- {
		if l.tally[i] > 0 {
			return low, int32(i)
		}
	}
	return 0, 0
}

// LoadSeen is the load as one placement sees it: without its own decision.
type LoadSeen struct {
	load      *Load
	few       []int          // rows of its own decision
	hint      uint64         // has a bit for each of few, by the lowest bits of the row
	many      columns.Bitmap // in their place, where there are many
	Low, High int32
}

// manyRows is the number of rows above which a bitmap tells sooner whether one is
// among them.
const manyRows = 16

// Without returns the load without a decision that chose some rows, which it keeps.
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
	full := 0
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
	if s.High > 0 && full == l.tally[s.High] {
		s.High-- // every cluster with the highest count has the own decision
	}
	return s
}

// Of is the load that is seen, and its version: while both are the same, so is every
// count.
func (s *LoadSeen) Of() (load *Load, version int) {
	if s.load == nil {
		return nil, 0
	}
	return s.load, s.load.version
}

// Whole is the same load with the own decision.
func (s *LoadSeen) Whole() LoadSeen { return s.load.Without(nil, 0) }

// At is the count of a row without the own decision.
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

// Bindings says where workloads run, for those that want to be with others, or
// apart from them.
type Bindings interface {
	// ClustersOf is where a workload runs; nothing where there is none of the key.
	ClustersOf(workload api.Key) []api.WorkloadCluster
}

// Others is what the decisions of other placements amount to.
type Others struct {
	Reserved *Reservations
	Load     *Load
	Bindings Bindings // nil: no workload runs anywhere
}
