package health

import (
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

var letters = map[api.ClusterState]string{
	"": "-", api.StatePending: "p", api.StateOnline: "O", api.StateConnecting: "c", api.StateOffline: "x", api.StateUnhealthy: "u", api.StateNotReady: "n",
}

// TestHysteresis encodes outcomes as + success, e error response, . no response, p nodes under pressure, r nodes not
// ready. The failure threshold is 3 and the success threshold 2, unless set otherwise.
func TestHysteresis(t *testing.T) {
	for _, c := range []struct {
		name     string
		from     api.ClusterState
		outcomes string
		want     string
		failure  int64
		success  int64
	}{
		{"first success makes it online", "", "+", "O", 3, 2},
		{"first failures leave it pending", "", "..+", "ppO", 3, 2},
		{"first failures up to the threshold", "", "....", "ppxx", 3, 2},
		{"errors from the start", "", "eee", "ppu", 3, 2},
		{"single failures change nothing", api.StateOnline, "..+..+", "OOOOOO", 3, 2},
		{"failures up to the threshold", api.StateOnline, "...", "OOx", 3, 2},
		{"the last failure determines the state", api.StateOnline, "..e", "OOu", 3, 2},
		{"recovery through connecting", api.StateOffline, "++", "cO", 3, 2},
		{"recovery after three successes", api.StateOffline, "+++", "ccO", 3, 3},
		{"recovery with a threshold of one", api.StateOffline, "+", "O", 3, 1},
		{"failure while connecting", api.StateOffline, "+.+e++", "cxcuuO", 3, 2},
		{"unhealthy until the threshold of successes", api.StateUnhealthy, "+e++", "uuuO", 3, 2},
		{"offline becomes unhealthy after the threshold", api.StateOffline, "ee.eee", "xxxxxu", 3, 2},
		{"unhealthy becomes offline after the threshold", api.StateUnhealthy, "e...", "uuux", 3, 2},
		{"threshold of one", api.StateOnline, ".+", "xO", 1, 1},
		{"not ready until the threshold of successes", api.StateNotReady, "++", "nO", 3, 2},
		{"nodes become not ready", api.StateOnline, "rrr", "OOn", 3, 2},
		{"pressure, then nodes not ready", api.StateOnline, "pprppprrr", "OOnnnuuun", 3, 2},
		{"recovery with nodes that are not ready", api.StateOffline, "rr++", "cnnO", 3, 2},
		{"recovery under pressure", api.StateOffline, "p+", "cc", 3, 2},
		{"not ready from the start", "", "rrr", "ppn", 3, 2},
	} {
		t.Run(c.name, func(t *testing.T) {
			h := health{state: c.from}
			var got strings.Builder
			for _, r := range c.outcomes {
				o := map[rune]outcome{'+': success, 'e': refused, '.': unreachable, 'p': pressed, 'r': notReady}[r]
				h = h.after(o, thresholds{c.failure, c.success})
				letter, ok := letters[h.state]
				if !ok {
					letter = "?"
				}
				got.WriteString(letter)
			}
			if got.String() != c.want {
				t.Errorf("%s from %q: got %s, want %s", c.outcomes, c.from, got.String(), c.want)
			}
		})
	}
}

func TestOverdueHeartbeats(t *testing.T) {
	for from, want := range map[api.ClusterState]api.ClusterState{
		"": "", api.StatePending: api.StatePending, api.StateOnline: api.StateOffline,
		api.StateConnecting: api.StateOffline, api.StateOffline: api.StateOffline, api.StateUnhealthy: api.StateUnhealthy,
	} {
		if got := (health{state: from}).silent().state; got != want {
			t.Errorf("silent() from %q = %q, want %q", from, got, want)
		}
	}
}

// TestStateNeedsARow checks, for any history, that an online cluster only goes offline after consecutive failures up to
// the threshold, and that it only returns after consecutive successes up to the threshold.
func TestStateNeedsARow(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		limits := thresholds{rapid.Int64Range(1, 5).Draw(t, "failure"), rapid.Int64Range(1, 5).Draw(t, "success")}
		h := health{state: rapid.SampledFrom([]api.ClusterState{"", api.StateOnline, api.StateOffline, api.StateUnhealthy}).Draw(t, "state")}
		known := h.state != ""
		var good, bad int64
		for _, o := range rapid.SliceOf(rapid.SampledFrom([]outcome{success, refused, unreachable, pressed, notReady})).Draw(t, "outcomes") {
			if o == success {
				good, bad = good+1, 0
			} else {
				good, bad = 0, bad+1
			}
			before := h.state
			h = h.after(o, limits)
			wasOut := before == api.StateOffline || before == api.StateUnhealthy || before == api.StateNotReady || before == api.StateConnecting
			isOut := h.state == api.StateOffline || h.state == api.StateUnhealthy || h.state == api.StateNotReady
			if before == api.StateOnline && isOut && bad < limits.failure {
				t.Fatalf("out of service after %d failures, the threshold is %d", bad, limits.failure)
			}
			if before == api.StateOnline && bad >= limits.failure && !isOut {
				t.Fatalf("still %s after %d failures", h.state, bad)
			}
			if known && wasOut && h.state == api.StateOnline && good < limits.success {
				t.Fatalf("online after %d successes, the threshold is %d", good, limits.success)
			}
			if good >= limits.success && h.state != api.StateOnline {
				t.Fatalf("%s after %d successes", h.state, good)
			}
			known = known || h.state != api.StatePending
		}
	})
}
