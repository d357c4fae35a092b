package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// simulation holds the flags of simulate.
type simulation struct {
	file     string
	without  []string
	taints   []string
	output   *outputFormat
	exitCode bool
}

func (s *session) simulateCommand() *cobra.Command {
	var o simulation
	cmd := &cobra.Command{
		Use: "simulate [FILE]", Short: "Show which decisions would change, or decide for a fleet in a file", Args: cobra.MaximumNArgs(1),
		Long: `With flags, ask the server which decisions would change, without changing anything. With
FILE, make the decisions for the fleet in it without a server, and print them with their
explanations as JSON. "-" is standard input.

A file has the format of POST /v1/simulations, in YAML or JSON:

  objects:
    - kind: cluster
      metadata: {name: eu-3, labels: {region: eu}}
  delete:
    - {kind: cluster, name: eu-1}`,
		Example: `  PROGRAM simulate --without eu-1
  PROGRAM simulate --taint eu-1=maintenance:NoSelect
  PROGRAM simulate -f change.yaml --exit-code
  PROGRAM simulate fleet.yaml`,
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return s.simulate(cmd.Context(), o)
			}
			if cmd.Flags().NFlag() > 0 {
				return usage("%q: a file that is decided without a server goes with no flags: to ask the server about it, give --file %s", args[0], args[0])
			}
			return s.SimulateFile(cmd.Context(), args[0])
		},
	}
	o.output = defineOutput(cmd, "json and yaml show the whole result", outputTable, outputJSON, outputYAML)
	flags := cmd.Flags()
	flags.StringVarP(&o.file, "file", "f", "", "file with changes of what the server has, - for standard input")
	flags.StringSliceVar(&o.without, "without", nil, "clusters that are gone")
	flags.StringSliceVar(&o.taints, "taint", nil, "taints that clusters have in addition: CLUSTER=KEY[=VALUE]:EFFECT")
	flags.BoolVar(&o.exitCode, "exit-code", false, fmt.Sprintf("exit with %d if decisions would change", exitChanges))
	return cmd
}

func (s *session) simulate(ctx context.Context, o simulation) error {
	if o.file == "" && len(o.without) == 0 && len(o.taints) == 0 {
		return usage("nothing to simulate: give --file, --without or --taint, or a FILE to decide without a server")
	}
	server, err := s.connect(ctx)
	if err != nil {
		return err
	}
	var request api.Simulation
	if o.file != "" {
		if err := ReadFile(o.file, s.Stdin, &request); err != nil {
			return usage("--file: %w", err)
		}
	}
	for _, name := range o.without {
		request.Delete = append(request.Delete, api.Key{Kind: api.KindCluster, Name: name})
	}
	tainted := map[string][]api.Taint{}
	for _, text := range o.taints {
		name, rest, ok := strings.Cut(text, "=")
		if !ok {
			return usage("--taint: %q is not CLUSTER=KEY[=VALUE]:EFFECT", text)
		}
		taint, err := parseTaint(rest)
		if err != nil {
			return err
		}
		tainted[name] = append(tainted[name], taint)
	}
	for _, name := range slices.Sorted(maps.Keys(tainted)) {
		cluster, err := getCluster(ctx, server, name)
		if err != nil {
			return err
		}
		for _, taint := range tainted[name] {
			addTaint(cluster, taint)
		}
		if err := addObject(&request, cluster); err != nil {
			return err
		}
	}
	result, err := server.Simulate(ctx, request)
	if err != nil {
		return err
	}
	return s.printSimulation(result, o.output.value, o.exitCode)
}

// printSimulation prints what a simulation would change.
func (s *session) printSimulation(result *api.SimulationResult, output string, exitCode bool) error {
	if output != outputTable {
		if err := printDocument(s.Stdout, output, result, false); err != nil {
			return err
		}
	} else if err := s.printChanges(result); err != nil {
		return err
	}
	if exitCode && len(result.Changes) > 0 {
		return &changesError{len(result.Changes)}
	}
	return nil
}

// printChanges prints the decisions that would differ, with the reason.
func (s *session) printChanges(result *api.SimulationResult) error {
	if len(result.Changes) == 0 {
		_, err := fmt.Fprintln(s.Stdout, "no decision would change")
		return err
	}
	why := map[api.Key]string{}
	for _, x := range result.Explanations {
		why[api.Key{Kind: x.Kind, Namespace: x.Namespace, Name: x.Name}] = x.Summary
	}
	t := table{header: []string{"OBJECT", "FROM", "TO", "WHY"}}
	for _, c := range result.Changes {
		t.add(c.String(), placed(c.From, c.FromReplicas), placed(c.To, c.ToReplicas), why[c.Key])
	}
	return t.print(s.Environment, s.Stdout)
}

// placed formats the clusters of a decision, with replicas if there are any.
func placed(clusters []string, replicas map[string]int64) string {
	if len(clusters) == 0 {
		return "none"
	}
	out := slices.Clone(clusters)
	for i, name := range out {
		if n, ok := replicas[name]; ok {
			out[i] = name + "=" + strconv.FormatInt(n, 10)
		}
	}
	return strings.Join(out, ",")
}

// addObject adds an object to a simulation, as it would be written.
func addObject(request *api.Simulation, object api.Object) error {
	document, err := json.Marshal(object)
	if err != nil {
		return err
	}
	request.Objects = append(request.Objects, document)
	return nil
}

// getCluster reads a cluster.
func getCluster(ctx context.Context, server *client.Client, name string) (*api.Cluster, error) {
	object, err := server.Get(ctx, api.Key{Kind: api.KindCluster, Name: name})
	if err != nil {
		return nil, err
	}
	cluster, ok := object.(*api.Cluster)
	if !ok {
		return nil, fmt.Errorf("the server sent a %s in place of cluster %q", object.ObjectKind(), name)
	}
	return cluster, nil
}
