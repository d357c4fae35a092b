package auth

import (
	"sync"

	"golang.org/x/time/rate"
)

// LoginLimit limits the rate of failed logins by client address.
type LoginLimit struct {
	rate  rate.Limit
	burst int

	mu        sync.Mutex
	byAddress map[string]*rate.Limiter
}

// maxLimiters limits the memory that clients with many addresses can use. When it is exceeded, all
// limits are reset: that only allows a few more guesses at 256 random bits.
const maxLimiters = 10_000

// NewLoginLimit allows burst failed logins at once, and then perSecond.
func NewLoginLimit(perSecond float64, burst int) *LoginLimit {
	return &LoginLimit{rate: rate.Limit(perSecond), burst: burst, byAddress: map[string]*rate.Limiter{}}
}

// Allow counts one failed login and reports whether it is within the limit.
func (l *LoginLimit) Allow(address string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	limiter := l.byAddress[address]
	if limiter == nil {
		if len(l.byAddress) >= maxLimiters {
			clear(l.byAddress)
		}
		limiter = rate.NewLimiter(l.rate, l.burst)
		l.byAddress[address] = limiter
	}
	return limiter.Allow()
}
