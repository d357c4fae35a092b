package enginetest

import (
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// Owner is the placement that looks at a Sight. Some of what is reserved there is its
// own.
var Owner = api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}

// Sight is a fleet as a placement sees it that is to be decided.
type Sight struct {
	Fleet  *columns.Fleet
	Others ledger.Others
	// Present are the rows that the placement has.
	Present []int
}

// RollReserved draws fleets with what is reserved on them.
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
					reserved.Hold(f, key, ledger.Needs{{Resource: "cpu", Text: "1", Milli: 1000}}, f.Name(row), Epoch.Add(time.Hour))
				}
			}
		}
		sights[i] = Sight{Fleet: f, Others: ledger.Others{Reserved: reserved}}
	}
	return sights
}

// RollSights draws fleets with all that others decided, and a present decision.
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
