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
	var member store.EtcdMember
	cmd := &cobra.Command{
		Use:   "restore FILE",
		Short: "Create a data directory from a backup",
		Long: `Create a data directory from a file that "scheduler-server backup" wrote, or from
standard input ("-"). The directory must not exist, or be empty, or contain only the key
file (seal.key) that belongs to the backup.

With --etcd-initial-cluster and --etcd-name, create the data directory of one member of
an external etcd cluster instead. Run the command for every member, with the same file
and the same list, and start etcd with the same values: etcd --data-dir DIR --name NAME
--initial-cluster LIST --initial-advertise-peer-urls URL. Then start the servers with
--etcd-endpoints and the --key-file of the server that the backup is from. etcd must be
version 3.7 or later.`,
		Args: cobra.ExactArgs(1),
	}
	cmd.Flags().StringVar(&dataDir, "data-dir", "", "directory to create")
	cmd.Flags().StringVar(&member.Name, "etcd-name", "", "name of the etcd member, as in etcd-initial-cluster")
	cmd.Flags().StringVar(&member.InitialCluster, "etcd-initial-cluster", "", "all members of the etcd cluster: name=https://host:2380,...")
	cmd.Flags().StringVar(&member.Token, "etcd-initial-cluster-token", "", "tells the etcd cluster from others; needed only to restore a backup a second time for members at the same addresses (default: derived from the backup)")
	readVariables(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) (err error) {
		if dataDir == "" {
			return errors.New("data-dir: is required")
		}
		external := member != store.EtcdMember{}
		switch {
		case external && member.Name == "":
			return errors.New("etcd-name: is required with etcd-initial-cluster")
		case external && member.InitialCluster == "":
			return errors.New("etcd-initial-cluster: is required with etcd-name and etcd-initial-cluster-token")
		case !external:
			if err := checkEmpty(dataDir); err != nil {
				return err
			}
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
		if external {
			err = store.RestoreEtcd(cmd.Context(), from, dataDir, member)
		} else {
			err = store.Restore(cmd.Context(), from, dataDir)
		}
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(cmd.OutOrStdout(), "restored into %s\n", dataDir)
		return err
	}
	return cmd
}

// checkEmpty rejects a directory that contains anything that a backup does not replace.
func checkEmpty(dataDir string) error {
	name, err := storedIn(dataDir)
	if err == nil && name != "" {
		err = fmt.Errorf("data-dir: %s is not empty, it holds %s: restore into an empty directory, or move the old data away first", dataDir, name)
	}
	return err
}

// storedIn returns the name of something in a data directory that belongs to a store, or "".
func storedIn(dataDir string) (string, error) {
	entries, err := os.ReadDir(dataDir)
	if errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", fmt.Errorf("data-dir: %w", err)
	}
	for _, entry := range entries {
		// The lock file and the reserve are left behind by every server.
		if name := entry.Name(); name != "seal.key" && name != "LOCK" && name != "RESERVE" {
			return name, nil
		}
	}
	return "", nil
}
