package serve

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"
)

// pausedBubble runs a test with Pauses that are observed, and a function that lets the process stand still.
func pausedBubble(t *testing.T, test func(t *testing.T, p *Pauses, pause func(time.Duration))) {
	synctest.Test(t, func(t *testing.T) {
		var ahead time.Duration
		p := &Pauses{clock: func() time.Time { return time.Now().Add(ahead) }}
		ctx, cancel := context.WithCancel(t.Context())
		done := make(chan struct{})
		go func() {
			defer close(done)
			p.Run(ctx)
		}()
		synctest.Wait()
		test(t, p, func(d time.Duration) {
			p.mu.Lock()
			defer p.mu.Unlock()
			ahead += d
		})
		cancel()
		<-done
	})
}

func TestWritesWaitAfterAPause(t *testing.T) {
	for _, test := range []struct {
		name        string
		pause, want time.Duration
	}{
		{"none", 0, 0},
		{"short", 300 * time.Millisecond, 0},
		{"long", time.Minute, pauseSettle},
		{"clock set back", -time.Hour, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			pausedBubble(t, func(t *testing.T, p *Pauses, pause func(time.Duration)) {
				pause(test.pause)
				began := time.Now()
				if err := p.Wait(t.Context()); err != nil {
					t.Error(err)
				}
				if took := time.Since(began); took != test.want {
					t.Errorf("waited %s, want %s", took, test.want)
				}
				began = time.Now()
				if err := p.Wait(t.Context()); err != nil || time.Since(began) != 0 {
					t.Errorf("waited %s again (%v)", time.Since(began), err)
				}
			})
		})
	}
}

// The client's side of the connection is closed: this is read a moment after the request.
func TestWriteOfAClientThatLeftDuringAPauseIsRefused(t *testing.T) {
	pausedBubble(t, func(t *testing.T, p *Pauses, pause func(time.Duration)) {
		pause(10 * time.Second)
		ctx, leave := context.WithTimeout(t.Context(), pauseSettle/2)
		defer leave()
		if err := p.Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("got %v, want that the client has gone away", err)
		}
	})
}

// The request may be handled before the observer has run again, or after.
func TestPauseIsNoticedByWhoeverRunsFirst(t *testing.T) {
	pausedBubble(t, func(t *testing.T, p *Pauses, pause func(time.Duration)) {
		pause(10 * time.Second)
		if remaining := p.remaining(); remaining != pauseSettle {
			t.Errorf("%s remain, want %s", remaining, pauseSettle)
		}
		if remaining := p.remaining(); remaining != pauseSettle {
			t.Errorf("%s remain for the next request, want %s", remaining, pauseSettle)
		}
	})
}

func TestUnobservedPausesHoldNothing(t *testing.T) {
	var p Pauses
	if err := p.Wait(t.Context()); err != nil {
		t.Error(err)
	}
}
