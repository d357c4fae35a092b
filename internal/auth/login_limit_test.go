package auth

import (
	"strings"
	"testing"
)

func TestTheMemoryOfFailedLoginsIsBounded(t *testing.T) {
	limit := NewLoginLimit(1, 1)
	for i := range maxLimiters + 10 {
		limit.Allow(string(rune('a'+i%26)) + strings.Repeat("x", i/26))
	}
	if len(limit.byAddress) > maxLimiters {
		t.Errorf("%d limiters, want at most %d", len(limit.byAddress), maxLimiters)
	}
}
