package reconcile

import (
	"log/slog"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine"
)

// picture is what decisions are made on, and what they amount to.
type picture struct {
	logger   *slog.Logger
	fleet    *engine.Fleet
	reserved *engine.Reservations
	load     *engine.Load
	bound    engine.Bindings
	// version counts the changes of the fleet and of the reservations.
	version int
}

// others is what the decisions amount to.
func (p *picture) others() engine.Others {
	return engine.Others{Reserved: p.reserved, Load: p.load, Bindings: p.bound}
}
