package score

import "testing"

func TestBalanceRatesCounts(t *testing.T) {
	for _, c := range []struct {
		count, high int32
		want        float64
	}{{0, 0, 100}, {0, 3, 100}, {1, 3, 32}, {2, 3, -32}, {3, 3, -100}, {1, 2, 0}, {2, 2, -100}, {1, 1, -100}} {
		if got := balanced(c.count, c.high); got != c.want {
			t.Errorf("balance(%d of %d) is %v, want %v", c.count, c.high, got, c.want)
		}
	}
}
