package main

import (
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/coreos/go-systemd/v22/daemon"
)

// systemdPatience is how long systemd waits for the next sign of life of a server that starts slowly.
const systemdPatience = 10 * quietStart

// stopTime is how long the parts other than requests may take to stop.
const stopTime = 30 * time.Second

// notifySystemd tells systemd the state of a service of type notify. It does nothing if the server
// was not started as one.
func notifySystemd(logger *slog.Logger, state ...string) {
	if _, err := daemon.SdNotify(false, strings.Join(state, "\n")); err != nil {
		logger.Warn("systemd was not notified", "state", strings.Join(state, " "), "error", err)
	}
}

// extendTimeout makes systemd wait that long for the next state.
func extendTimeout(d time.Duration) string {
	return fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", d.Microseconds())
}
