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
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	_ "golang.org/x/crypto/x509roots/fallback" // for systems without root certificates, such as the image

	"github.com/scheduler/terraform-provider-scheduler/internal/cli"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// version is set when a release is built.
var version = "dev"

// Names of the program. A link with the second one is for people who only use the commands that ask a
// running server; it has all the others too.
const (
	serverName  = "scheduler-server"
	controlName = "schedulerctl"
)

func main() {
	// The first signal requests a graceful shutdown. Afterwards signals have their default effect,
	// so a second one terminates the process at once.
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, release)
	name := nameOf(os.Args[0])
	if name == controlName { // a server begins traces of its own
		ctx = tracing.FromEnvironment(ctx, os.Getenv)
	}
	os.Exit(executeAs(ctx, name, os.Args[1:], os.Stdin, os.Stdout, os.Stderr))
}

// nameOf returns the name of the program that was started from a path.
func nameOf(path string) string {
	if strings.TrimSuffix(filepath.Base(path), ".exe") == controlName {
		return controlName
	}
	return serverName
}

// executeAs runs a command line and returns the exit code: 0, or 1 on failure; check and the commands
// of internal/cli have additional ones. If the store fails later, the process exits with
// store.ExitCode.
func executeAs(ctx context.Context, name string, args []string, stdin io.Reader, stdout, stderr io.Writer) int {
	root := newRootCommand(name, cli.Environment{ //nolint:contextcheck // cobra passes the context to commands
		Program: name, Version: version, Stdin: stdin, Stdout: stdout, Stderr: stderr, Getenv: os.Getenv,
		Terminal:   cli.TerminalOf(stdin, stdout, stderr),
		ConfigFile: contextsFile(), OpenURL: cli.OpenBrowser, Now: time.Now,
		SimulateFile: func(ctx context.Context, file string) error { return simulateFile(ctx, file, stdin, stdout) },
	})
	root.SetArgs(args)
	root.SetIn(stdin)
	root.SetOut(stdout)
	root.SetErr(stderr)
	if err := root.ExecuteContext(ctx); err != nil {
		fmt.Fprintln(stderr, name+":", describe(err))
		if exit, ok := errors.AsType[*exitError](err); ok {
			return exit.code
		}
		if failed, ok := errors.AsType[*cli.Error](err); ok {
			return failed.Code
		}
		return 1
	}
	return 0
}

// contextsFile returns the path of the file with the contexts of internal/cli, "" without a home
// directory.
func contextsFile() string {
	directory, err := os.UserConfigDir()
	if err != nil {
		return ""
	}
	return filepath.Join(directory, controlName, "config.yaml")
}

// Groups of commands in the help.
const (
	groupServers = "servers"
	groupPeople  = "people"
)

func newRootCommand(name string, env cli.Environment) *cobra.Command {
	root := &cobra.Command{
		Use:   name,
		Short: "Decide on which clusters workloads run, and keep the decisions current",
		Long: "Decide on which clusters workloads run, and keep the decisions current.\n\nFor the commands that ask a running server:\n\n" +
			cli.Help(),
		// An error prints only its message, not the usage.
		SilenceUsage:  true,
		SilenceErrors: true,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.NoArgs(cmd, args); err != nil {
				return &exitError{err, cli.ExitUsage}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.CompletionOptions.HiddenDefaultCmd = true
	root.AddGroup(&cobra.Group{ID: groupPeople, Title: "Ask a running server:"}, &cobra.Group{ID: groupServers, Title: "Run and maintain servers:"})
	for group, commands := range map[string][]*cobra.Command{
		groupPeople:  cli.Commands(env),
		groupServers: {newServeCommand(), newInitCommand(), newCertificateCommand(), newBackupCommand(), newRestoreCommand(), newCheckCommand(), newTokenCommand(), newMembersCommand(), newUpgradeCommand(), newCollectCommand(), newVersionCommand()},
	} {
		for _, command := range commands {
			command.GroupID = group
		}
		root.AddCommand(commands...)
	}
	return root
}
