package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/termtext"
)

func (s *session) watchCommand() *cobra.Command {
	var everywhere bool
	var output *outputFormat
	cmd := &cobra.Command{
		Use: "watch [KIND...]", Short: "Show each move of a decision, until interrupted",
		Long: `Show each move of a decision, until interrupted: when, what, from where, to where, and
whether it is satisfied. Without kinds, the moves of placements and workloads are
shown. To follow objects themselves, use get --watch.`,
		ValidArgsFunction: func(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
			return completeKinds(explained), cobra.ShellCompDirectiveNoFileComp
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				args = []string{string(api.KindPlacement), string(api.KindWorkload)}
			}
			var kinds []api.KindInfo
			for _, arg := range args {
				info, err := parseKind(arg)
				if err != nil {
					return err
				}
				if !explained(info) {
					return usage("a %s has no decision that could move", singular(info))
				}
				kinds = append(kinds, info)
			}
			server, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			f := &following{server: server, kinds: kinds, stderr: s.Stderr, program: s.Program}
			if !everywhere {
				f.namespace = s.connection.used.Namespace
			}
			positions := map[api.Key][]string{}
			if err := f.list(cmd.Context(), func(o api.Object) { positions[api.KeyOf(o)], _ = clustersOf(o) }); err != nil {
				return err
			}
			return f.follow(cmd.Context(), func(e api.Event) error {
				m, moved := movedBy(positions, e, s.Now())
				if !moved {
					return nil
				}
				if output.value == outputJSON {
					return printDocument(s.Stdout, outputJSON, m, true)
				}
				_, err := fmt.Fprintln(s.Stdout, termtext.Text(m.String()))
				return err
			})
		},
	}
	cmd.Flags().BoolVarP(&everywhere, "all-namespaces", "A", false, "show the moves in all namespaces, also if --namespace or the context names one")
	output = defineOutput(cmd, "json shows a document for each move", outputTable, outputJSON)
	return cmd
}

// move is a change of a decision.
type move struct {
	At     time.Time  `json:"at"`
	Object api.Key    `json:"object"`
	From   []string   `json:"from"`
	To     []string   `json:"to"`
	Cause  *api.Cause `json:"cause,omitempty"`
	// Message is that of the condition which says whether the decision is satisfied.
	Message string `json:"message,omitempty"`
}

// String formats a move as a line.
func (m move) String() string {
	line := fmt.Sprintf("%s  %s  %s -> %s", m.At.Format(time.RFC3339), m.Object, orNone(m.From), orNone(m.To))
	if m.Cause != nil && m.Cause.Type != api.CauseUnknown {
		line += "  because of " + causeText(m.Cause, m.Cause.Actor)
	}
	if m.Message != "" {
		line += "  (" + m.Message + ")"
	}
	return line
}

// causeText says what made a decision change, and who wrote that: "spec (placement "shop/web", spec.replicas: 2 -> 3) by ci".
func causeText(c *api.Cause, by *api.Actor) string {
	text := strings.ReplaceAll(string(c.Type), "_", " ")
	if c.Object == nil {
		return text
	}
	what := c.Object.String()
	if c.Field != "" {
		what += ", " + c.Field
	}
	if c.Old != "" || c.New != "" {
		what += fmt.Sprintf(": %s -> %s", cmp.Or(c.Old, "none"), cmp.Or(c.New, "none"))
	}
	text += " (" + what + ")"
	if by != nil && by.Token != "" {
		text += " by " + by.Token
	}
	return text
}

// movedBy returns the move that an event shows, and notes the new position.
func movedBy(positions map[api.Key][]string, e api.Event, now time.Time) (move, bool) {
	key := api.KeyOf(e.Object)
	from := positions[key]
	if e.Type == api.EventDelete {
		delete(positions, key)
		return move{At: now, Object: key, From: from, To: []string{}, Message: "deleted"}, len(from) > 0
	}
	to, _ := clustersOf(e.Object)
	row, _ := api.Summarize(e.Object)
	positions[key] = to
	m := move{At: now, Object: key, From: append([]string{}, from...), To: append([]string{}, to...), Cause: row.Cause}
	for _, conditionType := range []string{api.ConditionSatisfied, api.ConditionScheduled, api.ConditionBound} {
		if c := conditionOf(e.Object, conditionType); c != nil {
			m.Message = strings.TrimSuffix(c.Message, ".")
			break
		}
	}
	return m, !slices.Equal(from, to)
}
