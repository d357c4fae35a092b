package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

func newUpgradeCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "upgrade",
		Short: "Finish an upgrade of the servers",
		Args:  cobra.NoArgs,
	}
	cmd.AddCommand(newUpgradeFinishCommand())
	return cmd
}

func newUpgradeFinishCommand() *cobra.Command {
	var at remote
	cmd := &cobra.Command{
		Use:   "finish",
		Short: "Write the store in the newest format from now on",
		Long: `Write the store in the newest format from now on.

After an upgrade the server goes on writing the format that the program before it
reads, so that servers of both work side by side, and each can be exchanged for
the other. That ends when all servers have run the new program for the time of
"serve --upgrade-window", or with this command. Older programs cannot open the
store afterwards; a backup from before can be restored for them.

The command asks a running server, any of several, or opens the data directory of a
stopped one. It changes nothing where a server is up that does not know the newest
format, and names it.`,
		Args: cobra.NoArgs,
	}
	at.define(cmd.Flags())
	nameVariables(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := fill(cmd.Flags(), os.Getenv); err != nil {
			return err
		}
		info, err := at.finishUpgrade(cmd.Context(), cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "the store is written in format %d\n", info.Format)
		return err
	}
	return cmd
}

func (r *remote) finishUpgrade(ctx context.Context, stderr io.Writer) (_ *api.StoreInfo, err error) {
	if r.DataDir == "" {
		server, err := r.connect()
		if err != nil {
			return nil, err
		}
		defer server.Close()
		return server.FinishUpgrade(ctx)
	}
	opened, err := r.open(ctx, stderr, false)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	if err := opened.FinishUpgrade(ctx); err != nil {
		return nil, err
	}
	info := opened.Info()
	return &info, nil
}
