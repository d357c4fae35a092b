package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/pflag"
)

// reloadOnHangup reloads the log level at each SIGHUP; certificates are reloaded whenever they
// change. An invalid configuration changes nothing. The returned function stops it.
func reloadOnHangup(ctx context.Context, given *pflag.FlagSet, getenv func(string) string, level *slog.LevelVar, logger *slog.Logger) func() {
	hangups := make(chan os.Signal, 1)
	signal.Notify(hangups, syscall.SIGHUP)
	ctx, stop := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			select {
			case <-ctx.Done():
				return
			case <-hangups:
				reload(given, getenv, level, logger)
			}
		}
	}()
	return func() {
		signal.Stop(hangups)
		stop()
		<-done
	}
}

func reload(given *pflag.FlagSet, getenv func(string) string, level *slog.LevelVar, logger *slog.Logger) {
	c, err := loadAgain(given, getenv)
	if err != nil {
		logger.Error("the configuration was not reloaded; the previous one stays in use", "error", err)
		return
	}
	parsed, err := parseLevel(c.LogLevel)
	if err != nil {
		logger.Error("the configuration was not reloaded; the previous one stays in use", "error", err)
		return
	}
	level.Set(parsed)
	logger.Info("the configuration was reloaded; settings other than the log level require a restart", "log_level", c.LogLevel)
}

// loadAgain loads the configuration again with the same command line.
func loadAgain(given *pflag.FlagSet, getenv func(string) string) (*config, error) {
	c := &config{}
	flags := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	c.define(flags)
	var err error
	given.Visit(func(f *pflag.Flag) {
		target := flags.Lookup(f.Name)
		if target == nil || err != nil {
			return
		}
		target.Changed = true
		if list, ok := f.Value.(pflag.SliceValue); ok {
			if to, ok := target.Value.(pflag.SliceValue); ok {
				err = to.Replace(list.GetSlice())
				return
			}
		}
		err = target.Value.Set(f.Value.String())
	})
	if err != nil {
		return nil, err
	}
	return c, c.load(flags, getenv)
}
