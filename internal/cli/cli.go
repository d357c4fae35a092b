package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// Exit codes. exitMeanings says what they mean.
const (
	exitOK = iota
	exitRefused
	// ExitUsage is that of a wrong command line.
	ExitUsage
	exitNotFound
	exitNoServer
	exitChanges
)

// exitMeanings describes the exit codes to users, in their order.
var exitMeanings = []string{
	exitOK:       "success",
	exitRefused:  "the server refused it, or it failed otherwise",
	ExitUsage:    "wrong command line",
	exitNotFound: "the object does not exist",
	exitNoServer: "no server can be reached, or it is not ready",
	exitChanges:  "with --exit-code: decisions would change; of diff: objects differ",
}

func exitCodes() string {
	var b strings.Builder
	for code, meaning := range exitMeanings {
		fmt.Fprintf(&b, "  %d  %s\n", code, meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Environment is where the commands run.
type Environment struct {
	// Program is the name of the program in messages and examples.
	Program string
	Version string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Terminal is that of these streams.
	Terminal Terminal
	// Getenv reads a variable, as os.Getenv does.
	Getenv func(string) string
	// ConfigFile is the path of the file with contexts if no flag or variable names another.
	ConfigFile string
	// OpenURL opens an address in a browser.
	OpenURL func(ctx context.Context, address string) error
	// Now is the clock for ages.
	Now func() time.Time
	// SimulateFile makes the decisions for the fleet in a file, without a server. "-" is standard
	// input.
	SimulateFile func(ctx context.Context, file string) error
}

// Error is an error of a command, with the exit code of the program.
type Error struct {
	error
	Code int
}

// Unwrap returns the cause.
func (e *Error) Unwrap() error { return e.error }

// usageError is an error in the command line.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// changesError says that decisions would change.
type changesError struct{ count int }

// Error implements error.
func (e *changesError) Error() string {
	if e.count == 1 {
		return "1 decision would change"
	}
	return fmt.Sprintf("%d decisions would change", e.count)
}

func exitCode(err error) int {
	var wrong usageError
	var changes *changesError
	var differs *differenceError
	var unreachable *client.UnreachableError
	switch status := client.StatusOf(err); {
	case errors.As(err, &changes), errors.As(err, &differs):
		return exitChanges
	case errors.As(err, &wrong):
		return ExitUsage
	case status == http.StatusNotFound:
		return exitNotFound
	case status == http.StatusServiceUnavailable, status == 0 && errors.As(err, &unreachable):
		return exitNoServer
	}
	return exitRefused
}

// session is one run of a command.
type session struct {
	Environment

	connection connection
	server     *client.Client // nil until it is needed
}

// Commands returns the commands. Their errors are of type *Error.
func Commands(env Environment) []*cobra.Command {
	s := &session{Environment: env}
	commands := []*cobra.Command{
		s.getCommand(), s.describeCommand(), s.explainCommand(), s.historyCommand(), s.watchCommand(), s.topCommand(), s.simulateCommand(),
		s.applyCommand(), s.diffCommand(), s.rescheduleCommand(), s.cordonCommand(), s.uncordonCommand(), s.drainCommand(), s.taintCommand(), s.deleteCommand(),
		s.contextCommand(), s.loginCommand(), s.logoutCommand(), s.freezeCommand(), s.thawCommand(),
	}
	for _, command := range commands {
		s.connection.define(command.PersistentFlags())
		complete(command, "context", func(_ *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
			return s.completeContexts(nil, nil, typed)
		})
		command.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return &Error{err, ExitUsage} })
		s.finish(command)
	}
	return commands
}

// Help describes what the commands have in common.
func Help() string {
	return `Objects are named by kind and name: "placement web", "placement shop/web" with the
namespace, "placements web api" for several. Without a namespace in the name, it is that of
--namespace, of its variable, or of the context, and otherwise "default".

The token comes from ` + tokenVariable + `, a file, or the context. The exit codes are:

` + exitCodes()
}

// finish makes the errors of a command and its subcommands say the exit code, and names the program in
// its help.
func (s *session) finish(cmd *cobra.Command) {
	cmd.Long = s.named(cmd.Long)
	cmd.Example = s.named(cmd.Example)
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return &Error{errors.Join(err, errors.New("usage: "+cmd.UseLine())), ExitUsage}
			}
			return nil
		}
	}
	if run := cmd.RunE; run != nil {
		cmd.RunE = func(cmd *cobra.Command, args []string) error {
			defer s.close()
			err := run(cmd, args)
			if err == nil {
				return nil
			}
			code := exitCode(err)
			if ctx := cmd.Context(); ctx.Err() != nil && errors.Is(err, context.Cause(ctx)) {
				err = errors.New("interrupted")
			}
			return &Error{err, code}
		}
	}
	for _, sub := range cmd.Commands() {
		s.finish(sub)
	}
}

// named replaces PROGRAM in a text by the name of the program.
func (s *session) named(text string) string { return strings.ReplaceAll(text, "PROGRAM", s.Program) }

// connect returns the client of the server, which is created on first use.
func (s *session) connect(ctx context.Context) (*client.Client, error) {
	if s.server == nil {
		server, err := s.connection.connect(ctx, s.Environment)
		if err != nil {
			return nil, err
		}
		s.server = server
	}
	return s.server, nil
}

func (s *session) close() {
	if s.server != nil {
		s.server.Close()
	}
}
