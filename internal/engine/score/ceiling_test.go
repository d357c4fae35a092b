package score

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/filter"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
)

// TestCeilings checks that no cluster outside a decision scores above the ceiling, for any query, also after the
// decisions of others have changed.
func TestCeilings(t *testing.T) {
	d := enginetest.FixedDice(6)
	told := 0
	for range 60 {
		w := enginetest.RollLawWorld(d)
		told += checkCeilings(t, d, w.Fleet())
	}
	if told < 100 {
		t.Errorf("only %d ceilings of scores that depend on other decisions, want 100", told)
	}
}

// checkCeilings returns how many ceilings existed where the number of decisions counts.
func checkCeilings(t *testing.T, d enginetest.Dice, f *columns.Fleet) (told int) {
	t.Helper()
	rows := make([]int, f.Slots())
	for row := range rows {
		rows[row] = row
	}
	for range 40 {
		by := rolled(t, d)
		if by.Ranks == nil || by.Minds == nil {
			continue
		}
		load, counts := ledger.NewLoad(), make([]int, f.Slots())
		load.Sync(f, columns.Delta{Rows: rows})
		f.Live().Each(func(row int) {
			counts[row] = 4 + d(8)
			for range counts[row] {
				load.Add(f, f.Name(row))
			}
		})
		ranking, ceiling := NewRanking(lookAt(f, by), f.Live()), &Ceiling{}
		for n := range 6 {
			r := &Rating{Evaluation: filter.NewEvaluation(f, nil, &enginetest.Owner), By: by}
			r.Use(ranking, f.Live())
			var present []int
			f.Live().Each(func(row int) {
				if counts[row] > 0 && d.Chance(4) {
					present = append(present, row)
				}
			})
			r.See(load, present)
			highest, ok := ceiling.Of(r)
			if !ok {
				break
			}
			if n == 0 && by.Traits.Reads.Any(columns.Chosen) {
				told++
			}
			f.Live().Each(func(row int) {
				for _, at := range present {
					if row == at {
						return
					}
				}
				if is := by.Score(r, row, false); is > highest {
					t.Fatalf("%s: row %d scores %v in case %d, above the ceiling %v", sortOf(by), row, is, n, highest)
				}
			})
			if n%2 == 0 {
				continue // only other queries are checked
			}
			for _, row := range present {
				for ; counts[row] > 0; counts[row]-- {
					load.Drop(f, f.Name(row))
				}
			}
		}
	}
	return told
}
