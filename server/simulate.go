package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"time"

	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
)

// simulateFile makes the decisions for the fleet in a file, without a server, and prints them with their
// explanations.
func simulateFile(ctx context.Context, path string, stdin io.Reader, stdout io.Writer) error {
	read := func() ([]byte, error) { return os.ReadFile(path) }
	if path == "-" {
		read = func() ([]byte, error) { return io.ReadAll(stdin) }
	}
	text, err := read()
	if err != nil {
		return err
	}
	data, err := yaml.YAMLToJSONStrict(text)
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	var request api.Simulation
	if err := api.DecodeInto(data, &request); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	result, err := reconcile.SimulateFile(ctx, request, signal.ReadConstant, time.Now())
	if err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	return printJSON(stdout, result)
}
