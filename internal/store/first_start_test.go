package store

import (
	"context"
	"errors"
	"os/exec"
	"testing"
	"time"
)

// startTime is how long a start may take on the busiest machine; one that takes longer hangs.
const startTime = 2 * time.Minute

// A process that is killed while it starts for the first time has acknowledged
// nothing, and the next start makes it good.
func TestKillDuringFirstStart(t *testing.T) {
	t.Parallel()
	const rounds = 24
	for round := range rounds {
		dir := t.TempDir()
		child := childCommand(t, "open", dir)
		if err := child.Start(); err != nil {
			t.Fatal(err)
		}
		// Spread over the duration of a start, which is about 100 ms on a quiet machine.
		delay := time.Duration(round) * 12 * time.Millisecond
		time.Sleep(delay) //nolint:forbidigo // the time of the kill is what varies
		_ = child.Process.Kill()
		_ = child.Wait()
		ctx, cancel := context.WithTimeout(t.Context(), startTime)
		again := exec.CommandContext(ctx, child.Path)
		again.Env = child.Env
		output, err := again.CombinedOutput()
		cancel()
		if err != nil || errors.Is(ctx.Err(), context.DeadlineExceeded) {
			t.Errorf("next start after a kill at %s: %v: %.300s", delay, err, output)
		}
	}
}
