package enginetest

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Owner is the placement that sees a Sight. Some of the reservations are its own.
var Owner = api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}

// Sight is a fleet from the point of view of a placement that is being decided.
type Sight struct {
	Fleet  *columns.Fleet
	Others ledger.Others
	// Present are the rows of its current decision.
	Present []int
}

// RollReserved draws fleets with reservations.
func RollReserved(d Dice, n int) []Sight {
	sights := make([]Sight, n)
	for i := range sights {
		w := RollLawWorld(d)
		w.Now = Epoch.Add(time.Duration(d(3)) * 40 * time.Second)
		f := w.Fleet()
		reserved := ledger.NewReservations()
		for _, key := range []api.Key{Owner, {Kind: api.KindPlacement, Namespace: "shop", Name: "db"}} {
			for row := range f.Slots() {
				if d.Chance(2) {
					reserved.Hold(f, key, ledger.Needs{{Resource: "cpu", Text: "1", Milli: amount.Unit}}, f.Name(row), Epoch.Add(time.Hour))
				}
			}
		}
		sights[i] = Sight{Fleet: f, Others: ledger.Others{Reserved: reserved}}
	}
	return sights
}

// RollSights draws fleets with the decisions of others, and a current decision.
func RollSights(d Dice, n int) []Sight {
	sights := RollReserved(d, n)
	for i := range sights {
		s := &sights[i]
		s.Others.Load = ledger.NewLoad()
		rows := make([]int, s.Fleet.Slots())
		for row := range rows {
			rows[row] = row
			for range d(3) {
				s.Others.Load.Add(s.Fleet, s.Fleet.Name(row))
			}
			if d.Chance(4) {
				s.Present = append(s.Present, row)
				s.Others.Load.Add(s.Fleet, s.Fleet.Name(row))
			}
		}
		s.Others.Load.Sync(s.Fleet, columns.Delta{Rows: rows})
	}
	return sights
}
