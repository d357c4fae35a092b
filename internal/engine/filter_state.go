package engine

import (
	"fmt"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// state admits online clusters only. A cluster of the present decision that
// goes offline is left at once.
type state struct{}

func (state) Name() string                    { return "state" }
func (state) Grounds(*Query) int              { return 1 }
func (state) On(*Query, int) string           { return "" }
func (state) Blame(_ *Query, _, n int) string { return plural(n, "is not online", "are not online") }

func (state) Apply(p *Pass, _ int, keep Bitmap) { keep.and(p.fleet.online) }

func (state) Admits(p *Pass, _, row int, _ bool) bool { return p.fleet.online.Has(row) }

func (state) Reason(p *Pass, _, row int) string {
	c := p.fleet.rows[row].cluster
	text := fmt.Sprintf("is %s", State(c))
	if ready := api.FindCondition(c.Status.Conditions, api.ConditionReady); ready != nil && ready.Message != "" {
		text += ": " + ready.Message
	}
	return text
}
