package main

import (
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// Exit codes of check.
const (
	exitDamaged    = 1
	exitUnreadable = 2
)

// exitError is an error with an exit code.
type exitError struct {
	error
	code int
}

// Unwrap returns the wrapped error.
func (e *exitError) Unwrap() error { return e.error }

func newCheckCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "check DIR|FILE",
		Short: "Look for damage in a data directory or a backup",
		Long: `Read a data directory, or a file that "scheduler-server backup" wrote, to its last
byte, and list what is damaged: objects, pages of the database, and files of the
write-ahead log. Of an object only its present version is checked, not those that it
replaced: no server reads these. Nothing is changed, and no key file is needed. The directory must not
be in use by a server; to check a running server, check a backup of it.

The exit code is 0 if nothing is damaged, 1 if something is, and 2 if the directory or
file cannot be read.`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(1)(cmd, args); err != nil {
				return &exitError{err, exitUnreadable}
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			report, err := store.Check(args[0])
			if err != nil {
				if locked, ok := errors.AsType[*store.LockedError](err); ok {
					err = fmt.Errorf("%w; or check a backup of the running server", locked)
				}
				return &exitError{err, exitUnreadable}
			}
			for _, f := range report.Findings {
				line := "damaged: "
				if f.Fatal {
					line = "damaged, no server starts with it: "
				}
				if _, err := fmt.Fprintln(cmd.OutOrStdout(), line+f.String()); err != nil {
					return &exitError{err, exitUnreadable}
				}
			}
			if n := len(report.Findings); n > 0 {
				return &exitError{fmt.Errorf("%s: %d damaged", args[0], n), exitDamaged}
			}
			_, err = fmt.Fprintf(cmd.OutOrStdout(), "%s: nothing is damaged; %d records read\n", args[0], report.Records)
			return err
		},
	}
}
