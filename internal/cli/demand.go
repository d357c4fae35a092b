package cli

import (
	"context"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/printable"
)

func (s *session) demandCommand() *cobra.Command {
	var everywhere bool
	var output *outputFormat
	cmd := &cobra.Command{
		Use: "demand", Short: "List the clusters that would satisfy what is open", Args: cobra.NoArgs,
		Long: `List the clusters that placements and workloads lack, with what each must have, and those
that were made for them.`,
		Example: "  schedulerctl demand --all-namespaces",
		RunE: func(cmd *cobra.Command, _ []string) error {
			return s.demand(cmd.Context(), everywhere, output.value)
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "show what is demanded in all namespaces")
	output = defineOutput(cmd, "", outputTable, outputJSON, outputYAML)
	return cmd
}

func (s *session) demand(ctx context.Context, everywhere bool, output string) error {
	server, err := s.connect(ctx)
	if err != nil {
		return err
	}
	namespace := s.connection.namespace()
	if everywhere {
		namespace = ""
	}
	list, err := server.Demand(ctx, namespace)
	if err != nil {
		return err
	}
	if output != outputTable {
		return printDocument(s.Stdout, output, list, false)
	}
	if len(list.Items)+len(list.Obstructed) == 0 {
		fmt.Fprintln(s.Stderr, "no clusters are missing")
		return nil
	}
	t := table{header: []string{"CLUSTER", "STATE", "FOR", "MUST HAVE"}}
	for i := range list.Items {
		c := &list.Items[i]
		t.add(c.Cluster, string(c.State), string(c.Kind)+" "+c.Of().Path(), strings.Join(c.MustHave(), ", "))
	}
	if err := t.print(s.Stdout); err != nil {
		return err
	}
	for _, o := range list.Obstructed {
		key := api.Key{Kind: o.Kind, Namespace: o.Namespace, Name: o.Name}
		fmt.Fprintf(s.Stdout, "No additional cluster helps %s %s: %s\n", o.Kind, printable.Text(key.Path()), printable.Text(strings.Join(o.Obstacles, "; ")))
	}
	return nil
}
