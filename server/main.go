// Command scheduler-server is the scheduling server: commands, configuration and wiring. Everything
// else is in the packages that it connects.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

// version is set when a release is built.
var version = "dev"

func main() {
	// The first signal requests a graceful shutdown. Afterwards signals have their default effect,
	// so a second one terminates the process at once.
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release)
	os.Exit(execute(ctx, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// execute runs a command line and returns the exit code: 0, or 1 on failure; check has an
// additional one. If the store fails later, the process exits with store.ExitCode.
func execute(ctx context.Context, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand() //nolint:contextcheck // cobra passes the context to commands
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, "scheduler-server:", describe(err))
		if exit, ok := errors.AsType[*exitError](err); ok {
			return exit.code
		}
		return 1
	}
	return 0
}

func newRootCommand() *cobra.Command {
	root := &cobra.Command{
		Use:   "scheduler-server",
		Short: "Decide on which clusters workloads run, and keep the decisions current",
		// An error prints only its message, not the usage.
		SilenceUsage:  true,
		SilenceErrors: true,
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddCommand(newServeCommand(), newInitCommand(), newCertificateCommand(), newBackupCommand(), newRestoreCommand(), newCheckCommand(), newTokenCommand(), newMembersCommand(), newUpgradeCommand(), newSimulateCommand(), newCollectCommand(), newVersionCommand())
	return root
}
