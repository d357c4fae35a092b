package binding

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/amount"
	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func TestStackAffinity(t *testing.T) {
	some := []api.Key{{Kind: api.KindWorkload, Namespace: "shop", Name: "other"}}
	for _, tt := range []struct {
		name              string
		with, without     []api.Key
		affine, apart     int
		score, difference int64
	}{
		{name: "no affinity", score: 50},
		{name: "affinity, same site", with: some, affine: 1, score: 100, difference: 1},
		{name: "affinity, other site", with: some, score: 50},
		{name: "anti-affinity, same site", without: some, apart: 1, score: 0, difference: -1},
		{name: "anti-affinity, other site", without: some, score: 50},
		{name: "affinity and anti-affinity, same site for both", with: some, without: some, affine: 1, apart: 1, score: 50},
		{name: "affinity and anti-affinity, same site for affinity", with: some, without: some, affine: 1, score: 75, difference: 1},
		{name: "affinity and anti-affinity, same site for anti-affinity", with: some, without: some, apart: 1, score: 25, difference: -1},
	} {
		t.Run(tt.name, func(t *testing.T) {
			score, raw := stackAffinity{}.Rate(&siteSeen{allocation: &allocation{affine: tt.with, apart: tt.without}, affine: tt.affine, apart: tt.apart})
			if score != tt.score || raw != tt.difference {
				t.Errorf("score %d (difference %d), want %d (%d)", score, raw, tt.score, tt.difference)
			}
		})
	}
}

func TestLeastAllocated(t *testing.T) {
	for _, tt := range []struct {
		name    string
		amounts [len(ratedAmounts)][2]int64 // capacity and what is free of memory, cpu, storage, floating IPs
		score   int64
	}{
		{name: "all free", amounts: [...][2]int64{{10, 10}, {10, 10}, {10, 10}, {10, 10}}, score: 100},
		{name: "all in use", amounts: [...][2]int64{{10, 0}, {10, 0}, {10, 0}, {10, 0}}, score: 0},
		{name: "nothing reported", score: 0},
		{name: "weights", amounts: [...][2]int64{{1000, 500}, {100, 75}, {2000, 1500}, {}}, score: 62},
		{name: "each part is truncated", amounts: [...][2]int64{{3, 2}, {3, 2}, {3, 2}, {3, 2}}, score: 66},
		{name: "very large amounts", amounts: [...][2]int64{{1 << 62, 1 << 61}, {1 << 62, 1 << 62}, {1<<63 - 1, 1 << 62}, {1, 1}}, score: 71},
	} {
		t.Run(tt.name, func(t *testing.T) {
			seen := siteSeen{}
			for i, of := range tt.amounts {
				seen.amounts[i] = siteAmount{amount.Units(of[0]), amount.Units(of[1])}
			}
			if score, _ := (leastAllocated{}).Rate(&seen); score != tt.score {
				t.Errorf("score %d, want %d", score, tt.score)
			}
		})
	}
}
