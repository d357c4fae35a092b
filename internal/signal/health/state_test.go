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

// TestHysteresis: outcomes are + success, e answered with an error, . no answer, p
// nodes under pressure, r nodes not ready;
// with failure threshold 3 and success threshold 2 unless told otherwise.
func TestHysteresis(t *testing.T) {
	for _, c := range []struct {
		name     string
		from     api.ClusterState
		outcomes string
		want     string
		failure  int64
		success  int64
	}{
		{"the first good answer decides", "", "+", "O", 3, 2},
		{"a bad first answer leaves it pending", "", "..+", "ppO", 3, 2},
		{"until the threshold", "", "....", "ppxx", 3, 2},
		{"answers with an error from the start", "", "eee", "ppu", 3, 2},
		{"single failures do nothing", api.StateOnline, "..+..+", "OOOOOO", 3, 2},
		{"the threshold takes it out", api.StateOnline, "...", "OOx", 3, 2},
		{"the latest failure names the state", api.StateOnline, "..e", "OOu", 3, 2},
		{"back through connecting", api.StateOffline, "++", "cO", 3, 2},
		{"back with three", api.StateOffline, "+++", "ccO", 3, 3},
		{"back at once with a threshold of one", api.StateOffline, "+", "O", 3, 1},
		{"a failure while connecting", api.StateOffline, "+.+e++", "cxcuuO", 3, 2},
		{"unhealthy until the threshold", api.StateUnhealthy, "+e++", "uuuO", 3, 2},
		{"offline becomes unhealthy after the threshold", api.StateOffline, "ee.eee", "xxxxxu", 3, 2},
		{"unhealthy becomes offline after the threshold", api.StateUnhealthy, "e...", "uuux", 3, 2},
		{"threshold of one", api.StateOnline, ".+", "xO", 1, 1},
		{"not ready until the threshold", api.StateNotReady, "++", "nO", 3, 2},
		{"nodes go", api.StateOnline, "rrr", "OOn", 3, 2},
		{"pressure, and then they go", api.StateOnline, "pprppprrr", "OOnnnuuun", 3, 2},
		{"lost, and there with nodes that are not ready", api.StateOffline, "rr++", "cnnO", 3, 2},
		{"lost, and there under pressure", api.StateOffline, "p+", "cc", 3, 2},
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
			t.Errorf("silent %q is %q, want %q", from, got, want)
		}
	}
}

// TestStateNeedsARow: whatever the history, a cluster that is online goes out
// only with a threshold of failures in a row, and one that is out comes back
// only with a threshold of successes in a row.
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
				t.Fatalf("out after %d failures, the threshold is %d", bad, limits.failure)
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
