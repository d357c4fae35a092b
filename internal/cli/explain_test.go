package cli

import (
	"strings"
	"testing"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// TestExplanationOfAMargin checks that a decision that is kept although another one is better is not said to move when a
// score rises by less than nothing.
func TestExplanationOfAMargin(t *testing.T) {
	for margin, want := range map[float64]string{
		0.25:  "Margin: the decision moves from eu to us if the score of us rises by 0.25\n",
		-0.25: "Margin: the decision moves from eu to us when it may: the score of us is 0.25 more than that takes\n",
	} {
		var out strings.Builder
		x := &api.Explanation{Margin: &api.MoveMargin{From: "eu", To: "us", Margin: margin}}
		env := environment(t, nil)
		env.Stdout = &out
		s := &session{Environment: env}
		if err := s.printExplanation(api.Key{Kind: api.KindPlacement, Namespace: "shop", Name: "web"}, x, false); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(out.String(), want) {
			t.Errorf("a margin of %v is explained as %q, want %q", margin, out.String(), want)
		}
	}
}
