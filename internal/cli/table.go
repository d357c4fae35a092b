package cli

import (
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// table is text in columns. An empty cell is shown as "-", so that scripts can count columns.
type table struct {
	header []string
	rows   [][]string
	// continues says that the header is already shown.
	continues bool
}

func (t *table) add(cells ...string) {
	shown := make([]string, len(cells))
	for i, cell := range cells {
		if shown[i] = termtext.Text(cell); cell == "" {
			shown[i] = "-"
		}
	}
	t.rows = append(t.rows, shown)
}

// print writes the table with its header.
func (t *table) print(env Environment, w io.Writer) error {
	return t.printWidths(env, w, t.widths(nil))
}

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

// columnGap is between two columns.
const columnGap = "  "

// narrowest is how narrow fit makes a column. It leaves room for a header and a beginning.
const narrowest = 12

// named are the headers of columns that identify a row: they are never cut.
var named = []string{"NAME", "NAMESPACE", "CLUSTER", "OBJECT"}

// fit narrows the widest columns until the table has a width. Columns that identify a row stay, so the
// table may remain wider.
func fit(header []string, widths []int, width int) []int {
	widths = slices.Clone(widths)
	total := func() int {
		sum := (len(widths) - 1) * len(columnGap)
		for _, w := range widths {
			sum += w
		}
		return sum
	}
	for over := total() - width; over > 0; over = total() - width {
		widest := -1
		for i, w := range widths {
			if w > narrowest && !slices.Contains(named, header[i]) && (widest < 0 || w >= widths[widest]) {
				widest = i
			}
		}
		if widest < 0 {
			break
		}
		widths[widest]--
	}
	return widths
}

// cut shortens a text that is too wide.
func cut(text string, width int) string {
	if letters := []rune(text); len(letters) > width {
		return string(letters[:width-1]) + "…"
	}
	return text
}

// printWidths is print with given widths. It is not text/tabwriter because tables of a watch continue with the same widths.
func (t *table) printWidths(env Environment, w io.Writer, widths []int) error {
	if env.Terminal.width > 0 {
		widths = fit(t.header, widths, env.Terminal.width)
	}
	var b strings.Builder
	lines := t.rows
	if !t.continues {
		lines = append([][]string{t.header}, lines...)
	}
	for _, cells := range lines {
		var line, gap string
		for i, cell := range cells {
			cell = cut(cell, widths[i])
			line += gap + env.paint(colorOf(cell), cell)
			gap = strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell)) + columnGap
		}
		b.WriteString(strings.TrimRight(line, " ") + "\n")
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// colorOf returns the colour of a cell: that of a state or of the status of a condition.
func colorOf(cell string) color {
	switch cell {
	case string(api.StateOnline), string(api.ConditionTrue):
		return green
	case string(api.StateOffline), string(api.ConditionFalse):
		return red
	case string(api.ConditionUnknown), string(api.StateUnhealthy):
		return yellow
	}
	return plain
}
