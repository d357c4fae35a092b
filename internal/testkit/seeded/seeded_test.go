package seeded

import "testing"

func TestSeedAndNameDecideTheNumbers(t *testing.T) {
	first := fromSeed(1, "A").Uint64()
	for _, c := range []struct {
		what  string
		seed  uint64
		name  string
		equal bool
	}{
		{"the same", 1, "A", true},
		{"another seed", 2, "A", false},
		{"another test", 1, "B", false},
	} {
		if got := fromSeed(c.seed, c.name).Uint64(); (got == first) != c.equal {
			t.Errorf("%s: %d, the first drew %d", c.what, got, first)
		}
	}
}

func TestSeedOfARun(t *testing.T) {
	if seed, err := parseSeed("18446744073709551615"); err != nil || seed != 1<<64-1 {
		t.Errorf("%d %v", seed, err)
	}
	if _, err := parseSeed("one"); err == nil {
		t.Error("a seed that is not a number is accepted")
	}
	for _, none := range []string{"", "0"} {
		a, errA := parseSeed(none)
		b, errB := parseSeed(none)
		if a == b || errA != nil || errB != nil {
			t.Errorf("%q: %d %v and %d %v: not drawn anew", none, a, errA, b, errB)
		}
	}
}
