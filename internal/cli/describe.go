package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

func (s *session) describeCommand() *cobra.Command {
	return &cobra.Command{
		Use: "describe KIND NAME...", Short: "Show everything about objects", Args: cobra.MinimumNArgs(2),
		ValidArgsFunction: s.completeObjects(anyKind),
		RunE: func(cmd *cobra.Command, args []string) error {
			return s.eachObject(cmd.Context(), args, func(server *client.Client, info api.KindInfo, key api.Key, i int) error {
				if i > 0 {
					fmt.Fprintln(s.Stdout) // an error shows with the object
				}
				return s.describe(cmd.Context(), server, info, key)
			})
		},
	}
}

// eachObject calls a function for each object of a command line: KIND NAME... The last argument is its
// place among them.
func (s *session) eachObject(ctx context.Context, args []string, do func(server *client.Client, info api.KindInfo, key api.Key, i int) error) error {
	info, err := parseKind(args[0])
	if err != nil {
		return err
	}
	server, err := s.connect(ctx)
	if err != nil {
		return err
	}
	keys, err := parseKeys(info, args[1:], s.connection.namespace())
	if err != nil {
		return err
	}
	for i, key := range keys {
		if err := do(server, info, key, i); err != nil {
			return err
		}
	}
	return nil
}

func (s *session) describe(ctx context.Context, server *client.Client, info api.KindInfo, key api.Key) error {
	object, err := server.Get(ctx, key)
	if err != nil {
		return err
	}
	meta := object.Meta()
	var b strings.Builder
	line := func(name, value string) {
		if value != "" {
			fmt.Fprintf(&b, "%-13s %s\n", name+":", termtext.Text(value))
		}
	}
	line("Kind", singular(info))
	line("Name", meta.Name)
	line("Namespace", meta.Namespace)
	line("Cluster", meta.Cluster)
	for i, name := range slices.Sorted(maps.Keys(meta.Labels)) {
		title := "Labels:"
		if i > 0 {
			title = ""
		}
		fmt.Fprintf(&b, "%-13s %s\n", title, termtext.Text(name+"="+meta.Labels[name]))
	}
	now := s.Now()
	line("Created", age(meta.CreatedAt, now)+" ago")
	if meta.Generation > 1 {
		line("Changed", fmt.Sprintf("%s ago (generation %d)", age(meta.ModifiedAt, now), meta.Generation))
	}
	if by := meta.WrittenBy; by != nil {
		line("Written by", by.Token)
	}
	if err := section(&b, "Spec", object.SpecPart()); err != nil {
		return err
	}
	if clusters, decided := clustersOf(object); decided {
		b.WriteString("\n")
		line("Decision", orNone(clusters))
		if explained(info) {
			explanation, err := server.Explain(ctx, key)
			if err != nil {
				return err
			}
			line("Why", explanation.Summary)
		}
	}
	if list := api.ConditionsOf(object); list != nil && len(*list) > 0 {
		b.WriteString("\nConditions:\n")
		t := table{header: []string{"  TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"}}
		for _, c := range *list {
			t.add("  "+c.Type, string(c.Status), c.Reason, age(c.LastTransitionAt, now), c.Message)
		}
		if err := t.print(s.Environment, &b); err != nil {
			return err
		}
	}
	if err := section(&b, "Status", withoutConditions(object)); err != nil {
		return err
	}
	_, err = fmt.Fprint(s.Stdout, b.String())
	return err
}

// section adds a part of an object as YAML.
func section(b *strings.Builder, title string, part any) error {
	document, err := json.Marshal(part)
	if err != nil {
		return err
	}
	text, err := toYAML(document)
	if err != nil {
		return err
	}
	if trimmed := strings.TrimSpace(string(text)); trimmed != "{}" {
		fmt.Fprintf(b, "\n%s:\n  %s\n", title, strings.ReplaceAll(trimmed, "\n", "\n  "))
	}
	return nil
}

// withoutConditions returns the status of an object without what describe shows as a table.
func withoutConditions(object api.Object) any {
	object = object.Copy()
	if list := api.ConditionsOf(object); list != nil {
		*list = nil
	}
	return object.StatusPart()
}

// orNone joins names.
func orNone(names []string) string {
	if len(names) == 0 {
		return "none"
	}
	return strings.Join(names, ", ")
}
