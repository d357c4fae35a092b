package binding

import (
	"testing"

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
		amounts [len(ratedAmounts)]siteAmount // memory, cpu, storage, floating IPs
		score   int64
	}{
		{name: "all free", amounts: [...]siteAmount{{10, 10}, {10, 10}, {10, 10}, {10, 10}}, score: 100},
		{name: "all in use", amounts: [...]siteAmount{{10, 0}, {10, 0}, {10, 0}, {10, 0}}, score: 0},
		{name: "nothing reported", score: 0},
		{name: "weights", amounts: [...]siteAmount{{1000, 500}, {100, 75}, {2000, 1500}, {}}, score: 62},
		{name: "each part is truncated", amounts: [...]siteAmount{{3, 2}, {3, 2}, {3, 2}, {3, 2}}, score: 66},
		{name: "very large amounts", amounts: [...]siteAmount{{1 << 62, 1 << 61}, {1 << 62, 1 << 62}, {1 << 63, 1 << 62}, {1, 1}}, score: 71},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if score, _ := (leastAllocated{}).Rate(&siteSeen{amounts: tt.amounts}); score != tt.score {
				t.Errorf("score %d, want %d", score, tt.score)
			}
		})
	}
}
