package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/store"
)

// remote says where the administrative commands find the server: a running one is addressed like by
// the provider; for a stopped one, the data directory is opened.
type remote struct {
	DataDir        string
	Endpoints      []string
	Token          string
	CACertFile     string
	ClientCertFile string
	ClientKeyFile  string

	// mayMake allows creating a missing data directory.
	mayMake bool
}

// define adds the flags that address a running or stopped server to a command.
func (r *remote) define(cmd *cobra.Command) {
	cmd.Flags().StringVar(&r.DataDir, "data-dir", "", "data directory of a stopped server, instead of a running one")
	r.defineServer(cmd)
}

// defineServer is define for a running server only.
func (r *remote) defineServer(cmd *cobra.Command) {
	flags := cmd.Flags()
	defineEndpoints(flags, &r.Endpoints, "endpoint", "address of a running server")
	// The provider's variable for several servers has the same meaning here.
	alsoNamed(flags, "endpoint", "SCHEDULER_ENDPOINTS")
	flags.StringVar(&r.Token, "token", "", "admin token; set the environment variable instead to keep it out of the process list")
	flags.StringVar(&r.CACertFile, "ca-cert-file", "", "PEM certificates that the server's certificate must chain to")
	flags.StringVar(&r.ClientCertFile, "client-cert-file", "", "PEM client certificate for the server")
	flags.StringVar(&r.ClientKeyFile, "client-key-file", "", "PEM key of client-cert-file")
	readVariables(cmd)
}

// act uses the API of a running server, or the store of a stopped one.
func (r *remote) act(cmd *cobra.Command, running func(*client.Client) error, stopped func(*store.Store) error) (err error) {
	if r.DataDir == "" {
		return r.ask(running)
	}
	opened, err := r.open(cmd.Context(), cmd.ErrOrStderr())
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, opened.Close()) }()
	return stopped(opened)
}

// ask uses the API of a running server.
func (r *remote) ask(do func(*client.Client) error) error {
	server, err := client.New(client.Options{
		Endpoints: trimmed(r.Endpoints), Token: api.NewSecret(r.Token), CACertFile: r.CACertFile,
		ClientCertFile: r.ClientCertFile, ClientKeyFile: r.ClientKeyFile, UserAgent: "scheduler-server/" + version,
	})
	if err != nil {
		return err
	}
	defer server.Close()
	return do(server)
}

// defineEndpoints adds a flag for the address of a server, or of several on one store.
func defineEndpoints(flags *pflag.FlagSet, endpoints *[]string, name, usage string) {
	flags.StringSliceVar(endpoints, name, nil, usage+"; for several servers that share a store, separate addresses by commas or repeat the flag, and the next one is used if one fails (default "+client.DefaultEndpoint+")")
}

// trimmed trims whitespace around comma-separated endpoints.
func trimmed(endpoints []string) []string {
	out := make([]string, len(endpoints))
	for i, text := range endpoints {
		out[i] = strings.TrimSpace(text)
	}
	return out
}

// open opens the store of the stopped server. Unless mayMake is set, it must exist: a misspelled
// directory must not become an empty store.
func (r *remote) open(ctx context.Context, stderr io.Writer) (*store.Store, error) {
	if _, err := os.Stat(r.DataDir); err != nil && !r.mayMake {
		return nil, fmt.Errorf("data-dir: %w", err)
	}
	logger := slog.New(slog.NewTextHandler(stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	opened, err := store.Open(ctx, store.Options{DataDir: r.DataDir, HistoryBytes: store.DefaultHistoryBytes, Logger: logger})
	if locked, ok := errors.AsType[*store.LockedError](err); ok {
		return nil, fmt.Errorf("%w; to use the running server, give --endpoint instead of --data-dir", locked)
	}
	return opened, err
}
