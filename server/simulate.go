package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/cli"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
)

// simulateFile makes the decisions for the fleet in a file, without a server, and prints them with their
// explanations.
func simulateFile(ctx context.Context, path string, stdin io.Reader, stdout io.Writer) error {
	var request api.Simulation
	if err := cli.ReadFile(path, stdin, &request); err != nil {
		return err
	}
	result, err := reconcile.SimulateFile(ctx, request, signal.ReadConstant, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return printJSON(stdout, result)
}
