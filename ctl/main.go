// Command schedulerctl is the command line of the scheduling server for people; see internal/cli.
package main

import (
	"context"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/cli"
	"github.com/scheduler/terraform-provider-scheduler/internal/tracing"
)

// version is set when a release is built.
var version = "dev"

func main() { os.Exit(run()) }

func run() int {
	ctx, release := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer release()
	context.AfterFunc(ctx, release) // a second signal has its default effect
	configFile := ""
	if directory, err := os.UserConfigDir(); err == nil {
		configFile = filepath.Join(directory, "schedulerctl", "config.yaml")
	}
	return cli.Run(tracing.FromEnvironment(ctx, os.Getenv), cli.Environment{
		Version: version, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv,
		ConfigFile: configFile, Now: time.Now,
	}, os.Args[1:])
}
