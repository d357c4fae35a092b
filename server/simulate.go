package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/spf13/cobra"
	"sigs.k8s.io/yaml"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/reconcile"
	"github.com/scheduler/terraform-provider-scheduler/internal/signal"
)

func newSimulateCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "simulate FILE",
		Short: "Run a simulation from a file, without a server",
		Long: `Make the decisions for a fleet in a file, without a server, and print them with
their explanations as JSON. The file has the format of POST /v1/simulations, in JSON
or YAML; "-" is standard input:

  {"objects": [{"kind": "cluster", "metadata": {"name": "berlin"}},
               {"kind": "placement", "metadata": {"name": "web"}}]}`,
		Args: cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			read := func() ([]byte, error) { return os.ReadFile(args[0]) }
			if args[0] == "-" {
				read = func() ([]byte, error) { return io.ReadAll(cmd.InOrStdin()) }
			}
			text, err := read()
			if err != nil {
				return err
			}
			data, err := yaml.YAMLToJSONStrict(text)
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			var request api.Simulation
			if err := api.DecodeInto(data, &request); err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			result, err := reconcile.SimulateFile(cmd.Context(), request, signal.ReadConstant, time.Now())
			if err != nil {
				return fmt.Errorf("%s: %w", args[0], err)
			}
			return printJSON(cmd.OutOrStdout(), result)
		},
	}
}
