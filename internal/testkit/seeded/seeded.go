// Package seeded is test code: random numbers that a later run can draw again.
package seeded

import (
	"hash/fnv"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

// variable names the environment variable with the seed of a run. It is rapid's own, so that one
// seed repeats the properties, too. The make targets set it; without it, every run draws a seed.
const variable = "RAPID_SEED"

// Rand returns random numbers that depend only on the seed of the run and the name of the test. The
// log of the test says how to draw them again.
func Rand(t testing.TB) *rand.Rand {
	t.Helper()
	seed, err := runSeed()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("to repeat: %s=%d", variable, seed)
	return fromSeed(seed, t.Name())
}

func fromSeed(seed uint64, name string) *rand.Rand {
	h := fnv.New64a()
	_, _ = h.Write([]byte(name)) // never fails
	return rand.New(rand.NewPCG(seed, h.Sum64()))
}

var runSeed = sync.OnceValues(func() (uint64, error) { return parseSeed(os.Getenv(variable)) })

// parseSeed draws a seed if none is given. As in rapid, 0 stands for none.
func parseSeed(text string) (uint64, error) {
	if text == "" || text == "0" {
		return rand.Uint64(), nil
	}
	seed, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return 0, err
	}
	return seed, nil
}
