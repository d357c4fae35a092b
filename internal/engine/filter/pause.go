package filter

import (
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/key"
)

// pause keeps new decisions off a paused cluster; existing ones stay. It has no parameters, so the
// filter is its own check.
type pause struct{}

func (pause) Name() string                                     { return "paused" }
func (p pause) Compile(_ *Spec, made []Check) ([]Check, error) { return append(made, p), nil }

func (pause) Key(key.Writer)         {}
func (pause) Reads() columns.Aspects { return columns.Paused }
func (pause) On() string             { return "" }
func (pause) Rejection(n int) string { return Plural(n, "is paused", "are paused") }

func (pause) Apply(l *Evaluation, keep columns.Bitmap) { keep.AndNot(l.Fleet.Paused()) }

func (pause) Admits(l *Evaluation, row int, current bool) bool {
	return current || !l.Fleet.Paused().Has(row)
}

func (pause) Reason(*Evaluation, int) string { return "is paused: it takes no new decisions" }
