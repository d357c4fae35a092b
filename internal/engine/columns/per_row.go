package columns

import "maps"

// columnTable is a table of amounts by row that is being written.
type columnTable struct {
	columns map[string][]int64
	own     map[string]bool // columns that have been copied already
}

// put writes the amount of a row, and reports whether it is another. Rows that a column
// does not have are unreported.
func (t *columnTable) put(w *writer, name string, row int, amount int64) (changed bool) {
	column := t.columns[name]
	if row < len(column) && column[row] == amount || row >= len(column) && amount == Unreported {
		return false
	}
	if !t.own[name] {
		column = t.copied(w, name)
	}
	column[row] = amount
	return true
}

// copied makes a column the version's own.
func (t *columnTable) copied(w *writer, name string) []int64 {
	if t.own == nil {
		t.own = map[string]bool{}
		if t.columns = maps.Clone(t.columns); t.columns == nil {
			t.columns = map[string][]int64{}
		}
	}
	t.own[name] = true
	column := make([]int64, w.slots)
	for i := copy(column, t.columns[name]); i < w.slots; i++ {
		column[i] = Unreported
	}
	t.columns[name] = column
	return column
}
