package engine

// pause keeps new decisions off a paused cluster; present ones stay. It is the
// same for everybody, so it is its own check.
type pause struct{}

func (pause) Name() string                                     { return "paused" }
func (p pause) Compile(_ *Spec, made []Check) ([]Check, error) { return append(made, p), nil }

func (pause) Key(*Key)           {}
func (pause) Reads() Aspects     { return Paused }
func (pause) On() string         { return "" }
func (pause) Blame(n int) string { return plural(n, "is paused", "are paused") }

func (pause) Apply(l *Look, keep Bitmap) { keep.andNot(l.fleet.paused) }

func (pause) Admits(l *Look, row int, current bool) bool {
	return current || !l.fleet.paused.Has(row)
}

func (pause) Reason(*Look, int) string { return "is paused: it takes no new decisions" }
