package auth

import (
	"sync"

	"golang.org/x/time/rate"
)

// LoginLimit slows down failed logins, by the address of the client.
type LoginLimit struct {
	rate  rate.Limit
	burst int

	mu        sync.Mutex
	byAddress map[string]*rate.Limiter
}

// maxLimiters bounds the memory that clients with many addresses can take. Where
// there are more, the record starts anew: that grants a few more guesses at 256
// random bits.
const maxLimiters = 10_000

// NewLoginLimit allows some failed logins at once, and then so many in a second.
func NewLoginLimit(perSecond float64, burst int) *LoginLimit {
	return &LoginLimit{rate: rate.Limit(perSecond), burst: burst, byAddress: map[string]*rate.Limiter{}}
}

// Allow counts one failed login and reports whether the client still gets an
// answer to it.
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
