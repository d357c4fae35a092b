package cli

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/scheduler/terraform-provider-scheduler/internal/api"
	"github.com/scheduler/terraform-provider-scheduler/internal/client"
)

// historyFlags are the flags of the command.
type historyFlags struct {
	cluster, cause, since, until string
	limit                        int
}

func (s *session) historyCommand() *cobra.Command {
	var flags historyFlags
	var output *outputFormat
	cmd := &cobra.Command{
		Use: "history [KIND [NAME]]", Short: "Show what was decided, when and why", Args: cobra.MaximumNArgs(2),
		Long: `Show what was decided, when and why: a line for each change of a decision, the newest
last. "schedulerctl explain KIND NAME --at REVISION" explains a decision as it was.

Without a namespace, the history is that of all namespaces that you may read.`,
		Example: `  schedulerctl history --since 24h
  schedulerctl history placement shop/web
  schedulerctl history --cluster paris --cause cluster_offline --since 2026-03-01T00:00:00Z`,
		ValidArgsFunction: s.completeObjects(recorded),
		RunE: func(cmd *cobra.Command, args []string) error {
			server, err := s.connect(cmd.Context())
			if err != nil {
				return err
			}
			options, err := s.historyOptions(&flags, args)
			if err != nil {
				return err
			}
			if flags.limit < 1 {
				return usage("--limit %d must be at least 1", flags.limit)
			}
			entries := []api.HistoryEntry{}
			for entry, err := range server.History(cmd.Context(), options) {
				if err != nil {
					return err
				}
				if entries = append(entries, entry); len(entries) == flags.limit {
					break
				}
			}
			slices.Reverse(entries)
			if output.value != outputTable {
				return printDocument(s.Stdout, output.value, entries, false)
			}
			t := historyTable(entries)
			return t.print(s.Stdout)
		},
	}
	set := cmd.Flags()
	set.StringVar(&flags.cluster, "cluster", "", "only decisions that moved to or from this cluster")
	set.StringVar(&flags.cause, "cause", "", "only decisions with this type of cause, such as metric")
	set.StringVar(&flags.since, "since", "", "only decisions since a time, or in a duration until now: 2026-03-01T12:00:00Z, 24h")
	set.StringVar(&flags.until, "until", "", "only decisions before a time, or a duration ago")
	set.IntVar(&flags.limit, "limit", 50, "show at most this many, the newest")
	causes := make([]string, len(api.CauseTypes))
	for i, cause := range api.CauseTypes {
		causes[i] = string(cause)
	}
	complete(cmd, "cause", cobra.FixedCompletions(causes, cobra.ShellCompDirectiveNoFileComp))
	output = defineOutput(cmd, "", outputTable, outputJSON, outputYAML)
	return cmd
}

// recorded reports whether decisions of a kind are in the history.
func recorded(info api.KindInfo) bool { return slices.Contains(api.RecordedKinds, info.Kind) }

// historyOptions returns what the arguments and flags select.
func (s *session) historyOptions(flags *historyFlags, args []string) (options client.HistoryOptions, err error) {
	options.Cluster, options.Cause = flags.cluster, api.CauseType(flags.cause)
	if why := api.CheckCauseType(flags.cause); flags.cause != "" && why != "" {
		return options, usage("--cause %s", why)
	}
	for _, field := range []struct {
		name, text string
		to         *time.Time
	}{{"since", flags.since, &options.Since}, {"until", flags.until, &options.Until}} {
		if field.text == "" {
			continue
		}
		if ago, err := time.ParseDuration(field.text); err == nil {
			*field.to = s.Now().Add(-ago)
		} else if *field.to, err = time.Parse(time.RFC3339, field.text); err != nil {
			return options, usage("--%s %q must be a time such as 2026-03-01T12:00:00Z, or a duration such as 24h", field.name, field.text)
		}
	}
	if len(args) == 0 {
		return options, nil
	}
	info, err := parseKind(args[0])
	if err != nil {
		return options, err
	}
	if !recorded(info) {
		return options, usage("a %s has no decisions", singular(info))
	}
	options.Kind = info.Kind
	if len(args) == 2 {
		key, err := parseKey(info, args[1], s.connection.namespace())
		if err != nil {
			return options, err
		}
		options.Namespace, options.Name = key.Namespace, key.Name
	}
	return options, nil
}

// historyTable is a line for each entry.
func historyTable(entries []api.HistoryEntry) table {
	t := table{header: []string{"TIME", "REVISION", "OBJECT", "MOVED", "CAUSE", "CHANGED", "BY"}}
	for i := range entries {
		e := &entries[i]
		t.add(e.Time.UTC().Format(time.RFC3339), strconv.FormatInt(e.Revision, 10), string(e.Object.Kind)+" "+e.Object.Path(),
			movedText(e), string(e.Cause.Type), causeText(&e.Cause), actorText(e.Actor))
	}
	return t
}

// maxMovesShown is how many moves of one decision the table shows.
const maxMovesShown = 3

func movedText(e *api.HistoryEntry) string {
	var parts []string
	for i, m := range e.Moved {
		if i == maxMovesShown {
			parts = append(parts, fmt.Sprintf("%d more", len(e.Moved)-i))
			break
		}
		text := cmp.Or(m.From, "nowhere") + " -> " + cmp.Or(m.To, "nowhere")
		if m.Replicas != nil && *m.Replicas > 0 {
			text += " (" + strconv.FormatInt(*m.Replicas, 10) + ")"
		}
		parts = append(parts, text)
	}
	if len(parts) == 0 {
		return "same clusters"
	}
	return strings.Join(parts, ", ")
}

func causeText(c *api.Cause) string {
	if c.Object == nil {
		return ""
	}
	text := string(c.Object.Kind) + " " + c.Object.Path()
	if c.Field != "" {
		text += " " + c.Field
	}
	if c.Old != "" || c.New != "" {
		text += ": " + cmp.Or(c.Old, "none") + " -> " + cmp.Or(c.New, "none")
	}
	return text
}

func actorText(a *api.HistoryActor) string {
	if a == nil {
		return ""
	}
	return cmp.Or(a.Token, "request "+a.RequestID)
}
