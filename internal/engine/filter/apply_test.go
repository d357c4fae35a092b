package filter

import (
	"fmt"
	"testing"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/columns"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/enginetest"
	"github.com/scheduler/terraform-provider-scheduler/internal/engine/ledger"
	"pgregory.net/rapid"
)

// compiled returns the checks of a placement.
func compiled(t rapid.TB, p *api.Placement) Checks {
	t.Helper()
	c, err := CompileChecks(specOf(p))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// TestMaskEqualsAdmits compares the two forms of every check, row by row.
func TestMaskEqualsAdmits(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		f := w.Fleet()
		p := enginetest.RollPlacement(d)
		checks, owner := compiled(t, p), api.KeyOf(p)
		reserved := ledger.NewReservations()
		for range d(8) {
			who := enginetest.Pick(d, owner, api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "p1"})
			held := ledger.Amount{Resource: enginetest.Pick(d, "cpu", "memory"), Text: "1", Milli: amount.Units(int64(1 + d(3)))}
			reserved.Hold(f, who, ledger.Needs{held}, fmt.Sprintf("c%03d", d(14)), enginetest.Epoch.Add(time.Duration(d(5)-2)*30*time.Second))
		}
		l := NewEvaluation(f, reserved, &owner)
		l.Writable()
		for _, check := range checks.All {
			keep := f.Live().Grown(f.Slots())
			check.Apply(&l, keep)
			f.Live().Each(func(row int) {
				admits := check.Admits(&l, row, false)
				if keep.Has(row) != admits {
					t.Fatalf("%s %q on %s: Apply %t, Admits %t", check.Name(), check.On(), f.Name(row), keep.Has(row), admits)
				}
				if admits && !check.Admits(&l, row, true) {
					t.Fatalf("%s %q admits %s, but not as a present cluster", check.Name(), check.On(), f.Name(row))
				}
			})
		}
		mask := checks.Mask(&l)
		for row := range f.Slots() {
			if mask.Has(row) != checks.Admits(&l, row, false) {
				t.Fatalf("row %d: mask %t, want the opposite", row, mask.Has(row))
			}
		}
	})
}

func TestReadsValues(t *testing.T) {
	for text, want := range map[string]bool{
		`cluster.metadata.labels["a"] == "b"`:             false,
		`cluster.metric("load") < 5.0`:                    true,
		`managedCluster.scores("a").exists(s, s.value>0)`: true,
	} {
		p := enginetest.NewPlacement("web")
		p.Spec.Predicates = []api.Predicate{{CEL: []string{text}}}
		if got := compiled(t, p).Reads.Any(columns.MetricValues | columns.ScoreValues); got != want {
			t.Errorf("%s reads values: %t, want %t", text, got, want)
		}
	}
}

// TestTolerationsRunOut checks that the mask holds until the time that the pass returns, and that the bulk and single
// forms of the taint rules agree.
func TestTolerationsRunOut(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		d, w := enginetest.RollFleet(t)
		f := w.Fleet()
		p := enginetest.RollPlacement(d)
		checks := compiled(t, p)
		mask := func(now time.Time) (columns.Bitmap, time.Time) {
			g, _ := f.With(columns.Changes{}, now)
			l := newEvaluation(g, nil)
			keep := f.Live().Grown(f.Slots())
			for _, check := range checks.All {
				if check.Name() == "state" || check.Name() == "taints" {
					check.Apply(&l, keep)
				}
			}
			return keep, l.Until
		}
		same := func(a, b columns.Bitmap) bool {
			for i := range a {
				if a[i] != b[i] {
					return false
				}
			}
			return true
		}
		now, until := mask(w.Now)
		late := w.Now.Add(200 * 365 * 24 * time.Hour)
		if !until.IsZero() {
			late = until.Add(-1)
		}
		if later, _ := mask(late); !same(now, later) || !until.IsZero() && !until.After(w.Now) {
			t.Fatalf("the mask changed before %v", until)
		}
		l, tolerations := newEvaluation(f, nil), NewTolerations(p.Spec.Tolerations)
		demoted := tolerations.DemotedRows(f)
		f.Live().Each(func(row int) {
			if tolerations.Demoted(f, row) != (demoted != nil && demoted.Has(row)) {
				t.Fatalf("%s is demoted: %t", f.Name(row), tolerations.Demoted(f, row))
			}
			if at := checks.UntilOf(&l, row, false); !at.IsZero() && !at.After(w.Now) {
				t.Fatalf("%s is tolerated until %v, want a time in the future", f.Name(row), at)
			}
		})
	})
}
