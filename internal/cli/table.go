package cli

import (
	"fmt"
	"io"
	"strings"
	"unicode/utf8"

	"github.com/scheduler/terraform-provider-scheduler/internal/printable"
)

// table is text in columns. An empty cell is shown as "-", so that scripts can count columns.
type table struct {
	header []string
	rows   [][]string
}

func (t *table) add(cells ...string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		if shown[i] = printable.Text(cell); cell == "" {
			shown[i] = "-"
		}
	}
	t.rows = append(t.rows, shown)
}

// print writes the table with its header.
func (t *table) print(w io.Writer) error { return t.printWidths(w, t.widths(nil)) }

// widths returns the widths of the columns, which are at least those given.
func (t *table) widths(atLeast []int) []int {
	widths := append([]int(nil), atLeast...)
	for _, cells := range append([][]string{t.header}, t.rows...) {
		for i, cell := range cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	return widths
}

// printWidths is print with given widths. It is not text/tabwriter because tables of a watch
// continue with the same widths.
func (t *table) printWidths(w io.Writer, widths []int) error {
	var b strings.Builder
	lines := t.rows
	if len(t.header) > 0 {
		lines = append([][]string{t.header}, lines...)
	}
	for _, cells := range lines {
		var line strings.Builder
		for i, cell := range cells {
			fmt.Fprintf(&line, "%-*s  ", widths[i], cell)
		}
		b.WriteString(strings.TrimRight(line.String(), " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}
