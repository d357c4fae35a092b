package enginetest

import (
	"math/rand/v2"

	"pgregory.net/rapid"
)

// Dice returns a number from 0 to n-1.
type Dice func(n int) int

// Pick picks one of the values.
func Pick[T any](d Dice, from ...T) T { return from[d(len(from))] }

// Chance is true with a probability of 1 in n.
func (d Dice) Chance(n int) bool { return d(n) == 0 }

// Rolling returns dice that rapid shrinks. For large worlds it draws only a seed, because thousands
// of draws are slow.
func Rolling(t *rapid.T, large bool) Dice {
	if large {
		seed := rapid.Uint64().Draw(t, "seed")
		r := rand.New(rand.NewPCG(seed, 1))
		return r.IntN
	}
	return func(n int) int { return rapid.IntRange(0, n-1).Draw(t, "roll") }
}

// FixedDice returns dice that are the same in every run: a property is checked for the same
// thousands of inputs, so a test finds an error always or never.
func FixedDice(seed uint64) Dice { return rand.New(rand.NewPCG(seed, 14)).IntN }
