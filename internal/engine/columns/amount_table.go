package columns

import (
	"maps"
	"sync/atomic"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// amountTable holds the amounts of resources by row. It is built from the rows on first use, which
// never comes in many fleets; later versions of the fleet apply the changes. Versions whose rows
// have the same amounts share a table.
type amountTable struct{ made atomic.Pointer[amountColumns] }

// amountColumns holds the amounts by resource and row, in thousandths. Immutable.
type amountColumns struct {
	uncommitted map[string]*amount.Column // see uncommittedOf
	usable      map[string]*amount.Column // allocatable cpu and memory (see allocatableOf)
}

// noColumns are the columns of an empty fleet.
var noColumns amountColumns

func (f *Fleet) amountColumns() *amountColumns {
	if f.amounts == nil {
		return &noColumns
	}
	made := f.amounts.made.Load()
	if made == nil {
		// Concurrent callers may both build the columns; the results are equal.
		made = readAmounts(f.rows)
		f.amounts.made.Store(made)
	}
	return made
}

func readAmounts(rows []*Row) *amountColumns {
	w, edit := writer{slots: len(rows)}, amountEdit{follows: true}
	for at, r := range rows {
		if r != nil {
			edit.replace(&w, at, &noCluster, r.cluster)
		}
	}
	return edit.columns()
}

// amountEdit is an amountTable that is being modified.
type amountEdit struct {
	table       *amountTable
	begun       bool // the table differs from that of the previous version
	follows     bool // the columns of the previous version were built
	uncommitted columnTable
	usable      columnTable
}

func editAmounts(t *amountTable) amountEdit {
	e := amountEdit{table: t}
	if t == nil {
		e.begun = true
	} else if made := t.made.Load(); made != nil {
		e.follows = true
		e.uncommitted.columns, e.usable.columns = made.uncommitted, made.usable
	}
	return e
}

// replace sets the amounts of a row to those of another cluster, and reports whether they changed.
func (e *amountEdit) replace(w *writer, at int, old, c *api.Cluster) (changed bool) {
	if noAmounts(old) && noAmounts(c) || sameAmounts(old, c) {
		return false
	}
	resized := !sameSize(old, c)
	if e.follows {
		changed = e.put(w, at, old, c, resized)
	} else {
		changed = resized || !sameUncommitted(old, c)
	}
	e.begun = e.begun || changed
	return changed
}

// put is replace for tables whose columns are built. resized says that the clusters differ in what
// they have, regardless of use.
func (e *amountEdit) put(w *writer, at int, old, c *api.Cluster, resized bool) (changed bool) {
	ResourcesOf(old, func(name string) {
		if uncommittedOf(c, name) == amount.Unreported && e.uncommitted.put(w, name, at, amount.Unreported) {
			changed = true
		}
	})
	ResourcesOf(c, func(name string) {
		if e.uncommitted.put(w, name, at, uncommittedOf(c, name)) {
			changed = true
		}
	})
	if !resized {
		return changed
	}
	for _, name := range ratedResources {
		e.usable.put(w, name, at, allocatableOf(c, name))
	}
	return true
}

func (e *amountEdit) columns() *amountColumns {
	return &amountColumns{e.uncommitted.columns, e.usable.columns}
}

// done returns the finished table.
func (e *amountEdit) done() *amountTable {
	if !e.begun {
		return e.table
	}
	t := &amountTable{}
	if e.follows {
		t.made.Store(e.columns())
	}
	return t
}

// ratedResources are the resources whose allocatable amounts prioritizers compare.
var ratedResources = [...]string{"cpu", "memory"}

func noAmounts(c *api.Cluster) bool {
	return len(c.Spec.Capacity) == 0 && len(c.Spec.Allocatable) == 0 && len(c.Spec.Allocated) == 0 &&
		len(c.Status.Capacity) == 0 && len(c.Status.Allocatable) == 0 && len(c.Status.Allocated) == 0
}

func sameAmounts(a, b *api.Cluster) bool {
	return sameSize(a, b) &&
		maps.Equal(a.Spec.Allocated, b.Spec.Allocated) && maps.Equal(a.Status.Allocated, b.Status.Allocated)
}

// sameSize compares what clusters have, regardless of use.
func sameSize(a, b *api.Cluster) bool {
	return maps.Equal(a.Spec.Allocatable, b.Spec.Allocatable) && maps.Equal(a.Status.Allocatable, b.Status.Allocatable) &&
		maps.Equal(a.Spec.Capacity, b.Spec.Capacity) && maps.Equal(a.Status.Capacity, b.Status.Capacity)
}

// sameUncommitted compares what is available in clusters of the same size.
func sameUncommitted(a, b *api.Cluster) bool {
	same := true
	ResourcesOf(b, func(name string) { same = same && uncommittedOf(a, name) == uncommittedOf(b, name) })
	return same
}

// columnTable is a table of amounts by row that is being modified.
type columnTable struct {
	columns map[string]*amount.Column
	own     map[string]bool // columns that have been copied
}

// put sets the amount of a row, and reports whether it changed. Rows beyond the end of a column are
// Unreported.
func (t *columnTable) put(w *writer, name string, row int, milli amount.Milli) (changed bool) {
	column := t.columns[name]
	if row < column.Len() && column.At(row) == milli || row >= column.Len() && milli == amount.Unreported {
		return false
	}
	if !t.own[name] {
		column = t.copied(w, name)
	}
	column.Set(row, milli)
	return true
}

// copied returns a column that this version may modify, copying it if necessary.
func (t *columnTable) copied(w *writer, name string) *amount.Column {
	if t.own == nil {
		t.own = map[string]bool{}
		if t.columns = maps.Clone(t.columns); t.columns == nil {
			t.columns = map[string]*amount.Column{}
		}
	}
	t.own[name] = true
	column := t.columns[name].Copy(w.slots, amount.Unreported)
	t.columns[name] = column
	return column
}
