package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/history"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/wholefile"
)

func newBackupCommand() *cobra.Command {
	var from remote
	cmd := &cobra.Command{
		Use:   "backup FILE",
		Short: "Write the store and the history to a file",
		Long: `Write a consistent copy of the store to a file, or to standard output ("-").

The server keeps working during the backup. With several endpoints, a backup to a file
starts again on the next server if one fails before the end. With --data-dir, the store
of a stopped server is written. The file also contains the history of decisions; with
--data-dir, if it is in the data directory. Secrets in the file are encrypted. Keep a
copy of the key file (seal.key in the data directory) elsewhere: without it, the secrets
cannot be read.

The file is a tar archive. "scheduler-server restore" creates a data directory from it,
of a server or of a member of an external etcd cluster.`,
		Args: cobra.ExactArgs(1),
	}
	from.define(cmd)
	// again discards what was written, to start over; nil if that is impossible.
	backup := func(cmd *cobra.Command, w io.Writer, again func() error) error {
		return from.act(cmd,
			func(server *client.Client) error { return server.Backup(cmd.Context(), w, again) },
			func(opened *store.Store) error { return backupStopped(cmd.Context(), opened, from.DataDir, w) })
	}
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		if args[0] == "-" {
			return backup(cmd, cmd.OutOrStdout(), nil)
		}
		err := wholefile.Replace(args[0], func(file *os.File) error {
			again := func() error {
				_, err := file.Seek(0, io.SeekStart)
				return errors.Join(err, file.Truncate(0))
			}
			return backup(cmd, file, again)
		})
		if err != nil {
			return fmt.Errorf("back up to %s: %w", args[0], err)
		}
		return nil
	}
	return cmd
}

// backupStopped writes the store in the data directory of a stopped server, and the history beside it.
func backupStopped(ctx context.Context, opened *store.Store, dataDir string, w io.Writer) error {
	dir := store.HistoryDir(dataDir)
	if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
		return opened.Backup(ctx, w, nil)
	}
	log, err := history.Open(history.Options{Dir: dir, Store: opened, Retention: math.MaxInt64, MaxBytes: math.MaxInt64, Now: time.Now})
	if err != nil {
		return err
	}
	// A server that was killed may not have written all of it.
	following, stop := context.WithCancel(ctx)
	var ended sync.WaitGroup
	ended.Go(func() { _ = log.Run(following) }) // without it, the backup has a gap
	defer ended.Wait()
	defer stop()
	return opened.Backup(ctx, w, log)
}
