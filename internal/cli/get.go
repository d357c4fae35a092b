package cli

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
)

// getOptions are the flags of get.
type getOptions struct {
	output     *outputFormat
	selector   string
	field      string
	everywhere bool
	watch      bool
}

func (s *session) getCommand() *cobra.Command {
	var o getOptions
	cmd := &cobra.Command{
		Use: "get KIND [NAME...]", Short: "List objects, or show some of them", Args: cobra.MinimumNArgs(1),
		Long: `List objects, or show some of them. Lists of kinds that are global or namespaced
contain the global objects too.

--field selects by the values of fields, named as -o json shows them. A field in a list
has the values of all elements (status.clusters=eu-1), and the type of a condition
stands for its status (status.conditions.Ready=False).

The kinds, which may be in the plural, and their short forms:

` + kindList(),
		Example: `  PROGRAM get clusters -l region=eu
  PROGRAM get clusters --field status.state!=online
  PROGRAM get placement web -o yaml
  PROGRAM get placements --all-namespaces --watch`,
		ValidArgsFunction: s.completeObjects(anyKind),
		RunE:              func(cmd *cobra.Command, args []string) error { return s.get(cmd.Context(), o, args) },
	}
	o.output = defineOutput(cmd, "", outputTable, outputWide, outputJSON, outputYAML, outputName, outputJSONPath)
	flags := cmd.Flags()
	flags.StringVarP(&o.selector, "selector", "l", "", "label selector, such as env=prod,tier!=db")
	flags.StringVar(&o.field, "field", "", "field selector, such as spec.region=eu,status.conditions.Ready=False")
	flags.BoolVarP(&o.everywhere, "all-namespaces", "A", false, "show the objects of all namespaces")
	flags.BoolVarP(&o.watch, "watch", "w", false, "then show each change, until interrupted")
	return cmd
}

func (s *session) get(ctx context.Context, o getOptions, args []string) error {
	info, err := parseKind(args[0])
	if err != nil {
		return err
	}
	if len(args) > 1 && (o.selector != "" || o.field != "" || o.everywhere) {
		return usage("--selector, --field and --all-namespaces list objects: they cannot be combined with names")
	}
	server, err := s.connect(ctx)
	if err != nil {
		return err
	}
	keys, err := parseKeys(info, args[1:], s.connection.namespace())
	if err != nil {
		return err
	}
	p := &printer{
		env: s.Environment, output: o.output.value, single: len(keys) == 1 && !o.watch,
		columns: tableOf(info, o.everywhere || len(keys) > 0, o.output.value == outputWide),
	}
	f := &following{
		server: server, kinds: []api.KindInfo{info}, keys: keys, namespace: s.namespaceOfList(info, o.everywhere),
		labels: o.selector, fields: o.field, stderr: s.Stderr, program: s.Program,
	}
	if err := f.list(ctx, func(object api.Object) { p.add(object, "") }); err != nil {
		if len(p.added) > 0 { // those before the one that is missing
			err = errors.Join(p.flush(), err)
		}
		return err
	}
	if len(p.added) == 0 && p.columnar() {
		none := "there are no " + info.Collection
		if f.namespace != "" {
			none += " in namespace " + strconv.Quote(f.namespace)
		}
		if o.selector != "" || o.field != "" {
			none += " that match"
		}
		fmt.Fprintln(s.Stderr, none)
		if !o.watch {
			return nil
		}
	}
	if err := p.flush(); err != nil || !o.watch {
		return err
	}
	return f.follow(ctx, func(e api.Event) error {
		p.add(e.Object, e.Type)
		return p.flush()
	})
}

// namespaceOfList returns the namespace that a list is limited to, "" if it is not limited.
func (s *session) namespaceOfList(info api.KindInfo, everywhere bool) string {
	switch {
	case everywhere || info.Scope == api.Global || info.Scope == api.OfCluster:
		return ""
	case info.Scope == api.GlobalOrNamespaced:
		return s.connection.used.Namespace
	}
	return s.connection.namespace()
}
