package main

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

const tokensPath = "/v1/tokens"

func newTokenCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Manage API tokens",
		Long: `Manage API tokens. The commands use a running server, or the data directory of a
stopped one. Once there is a token, every request needs one: so the first one must
have the role admin.`,
		Args: cobra.NoArgs,
	}
	cmd.AddCommand(newTokenCreateCommand(), newTokenListCommand(), newTokenRevokeCommand())
	return cmd
}

// tokens are the operations on tokens, for a running or stopped server.
type tokens interface {
	create(ctx context.Context, request auth.TokenRequest) (text string, err error)
	list(ctx context.Context) ([]auth.Token, error)
	revoke(ctx context.Context, id string) error
}

// tokenCommand adds the flags that address the server to a command.
func tokenCommand(cmd *cobra.Command, mayMake bool, do func(cmd *cobra.Command, at tokens, args []string) error) *cobra.Command {
	at := remote{mayMake: mayMake}
	at.define(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error {
		return at.act(cmd,
			func(server *client.Client) error { return do(cmd, remoteTokens{server}, args) },
			func(opened *store.Store) error { return do(cmd, storedTokens{opened}, args) })
	}
	return cmd
}

func newTokenCreateCommand() *cobra.Command {
	var request auth.TokenRequest
	var role string
	var expiresIn time.Duration
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it",
		Long:  "Create a token and print it. It cannot be shown again: the server stores only a hash.",
		Args:  cobra.NoArgs,
	}
	cmd.Flags().StringVar(&role, "role", "", "admin, editor, viewer, agent for heartbeats, capacity of clouds, health reports and placement scores, or a role of the configuration of a running server")
	cmd.Flags().StringSliceVar(&request.Namespaces, "namespaces", nil, "namespaces to limit the token to (default all)")
	cmd.Flags().StringVar(&request.Description, "description", "", "what the token is for")
	cmd.Flags().DurationVar(&expiresIn, "expires-in", 0, "how long the token is valid (default without limit)")
	return tokenCommand(cmd, true, func(cmd *cobra.Command, at tokens, _ []string) error {
		request.Role = auth.Role(role)
		if expiresIn != 0 {
			at := time.Now().Add(expiresIn).UTC()
			request.ExpiresAt = &at
		}
		text, err := at.create(cmd.Context(), request)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintln(cmd.OutOrStdout(), termtext.Text(text))
		return err
	})
}

func newTokenListCommand() *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{Use: "list", Short: "List the tokens, without their secrets", Args: cobra.NoArgs}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return tokenCommand(cmd, false, func(cmd *cobra.Command, at tokens, _ []string) error {
		list, err := at.list(cmd.Context())
		if err != nil {
			return err
		}
		if asJSON {
			return printJSON(cmd.OutOrStdout(), list)
		}
		return printTokens(cmd.OutOrStdout(), list)
	})
}

func newTokenRevokeCommand() *cobra.Command {
	cmd := &cobra.Command{Use: "revoke ID", Short: "Revoke a token; it stops working at once", Args: cobra.ExactArgs(1)}
	return tokenCommand(cmd, false, func(cmd *cobra.Command, at tokens, args []string) error {
		// Users often have only the complete text of a token.
		id, _, _ := strings.Cut(args[0], ".")
		return at.revoke(cmd.Context(), id)
	})
}

func printTokens(w io.Writer, list []auth.Token) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(table, "ID\tROLE\tNAMESPACES\tCREATED\tEXPIRES\tDESCRIPTION")
	for _, token := range list {
		expires := "never"
		if token.ExpiresAt != nil {
			expires = token.ExpiresAt.UTC().Format(time.RFC3339)
		}
		cells := []string{
			token.ID, string(token.Role), cmp.Or(strings.Join(token.Namespaces, ","), "all"),
			token.CreatedAt.UTC().Format(time.RFC3339), expires, token.Description,
		}
		for i := range cells {
			cells[i] = termtext.Text(cells[i])
		}
		fmt.Fprintln(table, strings.Join(cells, "\t"))
	}
	return table.Flush()
}

func printJSON(w io.Writer, value any) error {
	document, err := termtext.Encode(value)
	if err != nil {
		return err
	}
	_, err = w.Write(document)
	return err
}

// remoteTokens are the tokens of a running server.
type remoteTokens struct{ server *client.Client }

func (r remoteTokens) create(ctx context.Context, request auth.TokenRequest) (string, error) {
	var created struct {
		Token string `json:"token"`
	}
	err := r.server.Call(ctx, http.MethodPost, tokensPath, request, &created)
	return created.Token, err
}

func (r remoteTokens) list(ctx context.Context) ([]auth.Token, error) {
	var list struct {
		Items []auth.Token `json:"items"`
	}
	err := r.server.Call(ctx, http.MethodGet, tokensPath, nil, &list)
	return list.Items, err
}

func (r remoteTokens) revoke(ctx context.Context, id string) error {
	return r.server.Call(ctx, http.MethodDelete, tokensPath+"/"+id, nil, nil)
}

// storedTokens are the tokens in the data directory of a stopped server.
type storedTokens struct{ store auth.TokenStore }

func (s storedTokens) create(ctx context.Context, request auth.TokenRequest) (string, error) {
	now := time.Now()
	if err := auth.KeepsAdministrator(ctx, s.store, request, auth.Roles{}, now); err != nil {
		return "", err
	}
	text, _, _, err := auth.CreateToken(ctx, s.store, request, auth.Roles{}, now)
	return text, err
}

func (s storedTokens) list(ctx context.Context) ([]auth.Token, error) {
	list, err := auth.ListTokens(ctx, s.store)
	for i := range list {
		list[i].Hash = nil
	}
	return list, err
}

func (s storedTokens) revoke(ctx context.Context, id string) error {
	_, err := auth.RevokeToken(ctx, s.store, id)
	return err
}
