package serve

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"time"
)

// idleTimeout is how long a connection may wait for its next request.
const idleTimeout = 2 * time.Minute

// Options configures Run. Name, Listener, Handler, Connections and Logger are required.
type Options struct {
	// Name is used in metrics and errors.
	Name string
	// Listener is where clients connect. Run closes it.
	Listener net.Listener
	Handler  http.Handler
	// TLS is nil for plain HTTP.
	TLS *tls.Config
	// Connections limits the open connections.
	Connections *Limit
	// HeaderTimeout limits reading the header of a request, and the TLS handshake.
	HeaderTimeout time.Duration
	// ReadTimeout and WriteTimeout limit requests and responses. If zero, the handler must limit
	// them.
	ReadTimeout, WriteTimeout time.Duration
	MaxHeaderBytes            int
	// DrainTime is how long running requests may continue after ctx is done.
	DrainTime time.Duration
	// Stopping is called when ctx is done, before waiting for requests. It should wake those that
	// wait. It may be nil.
	Stopping func()
	Logger   *slog.Logger
}

// Run serves until ctx is done, and then gives running requests DrainTime to finish.
func Run(ctx context.Context, o Options) error {
	defer o.Listener.Close() // already closed, unless serving fails
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	server := &http.Server{
		Handler:           o.Handler,
		BaseContext:       func(net.Listener) context.Context { return base },
		ReadHeaderTimeout: o.HeaderTimeout, // net/http also applies it to the TLS handshake
		ReadTimeout:       o.ReadTimeout,
		WriteTimeout:      o.WriteTimeout,
		IdleTimeout:       idleTimeout,
		MaxHeaderBytes:    o.MaxHeaderBytes,
		ErrorLog:          slog.NewLogLogger(o.Logger.Handler(), slog.LevelDebug),
	}
	o.Connections.Watch(server)
	listener := o.Connections.Listen(o.Name, o.Listener, o.TLS != nil)
	serve := server.Serve
	if o.TLS != nil {
		server.TLSConfig = o.TLS.Clone()
		server.TLSConfig.MinVersion = max(server.TLSConfig.MinVersion, tls.VersionTLS12)
		serve = func(l net.Listener) error { return server.ServeTLS(l, "", "") }
	}
	served := make(chan error, 1)
	go func() { served <- serve(listener) }()
	select {
	case err := <-served:
		return fmt.Errorf("serve the %s: %w", o.Name, err)
	case <-ctx.Done():
	}
	if o.Stopping != nil {
		o.Stopping()
	}
	draining, cancelDrain := context.WithTimeout(context.WithoutCancel(ctx), o.DrainTime)
	defer cancelDrain()
	err := server.Shutdown(draining)
	if err != nil {
		o.Logger.Warn("requests were aborted: they did not finish in time", "listener", o.Name, "drain_time", o.DrainTime)
		cancel()
		err = server.Close()
	}
	if ended := <-served; !errors.Is(ended, http.ErrServerClosed) {
		err = errors.Join(err, fmt.Errorf("serve the %s: %w", o.Name, ended))
	}
	return err
}
