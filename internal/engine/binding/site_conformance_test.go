package binding

import (
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/conformance"
)

type positionsIn struct {
	Plugin       conformance.Field[string]  `json:"plugin"`
	Alternatives conformance.Field[[]int64] `json:"chosen_alternative_per_resource"`
}

type positionsOut struct {
	Score int64 `json:"score"`
}

// TestSiteConformance runs Arktos's cases about several machines.
func TestSiteConformance(t *testing.T) {
	suite := conformance.Suite{
		Driver: "internal/engine/binding",
		Play: map[string]func(*conformance.T, *conformance.Played){
			"site_score": conformance.Player(conformPositions),
		},
	}
	suite.Run(t)
}

func conformPositions(t *conformance.T, in *positionsIn, out *positionsOut) {
	if in.Plugin.Get() != "Flavor" {
		t.Fatalf("plugin %q does not score positions", in.Plugin.Get())
	}
	if score := positionScore(in.Alternatives.Get()...); score != out.Score {
		t.Errorf("positionScore(%v) = %d, want %d", in.Alternatives.Get(), score, out.Score)
	}
}
