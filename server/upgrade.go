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

After an upgrade, the server keeps writing the format that the previous version can
read, so that servers of both versions can run side by side and replace each other.
This ends when all servers have run the new version for the time in
"serve --upgrade-window", or with this command. Older versions cannot open the store
afterwards; to go back, restore a backup from before.

The command calls a running server, any of several, or opens the data directory of a
stopped one. If a running server cannot read the newest format, the command names it
and changes nothing.`,
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
