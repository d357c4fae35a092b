package main

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

const membersPath = "/v1/members"

func newMembersCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "members",
		Short: "Manage which servers form the cluster of embedded stores",
		Long: `Manage which servers form the cluster of embedded stores (serve --cluster-peers). The
commands call a running server of the cluster.

To replace a server whose data is lost, remove it, add it, and start it with an empty
data directory.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newMembersListCommand(), newMembersAddCommand(), newMembersRemoveCommand())
	return cmd
}

// memberCommand adds the flags that address a running server to a command.
func memberCommand(cmd *cobra.Command, do func(cmd *cobra.Command, server *client.Client, args []string) error) *cobra.Command {
	var at remote
	at.defineServer(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return at.ask(func(server *client.Client) error { return do(cmd, server, args) })
	}
	return cmd
}

func newMembersListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List the members", Args: cobra.NoArgs}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return memberCommand(cmd, func(cmd *cobra.Command, server *client.Client, _ []string) error {
		var list api.MemberList
		if err := server.Call(cmd.Context(), http.MethodGet, membersPath, nil, &list); err != nil {
			return err
		}
		if asJSON {
			return printJSON(cmd.OutOrStdout(), list.Items)
		}
		return printMembers(cmd.OutOrStdout(), list.Items)
	})
}

func printMembers(w io.Writer, list []api.StoreMember) error {
	if len(list) == 0 {
		_, err := fmt.Fprintln(w, "the store of this server is not part of a cluster")
		return err
	}
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tNAME\tURL\tSTATE")
	for _, m := range list {
		state := "votes"
		switch {
		case m.Leader:
			state = "leads"
		case !m.Joined:
			state = "not started yet"
		case !m.Voter:
			state = "catches up"
		}
		fmt.Fprintln(table, strings.Join([]string{m.ID, termtext.Text(m.Name), termtext.Text(m.URL), state}, "\t"))
	}
	return table.Flush()
}

func newMembersAddCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "add NAME=URL",
		Short: "Add a member, and print how to start its server",
		Long: `Add a member at an address at which the others reach it, such as
c=https://c.example.com:8666, and print how to start its server. It gets a vote when
it has caught up.`,
		Args: cobra.ExactArgs(1),
	}
	return memberCommand(cmd, func(cmd *cobra.Command, server *client.Client, args []string) error {
		name, address, ok := strings.Cut(args[0], "=")
		if !ok {
			return fmt.Errorf("%q is not of the form name=https://host:port", args[0])
		}
		var added api.AddedMember
		if err := server.Call(cmd.Context(), http.MethodPost, membersPath, api.MemberRequest{Name: name, URL: address}, &added); err != nil {
			return err
		}
		files := ""
		if strings.HasPrefix(added.URL, "https:") {
			files = " \\\n  --cluster-ca-file FILE --cluster-cert-file FILE --cluster-key-file FILE"
		}
		_, err := fmt.Fprintf(cmd.OutOrStdout(), `%s is added. Start its server with an empty data directory, and with a copy of the key
file of the others:

scheduler-server serve --name %s --cluster-join --data-dir DIR --key-file FILE \
  --cluster-peers %s%s
`, termtext.Text(added.Name), termtext.Text(added.Name), termtext.Text(added.ClusterPeers), files)
		return err
	})
}

func newMembersRemoveCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use: "remove NAME", Short: "Remove a member, by its name or ID; its server ends if it runs", Args: cobra.ExactArgs(1),
	}
	return memberCommand(cmd, func(cmd *cobra.Command, server *client.Client, args []string) error {
		return server.Call(cmd.Context(), http.MethodDelete, membersPath+"/"+url.PathEscape(args[0]), nil, nil)
	})
}
