package reconcile

import (
	"log/slog"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// picture is what decisions are made on, and what they amount to.
type picture struct {
	logger   *slog.Logger
	fleet    *columns.Fleet
	reserved *ledger.Reservations
	load     *ledger.Load
	running  ledger.Bindings // where workloads run
	queue    queue
	// lost may be nil.
	lost *lost
	// inherited is what a fork has not taken over yet; nil where it is none.
	inherited *inherited
	started   time.Time // of the server; zero where the world is imagined
	// heldOtherwise tells everybody whom it concerns that reservations differ on some
	// rows: on some of them there may be more room, on others less.
	heldOtherwise func(rows, more, less []int)
	// version counts the changes of the fleet and of the reservations.
	version int
	// working is what is being worked on: the first suspect where that panics.
	working api.Key
	// probe is called with each object before it is worked on; only tests set it, to
	// panic there.
	probe func(p *picture, key api.Key)
}

// focus notes what is worked on from now on.
func (p *picture) focus(key api.Key) {
	p.working = key
	if p.probe != nil {
		p.probe(p, key)
	}
}

// others is what the decisions amount to.
func (p *picture) others() ledger.Others {
	return ledger.Others{Reserved: p.reserved, Load: p.load, Bindings: p.running}
}
