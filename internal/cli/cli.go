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

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/printable"
)

// Exit codes. exitMeanings says what they mean.
const (
	exitOK = iota
	exitFailed
	exitUsage
	exitNotFound
	exitDenied
	exitNoServer
	exitChanges
)

// exitMeanings describes the exit codes to users, in their order.
var exitMeanings = []string{
	exitOK:       "success",
	exitFailed:   "failure",
	exitUsage:    "wrong command line",
	exitNotFound: "the object does not exist",
	exitDenied:   "the token is missing, invalid or has too few rights",
	exitNoServer: "no server can be reached, or it is not ready",
	exitChanges:  "with --exit-code: decisions would change",
}

func exitCodes() string {
	var b strings.Builder
	for code, meaning := range exitMeanings {
		fmt.Fprintf(&b, "  %d  %s\n", code, meaning)
	}
	return strings.TrimSuffix(b.String(), "\n")
}

// Environment is where a command line runs.
type Environment struct {
	Version string
	Stdin   io.Reader
	Stdout  io.Writer
	Stderr  io.Writer
	// Getenv reads a variable, as os.Getenv does.
	Getenv func(string) string
	// ConfigFile is the path of the configuration file if no flag or variable names another.
	ConfigFile string
	// Now is the clock for ages.
	Now func() time.Time
}

// Run runs a command line, without the name of the program, and returns the exit code.
func Run(ctx context.Context, env Environment, args []string) int {
	s := &session{Environment: env}
	root := s.command() //nolint:contextcheck // each command gets the context from cobra
	root.SetArgs(args)
	root.SetIn(env.Stdin)
	root.SetOut(env.Stdout)
	root.SetErr(env.Stderr)
	err := root.ExecuteContext(ctx)
	s.close()
	if err == nil {
		return exitOK
	}
	var changes *changesError
	switch {
	case errors.As(err, &changes): // the table says it
	case ctx.Err() != nil && errors.Is(err, context.Cause(ctx)):
		fmt.Fprintln(env.Stderr, "schedulerctl: interrupted")
	default:
		fmt.Fprintln(env.Stderr, "schedulerctl:", printable.Lines(api.Redact(err.Error())))
	}
	return exitCode(err)
}

// usageError is an error in the command line.
type usageError struct{ error }

// Unwrap returns the cause.
func (e usageError) Unwrap() error { return e.error }

func usage(format string, args ...any) error { return usageError{fmt.Errorf(format, args...)} }

// changesError says that decisions would change; it is not printed.
type changesError struct{ count int }

// Error implements error.
func (e *changesError) Error() string { return fmt.Sprintf("%d decisions would change", e.count) }

func exitCode(err error) int {
	var wrong usageError
	var changes *changesError
	switch {
	case errors.As(err, &changes):
		return exitChanges
	case errors.As(err, &wrong):
		return exitUsage
	}
	switch client.StatusOf(err) {
	case http.StatusNotFound:
		return exitNotFound
	case http.StatusUnauthorized, http.StatusForbidden:
		return exitDenied
	case http.StatusServiceUnavailable:
		return exitNoServer
	case 0:
		if _, ok := errors.AsType[*client.UnreachableError](err); ok {
			return exitNoServer
		}
	}
	return exitFailed
}

// session is one run of the program.
type session struct {
	Environment

	connection connection
	server     *client.Client // nil until it is needed
}

// Command returns the program with all its commands, for its reference.
func Command() *cobra.Command { return (&session{}).command() }

// command returns the program with all its commands.
func (s *session) command() *cobra.Command {
	root := &cobra.Command{
		Use:   "schedulerctl",
		Short: "Look at a scheduling server, and act on it",
		Long: `Look at a scheduling server, and act on it.

Objects are named by kind and name: "placement web", "placement shop/web" with the
namespace, "placements web api" for several. Without a namespace in the name, it is that of
--namespace, of its variable, or of the context, and otherwise "default".

The token comes from ` + tokenVariable + `, a file, or the keychain; see "schedulerctl config".

Exit codes:

` + exitCodes(),
		Version: s.Version, SilenceUsage: true, SilenceErrors: true, Args: cobra.NoArgs,
		// Without a command, the help is shown.
		RunE: func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	root.SetVersionTemplate("schedulerctl {{.Version}}\n")
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usageError{err} })
	s.connection.define(root.PersistentFlags())
	complete(root, "context", func(cmd *cobra.Command, _ []string, typed string) ([]string, cobra.ShellCompDirective) {
		return s.completeContexts(cmd, nil, typed)
	})
	for _, command := range []*cobra.Command{
		s.getCommand(), s.describeCommand(), s.explainCommand(), s.historyCommand(), s.watchCommand(), s.topCommand(), s.demandCommand(),
		s.simulateCommand(), s.rescheduleCommand(), s.approveCommand(), s.cordonCommand(), s.uncordonCommand(), s.drainCommand(), s.taintCommand(),
		s.freezeCommand(), s.thawCommand(), s.testCommand(),
		s.configCommand(), s.versionCommand(),
	} {
		root.AddCommand(command)
	}
	markUsage(root)
	return root
}

// markUsage makes wrong arguments of a command and its subcommands usage errors.
func markUsage(cmd *cobra.Command) {
	if check := cmd.Args; check != nil {
		cmd.Args = func(cmd *cobra.Command, args []string) error {
			if err := check(cmd, args); err != nil {
				return usage("%w\nUsage: %s", err, cmd.UseLine())
			}
			return nil
		}
	}
	for _, sub := range cmd.Commands() {
		markUsage(sub)
	}
}

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

func (s *session) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use: "version", Short: "Print the versions of this program and of the server", Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			fmt.Fprintln(s.Stdout, "schedulerctl "+s.Version)
			server, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			info, err := server.Server(cmd.Context())
			if err != nil {
				return err
			}
			_, err = fmt.Fprintln(s.Stdout, "server "+printable.Text(info.Version))
			return err
		},
	}
}
