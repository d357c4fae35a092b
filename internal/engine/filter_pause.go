package engine

// pause keeps new decisions off a paused cluster; present ones stay.
type pause struct{}

func (pause) Name() string                    { return "paused" }
func (pause) Grounds(*Query) int              { return 1 }
func (pause) On(*Query, int) string           { return "" }
func (pause) Blame(_ *Query, _, n int) string { return plural(n, "is paused", "are paused") }

func (pause) Apply(p *Pass, _ int, keep Bitmap) { keep.andNot(p.fleet.paused) }

func (pause) Admits(p *Pass, _, row int, current bool) bool {
	return current || !p.fleet.paused.Has(row)
}

func (pause) Reason(*Pass, int, int) string { return "is paused: it takes no new decisions" }
