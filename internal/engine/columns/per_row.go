package columns

import "maps"

// columnEdit says which columns of a table have been copied already.
type columnEdit map[string]bool

// uncommittedColumn is the edit's own copy of a resource's column.
func (b *edit) uncommittedColumn(resource string) []int64 {
	return b.ownUncommitted.column(&b.uncommitted, resource, b.writer.slots)
}

// usableColumn is the edit's own copy of a resource's allocatable amounts.
func (b *edit) usableColumn(resource string) []int64 {
	return b.ownUsable.column(&b.usable, resource, b.writer.slots)
}

// column is a column of a table that may be written; rows it did not have are
// unreported.
func (e *columnEdit) column(table *map[string][]int64, name string, slots int) []int64 {
	if (*e)[name] {
		return (*table)[name]
	}
	if *e == nil {
		*e = columnEdit{}
		*table = maps.Clone(*table)
		if *table == nil {
			*table = map[string][]int64{}
		}
	}
	(*e)[name] = true
	column := make([]int64, slots)
	for i := copy(column, (*table)[name]); i < slots; i++ {
		column[i] = Unreported
	}
	(*table)[name] = column
	return column
}
