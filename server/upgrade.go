package main

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
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
	at.define(cmd)
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		var info *api.StoreInfo
		err := at.act(cmd,
			func(server *client.Client) (err error) {
				info, err = server.FinishUpgrade(cmd.Context())
				return err
			},
			func(opened *store.Store) error {
				err := opened.FinishUpgrade(cmd.Context())
				finished := opened.Info()
				info = &finished
				return err
			})
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "the store is written in format %d\n", info.Format)
		return err
	}
	return cmd
}
