package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/http/pprof"
	"time"
)

// serveProfiles serves pprof on a separate address, for users with access to this machine.
func (s *server) serveProfiles(ctx context.Context) error {
	listener, err := listen(ctx, s.config.DebugListen)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	profiles := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	s.connections.Watch(profiles)
	stop := context.AfterFunc(ctx, func() { _ = profiles.Close() }) // running profiles are no longer needed
	defer stop()
	s.logger.Info("serving profiles", "address", listener.Addr().String())
	if err := profiles.Serve(s.connections.Listen("debug", listener, false)); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serve profiles: %w", err)
	}
	return nil
}
