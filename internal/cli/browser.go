package cli

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"runtime"
)

// OpenBrowser opens an address in the browser of the person who runs the program.
func OpenBrowser(ctx context.Context, address string) error {
	var command []string
	switch {
	case runtime.GOOS == "darwin":
		command = []string{"open", address}
	case runtime.GOOS == "windows":
		command = []string{"rundll32", "url.dll,FileProtocolHandler", address}
	case os.Getenv("DISPLAY") == "" && os.Getenv("WAYLAND_DISPLAY") == "":
		return errors.New("there is no display")
	default:
		command = []string{"xdg-open", address}
	}
	return exec.CommandContext(ctx, command[0], command[1:]...).Run() //nolint:gosec // the address is an argument, not a command
}
