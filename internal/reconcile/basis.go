package reconcile

import (
	"log/slog"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// basis is what decisions are based on, and their combined effect.
type basis struct {
	logger   *slog.Logger
	fleet    *columns.Fleet
	reserved *ledger.Reservations
	load     *ledger.Load
	running  ledger.Bindings // where workloads run
	queue    queue
	// lost may be nil.
	lost *lost
	// inherited is what a fork has not taken over yet; nil if the planner is not a fork.
	inherited *inherited
	changes   passChanges
	following bool      // another server leads: what it has stored overrides what is decided here
	started   time.Time // of the server; zero in a simulation from an empty base
	// heldOtherwise notifies everybody concerned that reservations on some rows have changed: on
	// those in more there may be more room, on those in less there may be less.
	heldOtherwise func(rows, more, less []int)
	// version counts the changes of the fleet and of the reservations.
	version int
	// working is the object being processed: the first suspect after a panic.
	working api.Key
	// probe is called with each object before it is processed; only set by tests, to panic there.
	probe func(p *basis, key api.Key)
}

// focus records which object is being processed.
func (p *basis) focus(key api.Key) {
	p.working = key
	if p.probe != nil {
		p.probe(p, key)
	}
}

// others returns the combined effect of the decisions.
func (p *basis) others() ledger.Others {
	return ledger.Others{Reserved: p.reserved, Load: p.load, Bindings: p.running}
}
