package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"

	"github.com/coreos/go-systemd/v22/daemon"
	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/auth"
)

func newServeCommand() *cobra.Command {
	var c config
	cmd := &cobra.Command{
		Use:   "serve",
		Short: "Run the server",
		Long: `Run the server. When it is ready, it prints one line with its address.

Every flag can also be set as an environment variable or a configuration file key:
--data-dir is SCHEDULER_DATA_DIR and data_dir. Flags take precedence
over variables, and variables over the file.

As long as there are no tokens, a server on a loopback address accepts all requests.
Once there is a token, every request needs one. On any other address, the server
starts only with TLS and at least one token, or with --insecure.`,
		Args: cobra.NoArgs,
	}
	c.define(cmd.Flags())
	nameVariables(cmd.Flags())
	cmd.RunE = func(cmd *cobra.Command, _ []string) error {
		if err := c.load(cmd.Flags(), os.Getenv); err != nil {
			return err
		}
		logger, level, err := newLogger(c, cmd.ErrOrStderr())
		if err != nil {
			return err
		}
		stopReload := reloadOnHangup(cmd.Context(), cmd.Flags(), os.Getenv, level, logger)
		defer stopReload()
		return run(cmd.Context(), c, logger, cmd.OutOrStdout())
	}
	return cmd
}

// run runs a server: it opens the store, connects the parts, works until ctx is done, and closes.
func run(ctx context.Context, c config, logger *slog.Logger, stdout io.Writer) (err error) {
	logger.Info("the server is starting", "version", version, "pid", os.Getpid())
	starting := beginStarting(logger)
	defer starting.end()
	s, err := openServer(ctx, c, logger, stdout, starting)
	if err != nil {
		return err
	}
	defer s.closeInto(&err) //nolint:contextcheck // what is left of the traces is sent after ctx is done
	components := append(s.components(), component{"announce", func(ctx context.Context) error {
		return s.announce(ctx, stdout)
	}})
	if err := runInOrder(ctx, components); err != nil {
		return err
	}
	logger.Info("the server has stopped")
	return nil
}

// announce prints the line that says where the server is ready.
func (s *server) announce(ctx context.Context, stdout io.Writer) error {
	for _, phase := range []struct {
		doing string
		done  <-chan struct{}
	}{
		{"loading the objects", s.fleet.Ready()},
		{"deciding for the first time", s.decider.Ready()},
		{"waiting for a server to lead", s.leading.led},
	} {
		s.starting.doing(phase.doing)
		select {
		case <-phase.done:
		case <-ctx.Done():
			return nil
		}
	}
	select {
	case <-s.api.Listening():
		s.starting.end()
		scheme := "http"
		if s.config.tls() {
			scheme = "https"
		}
		if _, err := fmt.Fprintf(stdout, "scheduler-server ready at %s://%s\n", scheme, s.listener.Addr()); err != nil {
			return fmt.Errorf("announce that the server is ready: %w", err)
		}
		s.logger.Info("the server is ready", "address", s.listener.Addr().String(), "revision", s.fleet.Snapshot().Revision())
		notifySystemd(s.logger, daemon.SdNotifyReady, "STATUS=ready")
	case <-ctx.Done():
	}
	<-ctx.Done()
	// Requests may take longer than the unit knows, if drain-time is changed.
	notifySystemd(s.logger, daemon.SdNotifyStopping, "STATUS=stopping", extendTimeout(s.config.DrainTime+stopTime))
	return nil
}

// checkExposure rejects an address that is reachable from other machines without requiring a token.
func checkExposure(ctx context.Context, c config, tokens auth.TokenStore, logger *slog.Logger) error {
	if c.loopback() {
		return nil
	}
	list, err := auth.ListTokens(ctx, tokens)
	if err != nil {
		return err
	}
	switch {
	case (len(list) > 0 || len(c.Auth.JWT) > 0) && c.tls():
	case !c.Insecure:
		return fmt.Errorf("listen: %s is not a loopback address and there is no token yet: create one with \"scheduler-server token create --data-dir %s --role admin\", or start with --insecure", c.Listen, c.DataDir)
	default:
		logger.Warn("the server is insecure: anyone who can reach its address can read and write", "listen", c.Listen, "tls", c.tls(), "tokens", len(list))
	}
	return nil
}

func listen(ctx context.Context, address string) (net.Listener, error) {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", address)
	if err != nil {
		return nil, fmt.Errorf("listen: %w", err)
	}
	return listener, nil
}
