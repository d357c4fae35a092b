package cli

import (
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

// Values of --output.
const (
	outputTable = "table"
	outputWide  = "wide"
	outputJSON  = "json"
	outputYAML  = "yaml"
	outputName  = "name"
	// outputJSONPath is followed by a template.
	outputJSONPath = "jsonpath="
)

// outputFormat is the value of --output.
type outputFormat struct {
	value string
	known []string // the first one is the default
}

// defineOutput adds --output with the formats of a command. more is a remark about them.
func defineOutput(cmd *cobra.Command, more string, known ...string) *outputFormat {
	f := &outputFormat{value: known[0], known: known}
	use := "format: " + f.choice()
	if more != "" {
		use += "; " + more
	}
	cmd.Flags().VarP(f, "output", "o", use)
	complete(cmd, "output", cobra.FixedCompletions(known, cobra.ShellCompDirectiveNoFileComp))
	return f
}

func (f *outputFormat) choice() string {
	names := slices.Clone(f.known)
	last := len(names) - 1
	if names[last] == outputJSONPath {
		names[last] += "TEMPLATE"
	}
	return strings.Join(names[:last], ", ") + " or " + names[last]
}

// Set implements pflag.Value.
func (f *outputFormat) Set(value string) error {
	if strings.HasPrefix(value, outputJSONPath) && slices.Contains(f.known, outputJSONPath) {
		if _, err := parseJSONPath(value); err != nil {
			return err
		}
	} else if value == outputJSONPath || !slices.Contains(f.known, value) {
		return fmt.Errorf("it must be %s", f.choice())
	}
	f.value = value
	return nil
}

// String implements pflag.Value.
func (f *outputFormat) String() string { return f.value }

// Type implements pflag.Value.
func (*outputFormat) Type() string { return "format" }

// printer prints objects.
type printer struct {
	env     Environment
	output  string
	columns []column
	// single makes JSON and YAML show the object itself, not a list.
	single bool

	added  []api.Object
	events []api.EventType
	begun  bool
	widths []int // of the columns of a table that continues
}

// add adds an object, or an event about one.
func (p *printer) add(o api.Object, event api.EventType) {
	p.added, p.events = append(p.added, o), append(p.events, event)
}

// columnar reports whether objects are shown in a table.
func (p *printer) columnar() bool { return p.output == outputTable || p.output == outputWide }

// flush prints what was added since it was last called. Lists are one document, and each event is
// one of its own.
func (p *printer) flush() error {
	added, events := p.added, p.events
	p.added, p.events = nil, nil
	first := !p.begun
	p.begun = true
	switch p.output {
	case outputName:
		for _, o := range added {
			key := api.KeyOf(o)
			info, _ := api.LookupKind(key.Kind)
			name := key.Name
			if key.Namespace != "" {
				name = key.Namespace + "/" + name
			}
			if _, err := fmt.Fprintln(p.env.Stdout, singular(info)+" "+termtext.Text(name)); err != nil {
				return err
			}
		}
		return nil
	case outputTable, outputWide:
		return p.table(added, events, first)
	default:
		if first {
			if p.single && len(added) == 1 {
				return p.document(added[0], false)
			}
			return p.document(map[string]any{"items": append([]api.Object{}, added...)}, false)
		}
		for i, o := range added {
			if err := p.document(map[string]any{"type": events[i], "object": o}, true); err != nil {
				return err
			}
		}
		return nil
	}
}

// document prints a value as JSON or YAML, or what a template takes from it. follows says that it is not the first one.
func (p *printer) document(value any, follows bool) error {
	return printDocument(p.env.Stdout, p.output, value, follows)
}

// printDocument prints a value as JSON or YAML, or what a template takes from it. In YAML, a line
// separates it from one that it follows.
func printDocument(w io.Writer, output string, value any, follows bool) error {
	text, err := termtext.Encode(value)
	if err != nil {
		return err
	}
	if strings.HasPrefix(output, outputJSONPath) {
		return printJSONPath(w, output, text)
	}
	if output == outputYAML {
		if text, err = toYAML(text); err != nil {
			return err
		}
		if follows {
			text = append([]byte("---\n"), text...)
		}
	}
	_, err = w.Write(text)
	return err
}

// table prints rows. Those that follow later have the widths of the first ones.
func (p *printer) table(added []api.Object, events []api.EventType, first bool) error {
	t := table{}
	for _, c := range p.columns {
		t.header = append(t.header, c.header)
	}
	for i, o := range added {
		cells := row(p.columns, o, p.env.Now())
		if events[i] == api.EventDelete {
			cells = append(slices.Repeat([]string{""}, len(cells)-1), "deleted")
			for j, c := range p.columns {
				if c.header == "NAMESPACE" || c.header == "CLUSTER" || c.header == "NAME" {
					cells[j] = c.value(o, p.env.Now())
				}
			}
		}
		t.add(cells...)
	}
	t.continues = !first
	p.widths = t.widths(p.widths)
	return t.printWidths(p.env, p.env.Stdout, p.widths)
}
