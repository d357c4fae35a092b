package division

import (
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// TestRefillFillsEarlierTiers compares the sums by tier with a naive filling: as many replicas as fit, from the first
// tier on. In a tier that gains replicas nothing else moves, and a tier that loses replicas gains none.
func TestRefillFillsEarlierTiers(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 8, replicas: 30})
		r := &w.request
		r.Constraints, r.Replicated, r.Empty, r.Fresh, r.Refill = nil, true, false, false, true
		r.Mode = rapid.SampledFrom([]Mode{Dynamic, Aggregate}).Draw(t, "of tiers")
		for i := range w.candidates {
			w.candidates[i].Tier = rapid.Int32Range(0, 2).Draw(t, "in tier")
		}
		res, err := d.Divide(r, w.candidates)
		if err != nil {
			if w.solvable(false) {
				t.Fatalf("Divide() error %v, but there is a solution\n%v", err, w)
			}
			return
		}
		if err := w.check(res); err != nil {
			t.Fatalf("%v\n%v%+v", err, w, res.Shares)
		}
		var room, got [3]int64
		replicas := shares(res, len(w.candidates))
		for i := range w.candidates {
			c := &w.candidates[i]
			room[c.Tier] += w.fits(c)
			got[c.Tier] += max(replicas[c.Row], 0)
		}
		left := r.Replicas
		for tier, n := range got {
			want := min(room[tier], left)
			left -= want
			if n != want {
				t.Fatalf("tier %d has %d, want %d\n%v%+v", tier, n, want, w, res.Shares)
			}
		}
		for tier := range int32(3) {
			gains, loses := false, false
			for i := range w.candidates {
				if c := &w.candidates[i]; c.Tier == tier {
					gains = gains || max(replicas[c.Row], 0) > min(c.Assigned, w.fits(c))
					loses = loses || max(replicas[c.Row], 0) < min(c.Assigned, w.fits(c))
				}
			}
			if gains && loses {
				t.Fatalf("replicas move within tier %d\n%v%+v", tier, w, res.Shares)
			}
		}
		again, err := d.Divide(r, hold(w.candidates, res.Shares))
		if err != nil || !slices.Equal(again.Shares, res.Shares) {
			t.Fatalf("repeated with error %v: %+v, want %+v\n%v", err, again.Shares, res.Shares, w)
		}
	})
}

// TestTiersKeepRunningReplicas checks that, without refilling, running replicas stay, new replicas go to the first tier
// with capacity, and surplus replicas are removed from the last tier first.
func TestTiersKeepRunningReplicas(t *testing.T) {
	var d Divider
	rapid.Check(t, func(t *rapid.T) {
		w := drawWorld(t, shape{candidates: 8, replicas: 30})
		r := &w.request
		r.Constraints, r.Replicated, r.Empty, r.Fresh = nil, true, false, false
		r.Mode = rapid.SampledFrom([]Mode{Dynamic, Aggregate}).Draw(t, "of tiers")
		for i := range w.candidates {
			w.candidates[i].Tier = rapid.Int32Range(0, 2).Draw(t, "in tier")
		}
		res, err := d.Divide(r, w.candidates)
		if err != nil {
			return
		}
		var held, room, got [3]int64
		replicas := shares(res, len(w.candidates))
		kept := int64(0)
		for i := range w.candidates {
			c := &w.candidates[i]
			held[c.Tier] += c.Assigned
			kept += c.Assigned
			got[c.Tier] += max(replicas[c.Row], 0)
			room[c.Tier] += w.fits(c)
			if kept := replicas[c.Row]; r.Replicas >= sumHeld(w.candidates) && kept < c.Assigned && c.Assigned > 0 {
				t.Fatalf("cluster %d loses replicas\n%v%+v", c.Row, w, res.Shares)
			}
		}
		left := r.Replicas - kept
		for tier := range got {
			want := held[tier]
			if left > 0 {
				more := min(left, room[tier]-held[tier])
				want += more
				left -= more
			}
			if kept > r.Replicas {
				before := int64(0)
				for i := range tier {
					before += held[i]
				}
				want = max(min(held[tier], r.Replicas-before), 0)
			}
			if got[tier] != want {
				t.Fatalf("tier %d has %d, want %d\n%v%+v", tier, got[tier], want, w, res.Shares)
			}
		}
	})
}

func sumHeld(candidates []Candidate) (sum int64) {
	for i := range candidates {
		sum += candidates[i].Assigned
	}
	return sum
}
