package main

import (
	"errors"
	"fmt"
	"os"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

func newRestoreCommand() *cobra.Command {
	var dataDir string
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Create a data directory from a backup",
		Long: `Create a data directory from a file that "scheduler-server backup" wrote, or from
standard input ("-"). The directory must not exist, or be empty, or contain only the key
file (seal.key) that belongs to the backup.`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "directory to create")
	readVariables(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if dataDir == "" {
			return errors.New("data-dir: is required")
		}
		if err := checkEmpty(dataDir); err != nil {
			return err
		}
		from := cmd.InOrStdin()
		if args[0] != "-" {
			file, err := os.Open(args[0])
			if err != nil {
				return err
			}
			defer file.Close()
			from = file
		}
		if err := store.Restore(cmd.Context(), from, dataDir); err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored into %s\n", dataDir)
		return err
	}
	return cmd
}

// checkEmpty refuses a directory that holds anything a backup does not replace.
func checkEmpty(dataDir string) error {
	entries, err := os.ReadDir(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("data-dir: %w", err)
	}
	for _, entry := range entries {
		// The lock file and the reserve stay behind wherever a server has been.
		if name := entry.Name(); name != "seal.key" && name != "LOCK" && name != "RESERVE" {
			return fmt.Errorf("data-dir: %s is not empty, it holds %s: restore into an empty directory, or move the old data away first", dataDir, name)
		}
	}
	return nil
}
